"""Writes the lengths of rows, and what a loop returns beyond them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import NodeProto, TensorProto

from passes.bodies.moving import time_first
from passes.bodies.time_body import TimeBody
from passes.bodies.time_length import Length
from passes.loops.form import Carried
from passes.rules.recognize_cell.reading.length_masks import lengths_in
from passes.rules.recognize_cell.reading.ragged import Ends
from passes.rules.recognize_cell.reading.sizes import CellSizes
from passes.rules.recognize_cell.writing.weights import CellWeights
from passes.types.value_types import elem_type_of
from passes.writing import spelling
from passes.writing.author import Author


def sizes_of(body: TimeBody, ends: Ends | None) -> CellSizes:
    """The sizes of what a loop reads, with those of lengths or a mask."""
    if ends is None:
        return CellSizes(body)
    mask = ends.mask
    place = (mask.tensor, 0 if mask.axis % 3 else 1) if mask else (ends.lengths, 0)
    return CellSizes(body, (place,))


@dataclass(frozen=True)
class EndsWriter:
    """Writes the lengths of rows by one author, and what depends on them by the same one or one in
    a branch."""

    body: TimeBody
    sizes: CellSizes
    ends: Ends
    author: Author

    @cached_property
    def lengths(self) -> str:
        """The lengths as sequence_lens takes them, int32 [batch], from 0 to the number of steps."""
        author = self.author
        if self.ends.mask is not None:
            goes_on = author.op("Cast", self._mask, to=TensorProto.INT32)
            return spelling.squeeze(
                author, spelling.along(author, "ReduceSum", goes_on, [0], keepdims=0), 1
            )
        zero = author.op("Cast", author.ints(0), to=TensorProto.INT32)
        known = author.op("Cast", self.ends.lengths, to=TensorProto.INT32)
        steps = spelling.size_of_axis(author, *self.sizes.time)
        steps = author.op("Cast", steps, to=TensorProto.INT32)
        return author.op("Max", author.op("Min", known, steps), zero)

    @cached_property
    def _mask(self) -> str:
        """True until a row ends, bool [time, batch, 1], by the mask."""
        assert self.ends.mask is not None
        mask = time_first(self.body, self.author, self.ends.mask, Length(""))
        return self.author.op("Not", mask) if self.ends.inverse else mask

    @cached_property
    def goes_on(self) -> str:
        """True until a row ends, bool [time, batch, 1], by its length; a reverse loop begins with
        the last element."""
        author = self.author
        length = spelling.size_of_axis(author, *self.sizes.time)
        number = author.op("Cast", spelling.arange(author, length), to=TensorProto.INT32)
        column = spelling.unsqueeze_axes(author, number, [1, 2])
        return author.op("Less", column, spelling.unsqueeze(author, self.lengths, 1))

    def conditions(self) -> list[str]:
        """The conditions under which rows end as by lengths: names of scalar bools."""
        found = [self._is_finite(name) for name in dict.fromkeys(self.ends.finite)]
        return [*found, self._is_prefix()] if self.ends.mask and not self.proof else found

    @cached_property
    def proof(self) -> dict[str, NodeProto]:
        """The nodes that prove that the mask is true, then false, in each row; else empty."""
        mask = self.ends.mask
        return lengths_in(self.body.site, mask) if mask and not self.ends.inverse else {}

    def _is_finite(self, name: str) -> str:
        """A bool that is true if no element is infinite or NaN."""
        zero = self.author.value(np.zeros((), np.float32), "zero")
        total = spelling.total(self.author, self.author.op("Mul", name, zero))
        return self.author.op("Equal", total, zero)

    def _is_prefix(self) -> str:
        """A bool that is true if the mask is true, then false, in each row."""
        author = self.author
        differs = author.op("Not", author.op("Equal", self._mask, self.goes_on))
        number = spelling.total(author, author.op("Cast", differs, to=TensorProto.INT32))
        zero = author.op("Cast", author.int(0), to=TensorProto.INT32)
        return author.op("Equal", number, zero)

    def final(self, author: Author, value: str, initial: str, output: str = "") -> str:
        """A final state; the initial one of a row of length 0, of which operators make 0."""
        zero = author.op("Cast", author.int(0), to=TensorProto.INT32)
        some = spelling.unsqueeze(author, author.op("Greater", self.lengths, zero), 1)
        return author.op("Where", some, value, initial, outputs=[output] if output else ())

    def collected(self, author: Author, rows: str, last: str) -> str:
        """The collected value, [time, batch, hidden]: beyond the end, the filling or the last
        output, which is the initial one at the start of a reverse loop."""
        ends = self.ends
        if ends.filling:
            filling = CellWeights(self.body, author).visible(ends.filling)
        elif self.sizes.scanned.reversed:
            filling = ends.initial
        else:
            filling = self.final(author, last, ends.initial)
        return author.op("Where", self.goes_on, rows, filling)

    def count(self, author: Author, counter: Carried, output: str) -> None:
        """Write the final number of iterations."""
        kind = elem_type_of(self.body.site.type_of(counter.initial))
        steps = spelling.size_of_axis(author, *self.sizes.time)
        spelling.squeeze(author, author.op("Cast", steps, to=kind), 0, [output])
