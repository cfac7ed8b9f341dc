"""Writes products of rows of a block with their axes in one order.

In a block of C iterations a value that differs between iterations has `TIME` as its first axis.
The state of a matrix form is laid out as [around.., along, columns], its factors as
[around.., TIME, along] and [around.., TIME, columns].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from passes.ir.operators import op_of
from passes.rules.recurrences.index_notation import ONE, At, Factor, Notation, NotLinear, Term
from passes.writing import spelling
from passes.writing.author import Author

#: The index of the axis of iterations.
TIME = -1


@dataclass(frozen=True)
class Writer:
    """Writes products of factors; `carries`: whether a value has the axis of iterations."""

    author: Author
    carries: Callable[[str], bool]

    def placed(self, term: Term, order: Sequence[int]) -> str:
        """A product, its axes in an order; an axis that no factor has is of size 1."""
        return self._product(term, [self.factor(factor, order) for factor in term.factors])

    def spread(self, notation: Notation, term: Term, order: Sequence[int]) -> str:
        """The same, but elements that a product computes of fewer are computed in that order."""
        return self._product(
            term, [self._computed(notation, factor, order) for factor in term.factors]
        )

    def _product(self, term: Term, parts: Sequence[str]) -> str:
        whole = reduce(partial(self.author.op, "Mul"), parts)
        return self.author.op("Neg", whole) if term.negative else whole

    def _computed(self, notation: Notation, factor: Factor, order: Sequence[int]) -> str:
        node = notation.index.producers.get(factor.name)
        if node is None or factor.inverse or len({*factor.at} - {ONE}) < 2:
            return self.factor(factor, order)
        if op_of(node) == "Exp":
            inner = Term((Factor(node.input[0], factor.at),))
            return self.author.op("Exp", self.spread(notation, inner, order))
        try:
            (term,) = notation.step(factor)
        except (NotLinear, ValueError):
            return self.factor(factor, order)
        alone = all(one.inverse or self.carries(one.name) for one in term.factors)
        if term.sums or not (alone or self.carries(factor.name)):
            return self.factor(factor, order)
        return self.spread(notation, term, order)

    def factor(self, factor: Factor, order: Sequence[int]) -> str:
        """A factor, its axes in an order."""
        at = ((TIME, *factor.at)) if self.carries(factor.name) else factor.at
        placed = self.moved(factor.name, at, order)
        return self.author.op("Reciprocal", placed) if factor.inverse else placed

    def moved(self, name: str, at: At, order: Sequence[int]) -> str:
        """A value whose axes have the indices `at`, with those in another order.

        Both may have axes of size 1, whose index is `ONE`, or is missing in the other.
        """
        author = self.author
        own = [index for index in at if index]
        if len({*own}) < len(own) or not {*own} <= {*order}:
            raise NotLinear
        if [*at] == [*order]:
            return name
        single = [axis for axis, index in enumerate(at) if index == ONE]
        if single:
            name = spelling.along(author, "Squeeze", name, single)
        wanted = [index for index in order if index in own]
        if wanted != own:
            name = author.op("Transpose", name, perm=[own.index(index) for index in wanted])
        missing = [axis for axis, index in enumerate(order) if index not in own]
        return spelling.unsqueeze_axes(author, name, missing)
