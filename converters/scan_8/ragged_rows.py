"""Splits the values that a loop over time collected by row: from [batch, longest, ...] to [batch,
time, ...].

Rows are looked up, for onnxruntime's Where takes several passes over them and loses -0.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from passes.converters.scan_8.batched_scan import RowType
from passes.converters.scan_8.sequence_lens import Lengths
from passes.operators.element_types import runs
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import END_ROWS, HANDLE_LENGTH_0


@dataclass(frozen=True)
class Final:
    """A final state to write: the state after the last valid iteration, or else the initial one."""

    initial: str
    output: str


@dataclass(frozen=True)
class RaggedRows:
    """Rows that end one by one; `longest` (int64 [1]) is how long the loop runs."""

    author: Author
    lengths: Lengths
    longest: str

    def write(
        self, run: str, element: RowType, output: str = "", final: Final | None = None
    ) -> None:
        """Write the values `run` that the loop collected: `output` with zeros after the length of
        each row, up to the full time, and a final state of which it is the history."""
        author = self.author
        behind = ""
        if final is not None and self.lengths.may_be_zero:
            with author.serving(HANDLE_LENGTH_0):
                behind = spelling.unsqueeze(author, final.initial, 1)
                run = run if output else author.op("Concat", run, behind, axis=1)
        with author.serving(END_ROWS):
            if output:
                run = self._with_zeros(run, behind, element)
                author.op("GatherND", run, self._iterations, outputs=[output], batch_dims=1)
            if final is not None:
                author.op("GatherND", run, self._last, outputs=[final.output], batch_dims=1)

    def _with_zeros(self, run: str, behind: str, element: RowType) -> str:
        """Return `run` with one iteration of zeros at its end, followed by `behind`, if there is
        any."""
        author = self.author
        leading = [0] * (2 + len(element.dims))
        paddable = runs("Pad", author.opset, element.elem_type)
        if paddable and behind:
            first = [0, 1, *leading[2:]]
            zeros_too = author.op("Pad", behind, author.ints(*first, *leading))
            with author.serving(HANDLE_LENGTH_0):
                return author.op("Concat", run, zeros_too, axis=1)
        if paddable:
            return author.op("Pad", run, author.ints(*leading, 0, 1, *leading[2:]))
        shape = spelling.shape_of(author, self.lengths.ends)  # [batch, 1]
        if element.dims:
            shape = author.op("Concat", shape, element.shape(author, run, 2), axis=0)
        parts = filter(None, [run, spelling.zeros(author, shape, element.elem_type), behind])
        return author.op("Concat", *parts, axis=1)

    @cached_property
    def _last(self) -> str:
        """The last valid iteration of each row, int64 [batch, 1]; -1 where there is none."""
        return self.author.op("Sub", self.lengths.ends, self.author.int(1))

    @cached_property
    def _iterations(self) -> str:
        """Return the iterations, int64 [batch, time, 1]; the zeros follow the last valid one of a
        row."""
        author = self.author
        steps = spelling.count_to(author, self.lengths.time)
        runs = author.op("Less", steps, self.lengths.ends)
        return spelling.unsqueeze(author, author.op("Where", runs, steps, self.longest), 2)
