"""Scan-8: batched, with optional sequence lengths."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from passes.verify.executor import Array, Value
from passes.verify.reference.control_flow.collected import Collector
from passes.verify.reference.control_flow.scan import Scanner
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.machine import Frame
from passes.verify.reference.value_types import blank, tensor_type


class Scan8(Scanner):
    """Scan-8 (operator document Scan, version 8): batch axis 0, scanned axis 1.

    Row b runs `sequence_lens[b]` iterations (int64 [batch]; omitted: all of them). Its final
    state is the one after its last valid iteration, the initial one at length 0. Its collected
    outputs are in iteration order at 0..len-1, then zeros (the document leaves them open;
    onnxruntime writes zeros). A reversed input is read from x[len-1] to x[0].
    """

    leading = 1

    def __init__(self, node: NodeProto, around: Evaluator) -> None:
        super().__init__(node, around)
        self.backwards = self.ints("directions", self.scanned, 0)

    def __call__(self, operands: list[Value], frame: Frame) -> list[Value]:
        """Returns the final states [batch, ...] and collected outputs [batch, max, ...].

        Raises `ModelFailed` where batch sizes or lengths do not agree, a length lies outside
        of 0..max, a state changes, or elements differ.
        """
        initial, scanned = self.operands(operands[1:])
        batch, longest = self._sizes(initial, scanned)
        lengths = self._lengths(operands[0], batch, longest)
        for length in set(lengths):
            self.ran(length)
        if not lengths or 0 in lengths:
            self.machine.idle = self.machine.idle_scan = True
        base = self.loop_body.bind(frame) if any(lengths) else {}
        collector = Collector(self, self.collected)
        rows = [
            self._row(row, length, (base, frame), (initial, scanned), collector)
            for row, length in enumerate(lengths)
        ]
        finals = [
            np.stack([state[index] for state in rows]) if rows else initial[index]
            for index in range(self.carried)
        ]
        if any(lengths):
            return [*finals, *self._padded(collector, lengths, longest)]
        return [*finals, *self._no_iteration(initial, scanned, batch, longest, frame)]

    def _sizes(self, initial: list[Array], scanned: list[Array]) -> tuple[int, int]:
        for index, value in enumerate(scanned):
            if value.ndim < 2:
                raise self.fails(f"scanned input {index} is {value.ndim}-d, at least 2 are needed")
        if any(value.ndim < 1 for value in initial):
            raise self.fails("an initial state has no batch axis")
        batch = self.same_length("batch sizes", [len(x) for x in (*initial, *scanned)])
        longest = self.same_length(
            "lengths of the scanned inputs", [value.shape[1] for value in scanned]
        )
        return batch, longest

    def _lengths(self, value: Value, batch: int, longest: int) -> list[int]:
        if value is None:
            return [longest] * batch
        tensor = self.tensor(value, "sequence_lens")
        if tensor.dtype != np.int64 or tensor.shape != (batch,):
            raise self.fails(
                f"sequence_lens must be int64 of shape ({batch},), "
                f"not {tensor.dtype} of shape {tensor.shape}"
            )
        lengths = [int(length) for length in tensor]
        wrong = [length for length in lengths if not 0 <= length <= longest]
        if wrong:
            raise self.refuses(f"sequence_lens holds {wrong[0]}, outside of 0..{longest}")
        return lengths

    def _row(
        self,
        row: int,
        length: int,
        scope: tuple[dict[str, Value], Frame],
        operands: tuple[list[Array], list[Array]],
        collector: Collector,
    ) -> list[Array]:
        """Runs one row and returns its final state."""
        initial, scanned = operands
        valid = [
            values[row, :length][::-1] if back else values[row, :length]
            for values, back in zip(scanned, self.backwards, strict=True)
        ]
        state = [values[row, ...] for values in initial]
        return self.iterate(*scope, state, valid, collector) if length else state

    def _padded(self, collector: Collector, lengths: list[int], longest: int) -> list[Array]:
        """The collected elements, row after row in the collector, each row filled to `longest`."""
        ends = np.cumsum(lengths)
        padded = []
        for elements in collector.elements:
            shape = (len(lengths), longest, *elements[0].shape)
            whole = blank(shape, elements[0].dtype)
            for row, (length, end) in enumerate(zip(lengths, ends, strict=True)):
                if length:
                    whole[row, :length] = np.stack(elements[end - length : end])
            padded.append(whole)
        return padded

    def _no_iteration(
        self, initial: list[Array], scanned: list[Array], batch: int, longest: int, frame: Frame
    ) -> list[Array]:
        if not self.collected:
            return []
        types = [tensor_type(value.dtype, value.shape[1:]) for value in initial]
        types += [tensor_type(value.dtype, value.shape[2:]) for value in scanned]
        inputs = dict(zip(self.names, types, strict=True))
        places = [(0, batch, longest)] * self.collected
        return self.elements.blanks(inputs, frame, places)
