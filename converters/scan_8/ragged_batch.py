"""A whole batch at once when its rows differ in length: trimming, reversing, masking, padding.

The mask is computed once, before the loop, and scanned with the inputs. The sequence is
trimmed to the longest length, or runs to its end where masks are to end the rows: then no size is
known only at run time. Where an op of the body may fail on values that the original
never saw, a finished row is fed its iteration 0 again, with its initial state, and a row of
length 0 what a row that runs is fed; what comes of it is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from onnx import GraphProto, TensorProto, helper

from passes.converters.scan_8.batched_scan import BatchedScan, RowType
from passes.converters.scan_8.sequence_lens import Lengths
from passes.ir.protos import copied
from passes.ir.purposes import END_ROWS, HANDLE_LENGTH_0
from passes.operators.element_types import runs
from passes.types.value_types import tensor_type
from passes.vectorize import Vectorizer
from passes.vectorize.row_loops import choose, row_mask
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class Ragged:
    """A Scan-8 with lengths. `safe`: every op of the body may run on any values."""

    author: Author
    ctx: Vectorizer
    scan: BatchedScan
    lengths: Lengths
    safe: bool

    @cached_property
    def longest(self) -> str:
        """The longest length, int64 [1], or the time where masks end the rows. Where all are 0,
        bodies that may take one step: a Scan over nothing fails in onnxruntime."""
        author = self.author
        if self.lengths.masked:
            return spelling.unsqueeze(author, self.lengths.time, 0)
        least = author.value(np.full((1, 1), int(self.safe), np.int64), "least")
        with author.serving(END_ROWS):
            lengths = author.op("Concat", self.lengths.ends, least, axis=0)
            return spelling.along(author, "ReduceMax", lengths, [0], keepdims=0)

    @property
    def may_be_empty(self) -> bool:
        """True if the loop may have nothing to run."""
        runs = self.safe and self.scan.time  # `longest` is 1 at least
        return self.lengths.may_all_be_zero and not runs

    @cached_property
    def rows(self) -> RaggedRows:
        """The writer that splits the collected values of the loop by row."""
        return RaggedRows(self.author, self.lengths, self.longest)

    def write(self, run: str, element: RowType, output: str) -> None:
        """Write the values `run` that the loop collected, with zeros after the length of each
        row."""
        if not self.lengths.masked:
            self.rows.write(run, element, output)
            return
        author = self.author
        with author.serving(END_ROWS):
            zero = spelling.zero(author, element.elem_type)
            mask = row_mask(author, self._mask, len(element.dims), 2)
            author.name_as(choose(author, mask, zero, run, element.elem_type), output)

    def scanned_mask(self) -> str:
        """The mask as the loop scans it, bool [longest, batch, 1, ...]: shaped once, before the
        loop, for the state of the highest rank."""
        with self.author.serving(END_ROWS):
            by_time = self.author.op("Transpose", self._mask, perm=[1, 0])
            return row_mask(self.author, by_time, self._state_rank, 2)

    @property
    def _state_rank(self) -> int:
        return max((len(state.dims) for state in self.scan.states), default=0)

    def _for_rank(self, mask: str, rank: int) -> str:
        """The mask of one iteration, shaped for a state of this rank."""
        if rank == self._state_rank:
            return mask
        axes = self.ctx.author.ints(*range(1 + rank, 1 + self._state_rank))
        return self.ctx.author.op("Squeeze", mask, axes)

    @cached_property
    def _mask(self) -> str:
        """True if row b has ended before iteration t, bool [batch, longest].

        It is not the opposite, since onnxruntime's Where loses -0.0 of the values that it takes
        where the mask holds.
        """
        author = self.author
        run = spelling.count_to(author, self.lengths.time)
        if not self.lengths.masked:
            run = author.op("Slice", run, author.ints(0), self.longest)
        return author.op("GreaterOrEqual", run, self.lengths.ends)

    def sequences(self) -> list[str]:
        """The scanned tensors as the loop reads them, [batch, longest, ...], all forwards."""
        with self.author.serving(END_ROWS):
            return [
                self._sequence(one.tensor, one.reversed, elem_type, index)
                for index, (one, elem_type) in enumerate(
                    zip(self.scan.form.scanned, self.scan.sequence_types, strict=True)
                )
            ]

    def _sequence(self, tensor: str, backwards: bool, elem_type: int, index: int) -> str:
        author = self.author
        one = author.ints(1)
        value = tensor
        if not self.lengths.masked:
            value = author.once(
                ("until the longest", tensor),
                lambda: author.op("Slice", tensor, author.ints(0), self.longest, one),
            )
        if backwards:
            ends = self.scan.form.lengths
            value = author.op("ReverseSequence", value, ends, batch_axis=0, time_axis=1)
        if self.safe:
            return value
        if self.lengths.rows:
            value = self._borrowed(value)
        first = spelling.part(author, value, 1, 0, 1)
        rank = self._slice_rank(index)
        mask = row_mask(author, self._mask, rank, 2)
        return choose(author, mask, first, value, elem_type)

    def _slice_rank(self, index: int) -> int:
        """The rank of one element of a scanned tensor, without batch and time."""
        position = len(self.scan.states) + index
        return self.ctx.rank(self.ctx.rows.graph.input[position].name)

    def _borrowed(self, value: str) -> str:
        """For each row the row that it runs on; GatherND is right for strings, too."""
        with self.author.serving(HANDLE_LENGTH_0):
            return self.author.op("GatherND", value, self.lengths.rows)

    def body(self) -> GraphProto:
        """The body for the whole batch, with one more input: which rows have ended."""
        inner = self.ctx.author
        graph = copied(self.ctx.rows.graph)
        mask = inner.fresh("ended")
        carried = [value.name for value in graph.input[: len(self.scan.states)]]
        old = carried if self.safe else self._feed_first(carried, mask)
        body = self.ctx.whole(graph, [value.name for value in graph.output]).graph
        outputs = [value.name for value in body.output]
        for position, (name, state) in enumerate(zip(old, self.scan.states, strict=True)):
            shaped = self._for_rank(mask, len(state.dims))
            new = outputs[position]
            outputs[position] = choose(inner, shaped, name, new, state.elem_type)
        return self._closed(body, old, outputs, mask)

    def _closed(
        self, body: GraphProto, old: list[str], outputs: list[str], mask: str
    ) -> GraphProto:
        """The body with the nodes written since, the kept states and the mask as an input."""
        inner = self.ctx.author
        inputs = list(body.input)
        for position, name in enumerate(old):
            inputs[position].name = name
        dims = (self.scan.batch, *[1] * self._state_rank)
        inputs.append(helper.make_value_info(mask, tensor_type(TensorProto.BOOL, dims)))
        results = list(body.output)
        for value, name in zip(results, outputs, strict=True):
            value.name = name
        return inner.graph(body.name, inputs, results)

    def _feed_first(self, carried: list[str], mask: str) -> list[str]:
        """Feed finished rows their initial state; answers with the names of the kept states."""
        inner = self.ctx.author
        kept = []
        for name, initial, state in zip(carried, self.scan.initials, self.scan.states, strict=True):
            own = inner.fresh(f"{name}/kept")
            first = self._borrowed(initial) if self.lengths.rows else initial
            shaped = self._for_rank(mask, len(state.dims))
            fed = choose(inner, shaped, first, own, state.elem_type)
            inner.name_as(fed, name)
            kept.append(own)
        return kept


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
