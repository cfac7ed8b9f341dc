"""Writes the iterations of a block for states whose elements are independent of each other.

Several states may feed each other, element by element, as the parts of a complex number do: then a
decay is a matrix of such values.

The block is cut into rows of a few iterations. All rows are run side by side, each from nothing;
then the state before each row follows from the decay and the result of the rows before it, and the
rows are run once more from there. So the last steps are those of the loop, and nothing is divided
by a decay. Source: the two-level scan of Blelloch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from passes.rules.recurrences.forms import ElementForm, MatrixForm
from passes.rules.recurrences.index_notation import ONE, Notation, Summand
from passes.rules.recurrences.layout import (
    FINITE,
    LARGEST,
    TIME,
    Prepared,
    Rows,
    Writer,
    Written,
    is_finite,
)
from passes.rules.recurrences.linear_states import LOG_ADD_EXP
from passes.writing import spelling
from passes.writing.author import Author

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
#: A row has so many iterations where there are many, else so many; fewer are run one by one.
_LONG, _SHORT, _FEW = 16, 8, 16
_MANY = 256
#: The exp of no more, and no less than its negative, neither overflows nor loses digits.
_MOST_EXPONENT = 80.0


#: A value for each state, or for each pair of states; "" for 0, or, for one state, for 1.
Vector = tuple[str, ...]


@dataclass(frozen=True)
class Series:
    """Values of iterations, [iterations, ..], or [1, ..] where they are `constant`.

    `exact`: constant decays as doubles, since an error of their product is that of every row.
    """

    values: Vector
    constant: bool = False
    exact: Vector = ()


@dataclass(frozen=True)
class ElementSteps:
    """The `length` iterations of a block; `decays` and `added` are those of its iterations, and
    `before_rows` gets the names of the states from which rows start."""

    author: Author
    form: ElementForm
    length: int
    decays: Series
    added: Series
    dtype: np.dtype[Any]
    before_rows: list[str]

    def write(self, writer: Writer, starts: Sequence[str]) -> Written:
        """Write them from states on; the states after the block, and what is read, by name."""
        author, form = self.author, self.form
        first = tuple(
            spelling.unsqueeze(author, writer.moved(start, state.at, order), 0)
            for start, state, order in zip(starts, form.states, form.orders, strict=True)
        )
        if form.matrix is not None:
            return self._turned(writer, form.matrix, first)
        after = self._run(self.decays, self.added, first, self.length)
        before = self._shifted(first, after) if any(form.before) else after
        named = [*zip(form.after, after, strict=True), *zip(form.before, before, strict=True)]
        reads = {name: value for name, value in named if name}
        last = self._part(Series(after), -1, None).values
        return [spelling.squeeze(author, one, 0) for one in last], reads

    def _turned(self, writer: Writer, form: MatrixForm, first: Vector) -> Written:
        """Write them step by step, and what rows read of each."""
        author, length = self.author, self.length
        states = [first]
        pieces = (self._pieces(series, length, 0) for series in (self.decays, self.added))
        for decay, one in zip(*pieces, strict=True):
            states.append(self._step(decay, states[-1], one))

        def read(row: str, before: bool) -> str:
            found = states[:-1] if before else states[1:]
            if length > _SHORT:
                return author.op("MatMul", row, *self._joined(found, 0))
            pairs = zip(self._pieces(Series((row,)), length, 0), found, strict=True)
            parts = [author.op("MatMul", one, state) for (one,), (state,) in pairs]
            return spelling.joined(author, parts)

        prefix, columns = (TIME, *form.around, ONE), form.columns or ONE
        rows = Rows(writer, prefix, form.along, columns, length, self.dtype)
        reads = {out.read.name: rows.output(out, read) for out in form.outputs}
        last = spelling.squeeze(author, states[-1][0], 0)
        (order,) = self.form.orders
        return [writer.moved(last, tuple(order), form.state.at)], reads

    def _shifted(self, first: Vector, after: Vector) -> Vector:
        """The states before the iterations, of those after them."""
        earlier = self._part(Series(after), 0, -1).values
        return self._joined([first, earlier], 0)

    def _step(self, decay: Vector, state: Vector, added: Vector) -> Vector:
        """The next states."""
        kept = state if decay == ("",) else self._product(decay, state, 1)
        pairs = zip(kept, added, strict=True)
        return tuple(self._plus(one, more) if one and more else one or more for one, more in pairs)

    def _plus(self, left: str, right: str) -> str:
        """What is in place of the sum; of exps, relative to the larger one."""
        op, operator = self.author.op, self.form.tropical or "Add"
        if operator != LOG_ADD_EXP:
            return op(operator, left, right)
        larger = op("Max", left, right)
        less = op("Sub", op("Min", left, right), larger)
        one = self.author.value(np.array(1, self.dtype), "one")
        return op("Add", larger, op("Log", op("Add", op("Exp", less), one)))

    def _through(self, decay: Vector, total: Vector) -> Vector:
        """The decay through an iteration, and through those before it."""
        return total if decay == ("",) else self._product(decay, total, len(self.form.states))

    def _product(self, left: Vector, right: Vector, columns: int) -> Vector:
        """The product of a matrix of values with another one."""
        size, found = len(self.form.states), list[str]()
        for row, column in product(range(size), range(columns)):
            pairs = [(left[row * size + k], right[k * columns + column]) for k in range(size)]
            terms = [self._times(*pair) for pair in pairs if all(pair)]
            add = partial(self.author.op, "Add")
            found.append(reduce(add, terms) if terms else "")
        return tuple(found)

    def _times(self, left: str, right: str) -> str:
        return self.author.op("Add" if self.form.tropical else "Mul", left, right)

    def _run(self, decays: Series, added: Series, first: Vector, length: int) -> Vector:
        """The states after `length` iterations, [length, ..]."""
        if length <= _FEW or self.form.in_order:
            states = [first]
            pieces = (self._pieces(series, length, 0) for series in (decays, added))
            for decay, one in zip(*pieces, strict=True):
                states.append(self._step(decay, states[-1], one))
            return self._joined(states[1:], 0)
        width = _LONG if length >= _MANY else _SHORT
        rows, rest = divmod(length, width)
        if rest:
            whole = rows * width
            parts = [self._part(series, 0, whole) for series in (decays, added)]
            after = self._run(parts[0], parts[1], first, whole)
            last = self._part(Series(after), -1, None).values
            left = [self._part(series, whole, None) for series in (decays, added)]
            return self._joined([after, self._run(left[0], left[1], last, rest)], 0)
        columns = self._pieces(self._rows(decays, rows, width), width, 1)
        more = self._pieces(self._rows(added, rows, width), width, 1)
        state, exact = more[0], self._rows(Series(decays.exact, constant=True), rows, width).values
        factors = [exact] * width if exact else columns
        for decay, one in zip(columns[1:], more[1:], strict=True):
            state = self._step(decay, state, one)
        total = self._squeezed(reduce(lambda so_far, one: self._through(one, so_far), factors))
        through = Series(total, decays.constant)
        if exact:
            kind = helper.np_dtype_to_tensor_dtype(self.dtype)
            through = Series(_cast(self.author, total, kind), decays.constant, total)
        after = self._run(through, Series(self._squeezed(state)), first, rows)
        before = tuple(
            spelling.unsqueeze(self.author, one, 1) for one in self._shifted(first, after)
        )
        self.before_rows.extend(before)
        states = []
        for decay, one in zip(columns, more, strict=True):
            before = self._step(decay, before, one)
            states.append(before)
        return tuple(self._flat(one, length) for one in self._joined(states, 1))

    # --- series ---

    def _joined(self, parts: Sequence[Vector], axis: int) -> Vector:
        """The values of several iterations, one after the other."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(*parts, strict=True)
        return tuple(self.author.op("Concat", *column, axis=axis) for column in columns)

    def _squeezed(self, values: Vector) -> Vector:
        return tuple(one and spelling.squeeze(self.author, one, 1) for one in values)

    def _pieces(self, series: Series, count: int, axis: int) -> list[Vector]:
        """The values of each iteration, of size 1 along the axis."""
        if series.constant or count == 1:
            return [series.values] * count
        columns = []
        for value in series.values:
            parts = [self.author.fresh("step") for _ in range(count)] if value else [""] * count
            if value:
                spelling.split(self.author, value, axis, parts)
            columns.append(parts)
        return list(zip(*columns, strict=True))

    def _part(self, series: Series, start: int, end: int | None) -> Series:
        if series.constant:
            return series
        values = (one and spelling.part(self.author, one, 0, start, end) for one in series.values)
        return Series(tuple(values))

    def _rows(self, series: Series, rows: int, width: int) -> Series:
        """[length, ..] as [rows, width, ..]."""
        author = self.author

        def cut(value: str) -> str:
            if series.constant:
                return spelling.unsqueeze(author, value, 0)
            tail = spelling.rest_of_shape(author, value, 1)
            shape = author.op("Concat", author.ints(rows, width), tail, axis=0)
            return spelling.reshaped(author, value, shape)

        return Series(tuple(one and cut(one) for one in series.values), series.constant)

    def _flat(self, value: str, length: int) -> str:
        """[rows, width, ..] as [length, ..]."""
        author = self.author
        tail = spelling.rest_of_shape(author, value, 2)
        shape = author.op("Concat", author.ints(length), tail, axis=0)
        return spelling.reshaped(author, value, shape)


