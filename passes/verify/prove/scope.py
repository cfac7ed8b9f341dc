"""The scope of a proof: everything, or the sizes and integers that were drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from passes.choices import ProofScope

#: `symbolic`: for all sizes and trip counts; `terms`: equal terms at drawn sizes; `field`: equal up
#: to the order of sums and products at drawn sizes.
Method = Literal["symbolic", "terms", "field"]


@dataclass(frozen=True)
class Draw:
    """The shapes of the inputs of one case, and the elements of those that are no free ones."""

    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    elements: tuple[tuple[str, tuple[int | bool | str, ...]], ...] = ()

    def __str__(self) -> str:
        sizes = [
            f"{name}[{','.join(map(str, shape))}]" if shape else name
            for name, shape in self.shapes
            if shape or " " in name
        ]
        named = [f"{name} = {_written(elements)}" for name, elements in self.elements]
        return ", ".join([*sizes, *named]) or "scalars"


def _written(elements: tuple[int | bool | str, ...]) -> str:
    return str(elements[0]) if len(elements) == 1 else f"({', '.join(map(str, elements))})"


@dataclass(frozen=True)
class Scope:
    """The inputs that a proof covers.

    `draws` are the cases if it is not `symbolic`; a symbolic proof that is `regrouped` holds up to
    the order of summation. `decisions` is the number of conditions on floats after which a run was
    left out, 0 if none was. The error of `field` is below 2 ** -`bits`, and `executed` cases
    agreed.
    """

    method: Method = "symbolic"
    draws: tuple[Draw, ...] = ()
    decisions: int = 0
    bits: int = 0
    executed: int = 0
    regrouped: bool = False

    @property
    def kind(self) -> ProofScope:
        """The scope as users name it."""
        if self.regrouped or self.method == "field":
            return ProofScope.summation
        return ProofScope.sizes if self.method == "terms" else ProofScope.all

    def sentence(self) -> str:
        """The scope in words, after `proven`."""
        if self.method == "symbolic":
            order = ", up to the order of summation" if self.regrouped else ""
            return f"for all inputs, sizes and trip counts{order}"
        where = f"at sizes {'; '.join(map(str, self.draws))}"
        if self.decisions:
            where += f", for at most {self.decisions} conditions on floats in a run"
        if self.method == "terms":
            return f"for all floats {where}"
        return (
            f"up to the order of summation {where}; error < 2^-{self.bits}, {self.executed}"
            " executed cases agree"
        )


#: For all inputs, sizes and trip counts.
ALL_SIZES = Scope()
