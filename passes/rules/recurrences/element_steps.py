"""Writes the iterations of a block for a state whose elements are independent of each other.

The block is cut into rows of a few iterations. All rows are run side by side, each from nothing;
then the state before each row follows from the decay and the result of the rows before it, and the
rows are run once more from there. So the last steps are those of the loop, and nothing is divided
by a decay. Source: the two-level scan of Blelloch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from passes.rules.recurrences.element_form import ElementForm
from passes.rules.recurrences.in_range import Prepared, is_finite
from passes.rules.recurrences.index_notation import ONE, Notation, Term
from passes.rules.recurrences.layout import TIME, Writer
from passes.rules.recurrences.matrix_form import MatrixForm
from passes.rules.recurrences.rows import Rows
from passes.writing import spelling
from passes.writing.author import Author

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
#: No decay is larger: it would grow from row to row.
_MOST = 1.05
#: A row has so many iterations where there are many, else so many; fewer are run one by one.
_LONG, _SHORT, _FEW = 16, 8, 16
_MANY = 256


@dataclass(frozen=True)
class ElementSteps:
    """The `length` iterations of a block.

    `added` are [length, ..], so are `decays`, or [1, ..] where they are `constant`; "" for a state
    that does not decay.
    """

    author: Author
    form: ElementForm
    length: int
    decays: str
    added: str
    constant: bool
    dtype: np.dtype[Any]

    def write(self, writer: Writer, start: str) -> tuple[str, dict[str, str]]:
        """Write them from a state on; the state after the block, and what is read, by name."""
        author, form = self.author, self.form
        turned = writer.moved(start, form.state.at, form.order)
        first = spelling.unsqueeze(author, turned, 0)
        decays = [self.decays] if self.constant else self.decays
        if form.matrix is not None:
            return self._turned(writer, form.matrix, decays, first)
        after = self._run(decays, self.added, first, self.length)
        last = spelling.part(author, after, 0, -1, None)
        reads = {form.after: after} if form.after else {}
        if form.before:
            reads[form.before] = self._shifted(first, after)
        return spelling.squeeze(author, last, 0), reads

    def _turned(
        self, writer: Writer, form: MatrixForm, decays: str | list[str], first: str
    ) -> tuple[str, dict[str, str]]:
        """Write them step by step, and what rows read of each."""
        author, length = self.author, self.length
        states = [first]
        for decay, one in zip(
            self._pieces(decays, length, 0), self._pieces(self.added, length, 0), strict=True
        ):
            states.append(self._step(decay, states[-1], one))

        def read(row: str, before: bool) -> str:
            found = states[:-1] if before else states[1:]
            pairs = zip(self._pieces(row, length, 0), found, strict=True)
            parts = [author.op("MatMul", one, state) for one, state in pairs]
            return author.op("Concat", *parts, axis=0) if length > 1 else parts[0]

        kind = np.dtype(self.dtype)
        prefix, columns = (TIME, *form.around, ONE), form.columns or ONE
        rows = Rows(writer, prefix, form.along, columns, length, kind)
        reads = {out.read.name: rows.output(out, read) for out in form.outputs}
        last = spelling.squeeze(author, states[-1], 0)
        return writer.moved(last, tuple(self.form.order), form.state.at), reads

    def _shifted(self, first: str, after: str) -> str:
        """The states before the iterations, of those after them."""
        earlier = spelling.part(self.author, after, 0, 0, -1)
        return self.author.op("Concat", first, earlier, axis=0)

    def _step(self, decay: str, state: str, added: str) -> str:
        author = self.author
        kept = self._times(decay, state) if decay else state
        return author.op(self.form.tropical or "Add", kept, added)

    def _times(self, decay: str, value: str) -> str:
        return self.author.op("Add" if self.form.tropical else "Mul", decay, value)

    def _run(self, decays: str | list[str], added: str, first: str, length: int) -> str:
        """The states after `length` iterations, [length, ..]; a list holds the decay of all."""
        author = self.author
        if length <= _FEW:
            states = [first]
            pieces = zip(
                self._pieces(decays, length, 0), self._pieces(added, length, 0), strict=True
            )
            for decay, one in pieces:
                states.append(self._step(decay, states[-1], one))
            return author.op("Concat", *states[1:], axis=0) if length > 1 else states[1]
        width = _LONG if length >= _MANY else _SHORT
        rows, rest = divmod(length, width)
        whole = rows * width
        if rest:
            parts = [self._part(value, 0, whole) for value in (decays, added)]
            after = self._run(parts[0], str(parts[1]), first, whole)
            last = spelling.part(author, after, 0, -1, None)
            tail, more = self._part(decays, whole, None), self._part(added, whole, None)
            return author.op("Concat", after, self._run(tail, str(more), last, rest), axis=0)
        columns = self._pieces(self._rows(decays, rows, width), width, 1)
        more = self._pieces(self._rows(added, rows, width), width, 1)
        total, state = columns[0], more[0]
        for decay, one in zip(columns[1:], more[1:], strict=True):
            state = self._step(decay, state, one)
            total = self._times(decay, total) if decay else total
        before = self._before(decays, total, state, first, rows)
        states = []
        for decay, one in zip(columns, more, strict=True):
            before = self._step(decay, before, one)
            states.append(before)
        return self._flat(author.op("Concat", *states, axis=1), whole)

    def _before(
        self, decays: str | list[str], total: str, state: str, first: str, rows: int
    ) -> str:
        """The states before each row, [rows, 1, ..], of what each does."""
        author = self.author
        flat = spelling.squeeze(author, state, 1)
        if isinstance(decays, list):
            through: str | list[str] = [spelling.squeeze(author, total, 1)] if total else [""]
        else:
            through = spelling.squeeze(author, total, 1)
        after = self._run(through, flat, first, rows)
        return spelling.unsqueeze(author, self._shifted(first, after), 1)

    def _pieces(self, value: str | list[str], count: int, axis: int) -> list[str]:
        """The slices of size 1 along an axis; the one of a list for each."""
        if isinstance(value, list):
            return value * count
        if count == 1:
            return [value]
        parts = [self.author.fresh("step") for _ in range(count)]
        spelling.split(self.author, value, axis, parts)
        return parts

    def _part(self, value: str | list[str], start: int, end: int | None) -> str | list[str]:
        if isinstance(value, list):
            return value
        return spelling.part(self.author, value, 0, start, end)

    def _rows(self, value: str | list[str], rows: int, width: int) -> str | list[str]:
        """[length, ..] as [rows, width, ..]."""
        author = self.author
        if isinstance(value, list):
            return [spelling.unsqueeze(author, one, 0) if one else "" for one in value]
        tail = spelling.rest_of_shape(author, value, 1)
        shape = author.op("Concat", author.ints(rows, width), tail, axis=0)
        return author.op("Reshape", value, shape)

    def _flat(self, value: str, length: int) -> str:
        """[rows, width, ..] as [length, ..]."""
        author = self.author
        tail = spelling.rest_of_shape(author, value, 2)
        return author.op("Reshape", value, author.op("Concat", author.ints(length), tail, axis=0))


def prepared(
    form: ElementForm, notation: Notation, writer: Writer, length: int, kind: int, start: str
) -> Prepared:
    """The iterations of a block from a state `start` on, of elements of a type."""
    author, state = writer.author, form.state
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    order = [TIME, *form.order]
    one = author.constant(np.ones((1,) * len(order), dtype), "one")
    plain = state.decays == ((Term(),) if not form.tropical else ())
    decays = "" if plain else _summed(notation, writer, state.decays, order, one)
    added = _summed(notation, writer, state.updates, order, one)
    if not _varies(writer, state.updates):
        added = _spread(author, added, length)
    checks = []
    if kind in _FLOATS and not plain and form.matrix is None:
        values = [decays] if form.tropical else [decays, added, start]
        squares = [author.op("ReduceSumSquare", value, keepdims=0) for value in values]
        checks.append(is_finite(author, squares, dtype))
        if not form.tropical:
            most = author.op("ReduceMax", author.op("Abs", decays), keepdims=0)
            checks.append(author.op("Less", most, author.constant(np.array(_MOST, dtype), "most")))
    constant = plain or not _varies(writer, state.decays)

    def write(inner: Author) -> tuple[str, dict[str, str]]:
        steps = ElementSteps(inner, form, length, decays, added, constant, dtype)
        return steps.write(replace(writer, author=inner), start)

    return Prepared(checks, write)


def _varies(writer: Writer, terms: Sequence[Term]) -> bool:
    return any(writer.carries(factor.name) for term in terms for factor in term.factors)


def _spread(author: Author, value: str, length: int) -> str:
    """[1, ..] as [length, ..]."""
    tail = spelling.rest_of_shape(author, value, 1)
    return author.op("Expand", value, author.op("Concat", author.ints(length), tail, axis=0))


def _summed(
    notation: Notation, writer: Writer, terms: Sequence[Term], order: Sequence[int], one: str
) -> str:
    """The sum of products, their axes in an order; one without factors is the constant `one`."""
    parts = []
    for term in terms:
        whole = writer.spread(notation, term, order) if term.factors else one
        parts.append(
            writer.author.op("Neg", whole) if term.negative and not term.factors else whole
        )
    return reduce(lambda left, right: writer.author.op("Add", left, right), parts)
