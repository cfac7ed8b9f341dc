"""The scope of a proof: everything, or the sizes and integers that were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from passes.choices import ProofScope

#: `symbolic`: for all sizes and trip counts; `terms`: equal terms at drawn sizes; `field`: equal up
#: to the order of sums and products at drawn sizes.
Method = Literal["symbolic", "terms", "field"]
#: The most characters of sizes or conditions in a sentence.
_LONGEST = 50


def first_of(parts: Sequence[str], separator: str) -> str:
    """As many parts as a sentence has room for, the first one at least, and the number of the
    others."""
    ends = accumulate(len(f"{part}{separator}") for part in parts)
    kept = max(1, sum(end <= _LONGEST for end in ends))
    first = parts[0] if len(parts[0]) <= _LONGEST else f"{parts[0][:_LONGEST]}..."
    more = [f"{len(parts) - kept} more"] if len(parts) > kept else []
    return separator.join([first, *parts[1:kept], *more])


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

    @property
    def sizes(self) -> str:
        """The drawn sizes, all of them; empty if there are none."""
        return "; ".join(map(str, self.draws))

    def sentence(self) -> str:
        """The scope in words, after `proven`; of many sizes, the first ones."""
        if self.method == "symbolic":
            order = ", up to the order of summation" if self.regrouped else ""
            return f"for all inputs, sizes and trip counts{order}"
        where = f"at sizes {first_of([*map(str, self.draws)], '; ')}"
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
