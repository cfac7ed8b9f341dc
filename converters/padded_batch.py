"""A batch and a time of at least 1, for bodies that may run on any values.

onnxruntime runs no Scan over nothing. An If around the loop would do, but there it does not pack
the weights that the body captures, which costs up to half of the speed. Where every op of the body
may be speculated, an empty batch or time is padded with one row or step of zeros instead, and the
outputs are cut back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from converters.batched_scan import BatchedScan
from converters.run_on import may_run_on
from converters.sequence_lens import Lengths
from passes import scope as scoping
from passes import spelling
from passes.author import Author
from passes.element_types import runs
from passes.rule import Site
from passes.speculation import speculatable
from passes.value_types import dims_of


def may_pad(site: Site, scan: BatchedScan) -> bool:
    """Whether the body may run on a row or step of zeros, and all inputs can be padded."""
    types = {*(state.elem_type for state in scan.states), *scan.sequence_types}
    padded = all(runs("Pad", site.target, one) for one in types)
    if not padded or not may_run_on(scan) or None in _ranks(scan):
        return False
    fixed = [name for name in scoping.captures(scan.body) if site.constant(name) is not None]
    return not speculatable(scan.body, fixed)


def _ranks(scan: BatchedScan) -> list[int | None]:
    """The ranks of the scanned tensors, batch and time included; None where unknown."""
    inside = {value.name: dims_of(value.type) for value in scan.body.input}
    dims = [inside[one.body_input] for one in scan.form.scanned]
    return [None if row is None else len(row) + 2 for row in dims]


@dataclass(frozen=True)
class Padded:
    """The Scan-8 with no size 0, its lengths, and how to cut its outputs back."""

    author: Author
    scan: BatchedScan
    lengths: Lengths | None
    sizes: str  # int64 [2]: the batch and the time as they were

    @classmethod
    def of(cls, author: Author, scan: BatchedScan, vector: str = "", time: str = "") -> Padded:
        """Pad what is empty; `vector` and `time` are those of a Scan-8 with lengths."""
        shape = author.op("Shape", scan.sequences[0])
        sizes = author.op("Slice", shape, author.ints(0), author.ints(2))
        none = author.op("Equal", sizes, author.ints(0))
        missing = author.op("Cast", none, to=TensorProto.INT64)
        rows = author.op("Slice", missing, author.ints(0), author.ints(1))
        sequences = {
            name: _padded(author, name, missing, (rank or 2) - 2, 2)
            for name, rank in zip(scan.sequences, _ranks(scan), strict=True)
        }
        initials = [
            _padded(author, name, rows, len(state.dims), 1)
            for name, state in zip(scan.initials, scan.states, strict=True)
        ]
        lengths = None
        if vector:
            step = author.op("Slice", missing, author.ints(1), author.ints(2))
            lengths = Lengths(
                _padded(author, vector, rows, 0, 1), author.op("Add", time, step), padded=True
            )
        return cls(author, scan.reading(sequences).starting(initials), lengths, sizes)

    def outputs(self, count: int) -> list[str]:
        """Names for the outputs of the padded loop."""
        return [self.author.fresh("padded") for _ in range(count)]

    def cut(self, padded: Sequence[str], outputs: Sequence[str]) -> None:
        """Write the outputs as the original has them."""
        author = self.author
        zeros, axes = author.ints(0, 0), author.ints(0, 1)
        rows = author.op("Slice", self.sizes, author.ints(0), author.ints(1))
        states = len(self.scan.states)
        for position, (value, output) in enumerate(zip(padded, outputs, strict=True)):
            if position < states:
                value = self._state(value, position)
                where = (author.ints(0), rows, author.ints(0))
            else:
                where = (zeros, self.sizes, axes)
            author.op("Slice", value, *where, outputs=[output])

    def _state(self, final: str, position: int) -> str:
        """A final state; the initial one where the only step stands in for none. Rows with
        lengths have seen to that already."""
        if self.lengths is not None or self.scan.time:
            return final
        time = self.author.op("Gather", self.sizes, self.author.int(1), axis=0)
        ran = self.author.op("Greater", time, self.author.int(0))
        initial, state = self.scan.initials[position], self.scan.states[position]
        return spelling.select(self.author, ran, final, initial, state.elem_type)


def _padded(author: Author, value: str, missing: str, rest: int, leading: int) -> str:
    """`value` with as many rows (and steps) of zeros behind as are missing."""
    none = author.constant(np.zeros(leading + rest, np.int64), "ints")
    parts = [none, missing]
    if rest:
        parts.append(author.constant(np.zeros(rest, np.int64), "ints"))
    return author.op("Pad", value, author.op("Concat", *parts, axis=0))
