"""Writes the iterations of a block for one state, as products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from passes.ir.operators import op_of
from passes.rules.recurrences.decays import Decay, DecayOfAll, DecayOfRows
from passes.rules.recurrences.forms import Corrected, MatrixForm, Output
from passes.rules.recurrences.index_notation import ONE, Factor, Notation, Summand
from passes.rules.recurrences.layout import TIME, Prepared, Rows, Writer, Written, is_finite, square
from passes.writing.author import Author

#: The log of what half a block may decay by, for rows: it keeps errors within 2x of the loop's.
_MOST_WAY = 6.0
#: The log of a decay, which then grows.
_MOST_GROWTH = 0.5
#: The part of a row of the state that a correction may take away.
_MOST_CORRECTED = 2.1
#: The logs of decays are no less: exp of it is 0, and 0 times it is 0.
_LEAST_LOG = -1e4


@dataclass(frozen=True)
class MatrixSteps:
    """The iterations of a block for one state, which is `start` before them.

    `correcting` and `reading` are the rows of a correction.
    """

    form: MatrixForm
    writer: Writer
    decay: Decay
    start: str
    correcting: str = ""
    reading: str = ""

    def write(self) -> Written:
        """Write them; the state after the block, and what is read of it, by name."""
        decay = self.decay
        start = self._state(self.start)
        added = self._added(start)
        reads = {out.read.name: self._output(out, start, added) for out in self.form.outputs}
        return [self._as_carried(decay.end(start, added))], reads

    @property
    def author(self) -> Author:
        return self.writer.author

    def _state(self, name: str) -> str:
        order = [*self.form.around, self.form.along, self._column]
        return self.writer.moved(name, self.form.state.at, order)

    @property
    def _column(self) -> int:
        return self.form.columns or ONE

    def _added(self, start: str) -> list[tuple[str, str]]:
        """The rows and columns that the iterations add to the state."""
        form, decay, author = self.form, self.decay, self.author
        added = [(update.row, self.rows.column(update.column)) for update in form.updates]
        if form.correction is None:
            return [(self.rows.row(row), column) for row, column in added]
        left, scales = form.correction.left, form.correction.scales
        reading, correcting = self.reading, self.correcting
        same = [column for row, column in added if {*row.factors} == {*left.factors}]
        others = [
            (self.rows.row(row), column)
            for row, column in added
            if {*row.factors} != {*left.factors}
        ]
        apart = None if others else self._without_decay(scales)
        before, scales = apart is None, scales if apart is None else apart
        seen = self._of_state(reading, start, before=before)
        for row, column in others:
            pairs = decay.pair(reading, row, before=True)
            seen = author.op("Add", seen, author.op("MatMul", pairs, column))
        # what iterations add depends on what the ones before have added: (I + L) x = b
        corrected = self.rows.scaled(seen, scales)
        total = reduce(lambda one, other: author.op("Add", one, other), same) if same else ""
        right = author.op("Sub", total, corrected) if total else author.op("Neg", corrected)
        lower = decay.pair(reading, correcting, before=before)  # its diagonal is not read
        lower = self.rows.scaled(lower, scales)
        return [*others, (correcting, author.op("MatMul", self._inverse(lower), right))]

    def _without_decay(self, scales: Sequence[Summand]) -> tuple[Summand, ...] | None:
        """The scales without the decay of their own iteration, which is that of rows read after it
        (gated delta rule); None where not all have it."""
        (decay, *more), found = self.form.state.decays, list[Summand]()
        if more or decay.negative or not isinstance(self.decay, DecayOfAll):
            return None
        for scale in scales:
            for factor in decay.factors:
                if factor not in scale.factors:
                    return None
                scale = scale.without(factor)
            found.append(scale)
        return tuple(found)

    def with_correction(self, one: Corrected) -> MatrixSteps:
        """With the rows of a correction."""
        rows = self.rows
        return replace(self, correcting=rows.row(one.left), reading=rows.row(one.right))

    def converges(self, scales: Sequence[Summand]) -> str:
        """Return whether corrections do not grow from iteration to iteration: by no row of the
        state is more than twice of it taken away, with room for rounding."""
        author = self.author
        squares = [
            author.op("ReduceSum", author.op("Mul", row, row), author.ints(-1), keepdims=1)
            for row in (self.correcting, self.reading)
        ]
        total = author.op("Mul", *squares)
        for _ in range(2):
            total = self.rows.scaled(total, scales)
        most = author.op("ReduceMax", total, keepdims=0)
        return author.op("Less", most, self.decay.constant(np.array(_MOST_CORRECTED**2), "most"))

    def _inverse(self, lower: str) -> str:
        """The inverse of I + L, where L is strictly lower triangular: by blocks, doubled.

        The Neumann product is catastrophic where rows are alike.
        """
        author, size = self.author, self.decay.length
        places = np.arange(size)

        def masked(block: int) -> str:
            above, left = places[:, None] // block, places[None, :] // block
            halves = (above // 2 == left // 2) & (above % 2 == 1) & (left % 2 == 0)
            return author.op("Mul", lower, self.decay.constant(halves, "halves"))

        inverse = author.op("Sub", self.decay.constant(np.eye(size), "identity"), masked(1))
        block = 2
        while block < size:
            product = author.op("MatMul", author.op("MatMul", inverse, masked(block)), inverse)
            inverse = author.op("Sub", inverse, product)
            block *= 2
        return inverse

    def _of_state(self, row: str, start: str, *, before: bool) -> str:
        return self.author.op("MatMul", self.decay.row_of_state(row, before=before), start)

    def _output(self, out: Output, start: str, added: Sequence[tuple[str, str]]) -> str:
        def read(row: str, before: bool) -> str:
            value = self._of_state(row, start, before=before)
            for other, column in added:
                pairs = self.decay.pair(row, other, before=before)
                value = self.author.op("Add", value, self.author.op("MatMul", pairs, column))
            return value

        return self.rows.output(out, read)

    def _as_carried(self, value: str) -> str:
        order = [*self.form.around, self.form.along, self._column]
        return self.writer.moved(value, tuple(order), self.form.state.at)

    @property
    def rows(self) -> Rows:
        """Writes the rows and columns."""
        form, decay = self.form, self.decay
        prefix = (*form.around, TIME)
        return Rows(self.writer, prefix, form.along, self._column, decay.length, decay.dtype)


def prepared(
    form: MatrixForm, notation: Notation, writer: Writer, plain: Decay, start: str
) -> Prepared:
    """The iterations of a block from a state `start` on."""
    steps = MatrixSteps(form, writer, _decay_of(form, notation, writer, plain), start)
    checks = _checks(form, steps.decay, start)
    if form.correction is not None:
        steps = steps.with_correction(form.correction)
        checks.append(steps.converges(form.correction.scales))

    def write(author: Author) -> Written:
        inner, decay = replace(writer, author=author), replace(steps.decay, author=author)
        return replace(steps, writer=inner, decay=decay).write()

    return Prepared(checks, write)


def _checks(form: MatrixForm, decay: Decay, start: str) -> list[str]:
    """Return whether the products of a block are exact enough, and nothing is NaN or infinite."""
    author = decay.author
    squares = [square(author, factor) for factor in form.factors]
    checks = []

    def is_less(value: str, most: float) -> str:
        greatest = author.op("ReduceMax", value, keepdims=0)
        return author.op("Less", greatest, decay.constant(np.array(most), "most"))

    if isinstance(decay, DecayOfAll | DecayOfRows):
        squares.append(author.op("ReduceSumSquare", decay.logs, keepdims=0))
    if isinstance(decay, DecayOfAll):
        checks.append(is_less(decay.logs, _MOST_GROWTH))
    if isinstance(decay, DecayOfRows):
        # the ways before the iterations are those after the ones before them, but for the first one
        ways = [decay.ways[0][0], *([decay.first_half] if form.reads_before else [])]
        checks += [is_less(author.op("Abs", way), _MOST_WAY) for way in ways]
    squares.append(author.op("ReduceSumSquare", start, keepdims=0))  # others leave the loop
    return [is_finite(author, squares, decay.dtype), *checks]


def _decay_of(form: MatrixForm, notation: Notation, writer: Writer, plain: Decay) -> Decay:
    """The decay of a state, from its logs."""
    if not form.decays:
        return plain
    author = writer.author
    order = [*form.around, TIME, *([form.along] if form.decays_by_row else [])]
    terms = form.state.decays
    if len(terms) == 1 and not terms[0].negative:
        logs = [_log(notation, writer, factor, order) for factor in terms[0].factors]
        total = reduce(lambda one, other: author.op("Add", one, other), logs)
    else:
        one = plain.constant(np.ones(()), "one")
        parts = [
            writer.placed(term, order) if term.factors else author.op("Identity", one)
            for term in terms
        ]
        total = author.op("Log", reduce(lambda one, other: author.op("Add", one, other), parts))
    shape = (plain.length, 1) if form.decays_by_row else (plain.length,)
    varies = any(writer.carries(factor.name) for term in terms for factor in term.factors)
    least = np.full(() if varies else shape, _LEAST_LOG)
    total = author.op("Max", total, plain.constant(least, "least"))
    if form.decays_by_row:
        return DecayOfRows.of(plain, total)
    return DecayOfAll(author, plain.length, plain.rank, plain.dtype, total, not varies)


def _log(notation: Notation, writer: Writer, factor: Factor, order: Sequence[int]) -> str:
    """The log of a factor; of an Exp, what it was computed of."""
    author, plain = writer.author, notation.source(replace(factor, inverse=False))
    node = notation.index.producers.get(plain.name)
    if node is not None and op_of(node) == "Exp":
        log = writer.factor(replace(plain, name=node.input[0]), order)
    else:
        log = author.op("Log", writer.factor(replace(factor, inverse=False), order))
    return author.op("Neg", log) if factor.inverse else log