def prepared(
    form: ElementForm,
    notation: Notation,
    writer: Writer,
    length: int,
    kind: int,
    starts: Sequence[str],
) -> Prepared:
    """The iterations of a block from states `starts` on, of elements of a type."""
    author, states = writer.author, form.states
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(kind))
    ones = np.ones((1,) * (1 + len(form.orders[0])), dtype)
    one = author.value(ones, "one")
    constant = not any(_varies(writer, terms) for terms in form.decays)

    def summed(terms: Sequence[Summand], order: Sequence[int], *, same: bool) -> str:
        value = _summed(notation, writer, terms, [TIME, *order], one)
        return value if same or _varies(writer, terms) else _spread(author, value, length)

    size = len(states)
    orders = [form.orders[number // size] for number in range(size * size)]
    decays = Series(
        tuple(
            "" if not terms or form.is_plain else summed(terms, order, same=constant)
            for terms, order in zip(form.decays, orders, strict=True)
        ),
        constant or form.is_plain,
    )
    if constant and kind == TensorProto.FLOAT and not (form.tropical or form.is_plain):
        decays = replace(decays, exact=_cast(author, decays.values, TensorProto.DOUBLE))
    added = Series(
        tuple(
            summed(state.updates, order, same=False) if state.updates else ""
            for state, order in zip(states, form.orders, strict=True)
        )
    )
    checks, logs = list[str](), form.tropical == LOG_ADD_EXP
    rounds = kind in _FLOATS and form.matrix is None and not form.in_order and length > _FEW
    if logs or (rounds and form.tropical and not form.is_plain):
        for values, most in ((decays, LARGEST), (added, FINITE))[: 1 + logs]:
            squares = [
                author.op("ReduceSumSquare", one, keepdims=0) for one in values.values if one
            ]
            checks += [is_finite(author, squares, dtype, most)] if squares else []
    elif rounds:
        # products of what grows overflow, or come of one that is too small for the type
        factors = [one for one in decays.values if one]
        greatest = [author.op("ReduceMax", one, keepdims=0) for one in factors]
        least = [author.op("ReduceMin", one, keepdims=0) for one in factors]
        ends = [*greatest, *(author.op("Neg", one) for one in least)]
        limit = author.value(np.array(size + 1 / length, dtype), "most")
        checks += [author.op("Not", author.op("Greater", one, limit)) for one in ends]
    before_rows = list[str]()

    def write(inner: Author) -> Written:
        steps = ElementSteps(inner, form, length, decays, added, dtype, before_rows)
        return steps.write(replace(writer, author=inner), starts)

    judged = rounds and not form.tropical

    def judge(inner: Author, written: Written) -> list[str]:
        """Return the conditions under which rows start from what is finite, for from there on all
        steps are those of the loop, and the loop itself does not overflow."""
        rows = before_rows if judged else ()
        squares = [inner.op("ReduceSumSquare", value, keepdims=0) for value in rows]
        found = [is_finite(inner, squares, dtype, FINITE)] if squares else []
        for value in (*written[0], *written[1].values()) if form.bounded else ():
            size = inner.op("ReduceMax", inner.op("Abs", value), keepdims=0)
            found.append(
                inner.op("Less", size, inner.value(np.array(_MOST_EXPONENT, dtype), "most"))
            )
        return found

    return Prepared(checks, write, judge if judged or form.bounded else None)


def _cast(author: Author, values: Vector, kind: int) -> Vector:
    return tuple(one and author.op("Cast", one, to=kind) for one in values)


def _varies(writer: Writer, terms: Sequence[Summand]) -> bool:
    return any(writer.carries(factor.name) for term in terms for factor in term.factors)


def _spread(author: Author, value: str, length: int) -> str:
    """[1, ..] as [length, ..]."""
    tail = spelling.rest_of_shape(author, value, 1)
    return author.op("Expand", value, author.op("Concat", author.ints(length), tail, axis=0))


def _summed(
    notation: Notation, writer: Writer, terms: Sequence[Summand], order: Sequence[int], one: str
) -> str:
    """The sum of products, their axes in an order; one without factors is the constant `one`."""
    parts = []
    for term in terms:
        whole = writer.spread(notation, term, order) if term.factors else one
        parts.append(
            writer.author.op("Neg", whole) if term.negative and not term.factors else whole
        )
    return reduce(lambda left, right: writer.author.op("Add", left, right), parts)
