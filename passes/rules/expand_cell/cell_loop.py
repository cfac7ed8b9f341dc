"""Writes the loop over the steps of one direction: a Scan, a Loop, or every step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx import TensorProto, ValueInfoProto, helper

from passes.choices import Form
from passes.loops.form import Carried, Collected, Condition, Kind, LoopForm, Scanned
from passes.rules.expand_cell.cell_step import CellStep
from passes.types.value_types import Dim, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class Ran:
    """The output of every step, [steps, rows, hidden], "" where it is not collected, and the last
    states, [rows, hidden]."""

    rows: str
    states: Sequence[str]


@dataclass(frozen=True)
class CellLoop:
    """The loop of one direction, from the `initials`. `mask` [steps, rows, 1] holds where a row is
    not yet at its end; "" where all rows take all steps. `count` is the number of steps, int64
    [1]. `name` is that of the node. `collects`: the output of every step is read."""

    step: CellStep
    reversed: bool
    initials: Sequence[str]
    mask: str
    count: str
    name: str
    collects: bool

    def write(self, author: Author, form: str) -> Ran:
        """Write it, in that form."""
        if form == Form.written_out:
            return self._written_out(author)
        loop = self.loop(author, Kind.LOOP if form == Form.loop else Kind.SCAN)
        node = loop.to_node()
        node.name = self.name
        author.adopt([node])
        rows = loop.collected[0].tensor if self.collects else ""
        if rows and loop.kind is Kind.LOOP and self.reversed:
            rows = spelling.reversed_rows(author, rows)
        return Ran(rows, [one.final for one in loop.carried])

    def loop(self, author: Author, kind: Kind) -> LoopForm:
        """The Scan or the Loop."""
        inner = author.inside("/".join((author.prefix, "step")))
        states = [inner.fresh("state") for _ in self.initials]
        number, go = inner.fresh("number"), inner.fresh("go")
        form, results, trips = self.step.form, list[ValueInfoProto](), ""
        inputs = [self._typed(one, form.hidden) for one in states]
        if kind is Kind.LOOP:
            trips = spelling.squeeze(author, self.count, 0)
            at = number
            if self.reversed:
                at = inner.op("Sub", author.op("Sub", trips, author.int(1)), number)
            read = self._row(inner, at)
            head = [_scalar(number, TensorProto.INT64), _scalar(go, TensorProto.BOOL)]
            inputs = [*head, *inputs]
            results.append(_scalar(inner.op("Identity", go), TensorProto.BOOL))
        else:
            read = [inner.fresh("row") for _ in self._scanned]
            wide = form.hidden * len(form.cell.gates) if isinstance(form.hidden, int) else None
            inputs.append(self._typed(read[0], wide))
            inputs += [self._typed(one, 1, TensorProto.BOOL) for one in read[1:]]
        *after, output = self._once(inner, read, states)
        rows = [inner.op("Identity", output) if output in after else output]
        rows = rows if self.collects else []
        results += [self._typed(one, form.hidden) for one in (*after, *rows)]
        finals, is_scan = [author.fresh("last") for _ in states], kind is Kind.SCAN
        return LoopForm(
            kind,
            inner.graph(inner.prefix, inputs, results),
            tuple(map(Carried, self.initials, states, after, finals)),
            tuple(
                Scanned(tensor, name, reversed=self.reversed)
                for tensor, name in (zip(self._scanned, read, strict=True) if is_scan else ())
            ),
            tuple(
                Collected(one, author.fresh("rows"), reversed=self.reversed and is_scan)
                for one in rows
            ),
            trip_count=trips,
            condition=None if is_scan else Condition("", go, results[0].name),
            iteration="" if is_scan else number,
        )

    def _written_out(self, author: Author) -> Ran:
        """Write the steps one after the other, of which there is one or more; their values keep the
        axis of steps, of size 1."""
        steps = self.step.form.steps
        assert isinstance(steps, int)
        parts = [[author.fresh("row") for _ in range(steps)] for _ in self._scanned]
        for tensor, names in zip(self._scanned, parts, strict=True):
            spelling.split(author, tensor, 0, names)
        states = [spelling.unsqueeze(author, one, 0) for one in self.initials]
        rows = [""] * steps
        for at in reversed(range(steps)) if self.reversed else range(steps):
            *states, rows[at] = self._once(author, [part[at] for part in parts], states, 2)
        finals = [spelling.squeeze(author, one, 0) for one in states]
        return Ran(author.op("Concat", *rows, axis=0), finals)

    @property
    def _scanned(self) -> list[str]:
        """The tensors of which each step reads a row."""
        return [self.step.elements, *([self.mask] if self.mask else [])]

    def _row(self, author: Author, at: str) -> list[str]:
        """Read a row of each."""
        return [spelling.row(author, one, at, self.step.form.elem_type) for one in self._scanned]

    def _once(
        self, author: Author, read: Sequence[str], states: Sequence[str], axis: int = 1
    ) -> list[str]:
        """Write a step, of rows of what is scanned, with gates along an axis; the next states, then
        the output."""
        element, *mask = read
        after = self.step.write(author, element, states, axis)
        output = after[0]
        for on in mask:
            nought = spelling.zero(author, self.step.form.elem_type)
            output = author.op("Where", on, after[0], nought)
            pairs = zip(after, states, strict=True)
            after = [author.op("Where", on, new, old) for new, old in pairs]
        return [*after, output]

    def _typed(self, name: str, width: Dim, elem_type: int = 0) -> ValueInfoProto:
        """A value of a batch in the body, by default of the cell's type."""
        form = self.step.form
        known = tensor_type(elem_type or form.elem_type, (form.rows, width))
        return helper.make_value_info(name, known)


def _scalar(name: str, elem_type: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, elem_type, ())
