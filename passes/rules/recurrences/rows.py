"""Writes the rows and columns that are multiplied with a state, and what is read of it by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from passes.rules.recurrences.index_notation import Term
from passes.rules.recurrences.layout import TIME, Writer
from passes.rules.recurrences.matrix_form import Output, Product
from passes.writing.author import Author


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

    def row(self, term: Term) -> str:
        """A row of each iteration."""
        return self._of_iterations(term, self.along)

    def column(self, term: Term) -> str:
        """A column of each iteration; 1 without factors."""
        return self._of_iterations(term, self.columns)

    def _of_iterations(self, term: Term, last: int) -> str:
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

    def times(self, value: str, column: Term) -> str:
        """A value times a column."""
        if not column.factors:
            return self.author.op("Neg", value) if column.negative else value
        return self.author.op("Mul", value, self.column(column))

    def scaled(self, value: str, columns: Sequence[Term]) -> str:
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
