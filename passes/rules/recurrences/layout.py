"""Writes products of rows of a block with their axes in one order, what is read of a state by them,
and the condition that they are exact enough.

In a block of C iterations a value that differs between iterations has `TIME` as its first axis.
The state of a matrix form is laid out as [around.., along, columns], its factors as
[around.., TIME, along] and [around.., TIME, columns].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from passes.ir.operators import op_of
from passes.rules.recurrences.forms import Output, Product
from passes.rules.recurrences.index_notation import ONE, At, Factor, Notation, NotLinear, Summand
from passes.writing import spelling
from passes.writing.author import Author

#: The index of the axis of iterations.
TIME = -1


@dataclass(frozen=True)
class Writer:
    """Writes products of factors; `carries`: whether a value has the axis of iterations."""

    author: Author
    carries: Callable[[str], bool]

    def placed(self, term: Summand, order: Sequence[int]) -> str:
        """A product, its axes in an order; an axis that no factor has is of size 1."""
        return self._product(term, [self.factor(factor, order) for factor in term.factors])

    def spread(self, notation: Notation, term: Summand, order: Sequence[int]) -> str:
        """The same, but elements that a product computes of fewer are computed in that order."""
        return self._product(
            term, [self._computed(notation, factor, order) for factor in term.factors]
        )

    def _product(self, term: Summand, parts: Sequence[str]) -> str:
        whole = reduce(partial(self.author.op, "Mul"), parts)
        return self.author.op("Neg", whole) if term.negative else whole

    def _computed(self, notation: Notation, factor: Factor, order: Sequence[int]) -> str:
        node = notation.index.producers.get(factor.name)
        if node is None or factor.inverse or len({*factor.at} - {ONE}) < 2:
            return self.factor(factor, order)
        if op_of(node) == "Exp":
            inner = Summand((Factor(node.input[0], factor.at),))
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


@dataclass(frozen=True)
class Rows:
    """Rows [prefix.., along] and columns [prefix.., columns], one of each for an iteration.

    These are indices; `TIME` is among `prefix`. `length` is the number of iterations, `dtype` the
    type of the state.
    """

    writer: Writer
    prefix: tuple[int, ...]
    along: int
    columns: int
    length: int
    dtype: np.dtype[Any]

    @property
    def author(self) -> Author:
        """The author of its nodes."""
        return self.writer.author

    def row(self, term: Summand) -> str:
        """A row of each iteration."""
        return self._of_iterations(term, self.along)

    def column(self, term: Summand) -> str:
        """A column of each iteration; 1 without factors."""
        return self._of_iterations(term, self.columns)

    def _of_iterations(self, term: Summand, last: int) -> str:
        """A product, also where it is the same in each iteration."""
        order = [*self.prefix, last]
        if any(self.writer.carries(factor.name) for factor in term.factors):
            return self.writer.placed(term, order)
        shape = [self.length if index == TIME else 1 for index in order]
        ones = np.full(shape, -1 if term.negative else 1, self.dtype)
        signs = self.author.value(ones, "signs")
        if not term.factors:
            return signs
        return self.author.op(
            "Mul", self.writer.placed(replace(term, negative=False), order), signs
        )

    def times(self, value: str, column: Summand) -> str:
        """A value times a column."""
        if not column.factors:
            return self.author.op("Neg", value) if column.negative else value
        return self.author.op("Mul", value, self.column(column))

    def scaled(self, value: str, columns: Sequence[Summand]) -> str:
        """A value times the sum of columns."""
        if len(columns) == 1:
            return self.times(value, columns[0])
        parts = [self.column(column) for column in columns]
        total = reduce(lambda one, other: self.author.op("Add", one, other), parts)
        return self.author.op("Mul", value, total)

    def output(self, out: Output, read: Callable[[str, bool], str]) -> str:
        """Return the values read of a state: `read` multiplies rows with it, before its update or
        after."""
        parts = [
            self.times(read(self.row(product.row), before), product.column)
            for product, before in out.products
        ]
        parts += [self._other(product, index) for product, index in out.others]
        total = reduce(lambda one, other: self.author.op("Add", one, other), parts)
        return self.writer.moved(total, (*self.prefix, self.columns), [TIME, *out.read.order])

    def _other(self, product: Product, index: int) -> str:
        """A product that has nothing of the state."""
        if not product.row.factors:
            return self.column(product.column)
        row = self.writer.placed(product.row, [*self.prefix, index])
        if index:
            row = self.author.op("ReduceSum", row, self.author.ints(-1), keepdims=1)
        return self.times(row, product.column)


#: Products of factors do not overflow, and small results do not drown in what they are summed of.
LARGEST = 1e12
#: Results are finite.
FINITE = 1e37


#: The states after a block, and what is read of them, by name.
Written = tuple[list[str], dict[str, str]]


@dataclass(frozen=True)
class Prepared:
    """The iterations of a block for states of one form: `checks` are the conditions, scalar bools,
    on which what `write` writes may be used; `judge` writes those that depend on what it wrote."""

    checks: list[str]
    write: Callable[[Author], Written]
    judge: Callable[[Author, Written], list[str]] | None = None


def square(author: Author, factor: Factor) -> str:
    """The sum of the squares of a factor."""

    def written() -> str:
        value = author.op("Reciprocal", factor.name) if factor.inverse else factor.name
        return author.op("ReduceSumSquare", value, keepdims=0)

    return author.once(("square", factor.name, factor.inverse), written)


def is_finite(
    author: Author, squares: Sequence[str], dtype: np.dtype[Any], most: float = LARGEST
) -> str:
    """Return whether no number is NaN, infinite, or too large: the sum of all squares is less than
    `most`."""
    total = author.op("Sum", *squares) if len(squares) > 1 else squares[0]
    return author.op("Less", total, author.value(np.array(most, dtype), "largest"))
