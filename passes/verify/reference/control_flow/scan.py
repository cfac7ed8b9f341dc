"""Scan-9 and later, and what Scan-8 shares with it."""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, NodeProto

from passes.verify.executor import Array, Value
from passes.verify.reference.control_flow.collected import Collector, Elements
from passes.verify.reference.control_flow.holder import Holder
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.machine import Frame
from passes.verify.reference.value_types import tensor_type, type_of


class Scanner(Holder):
    """The common part of all versions of Scan: the counts, the body, the iteration."""

    #: The number of inputs before the carried values.
    leading = 0

    def __init__(self, node: NodeProto, around: Evaluator) -> None:
        super().__init__(node, around)
        attribute = self.attributes.get("num_scan_inputs")
        known = attribute is not None and attribute.type == AttributeProto.INT
        self.scanned = attribute.i if attribute is not None and known else 0
        self.carried = len(node.input) - self.leading - self.scanned
        if self.scanned < 1 or self.carried < 0:
            raise self.fails(
                f"num_scan_inputs is {self.scanned}, the node has {len(node.input)} inputs"
            )
        self.loop_body = self.body("body")
        self.collected = self.collected_count(self.loop_body, self.carried)
        self.names = self.loop_body.formal_inputs(self.carried + self.scanned, node)
        self.elements = Elements(self, self.loop_body, self.carried)

    def iterate(
        self,
        base: dict[str, Value],
        frame: Frame,
        state: list[Array],
        scanned: list[Array],
        collector: Collector,
    ) -> list[Array]:
        """Runs over axis 0 of `scanned`, whose lengths agree, and returns the final state."""
        for trip in range(len(scanned[0])):
            self.machine.tick()
            # With the ellipsis an element of a vector is an array too, not a scalar.
            elements = [values[trip, ...] for values in scanned]
            results = self.loop_body.call(base, frame, self.names, [*state, *elements])
            after, collected = self.split(results, self.carried)
            state = [
                self.kept("state", index, before, value)
                for index, (before, value) in enumerate(zip(state, after, strict=True))
            ]
            collector.add(collected)
        return state

    def operands(self, values: list[Value]) -> tuple[list[Array], list[Array]]:
        """The initial states and the scanned inputs, which must all be tensors."""
        tensors = [self.tensor(value, f"input {index}") for index, value in enumerate(values)]
        return tensors[: self.carried], tensors[self.carried :]

    def same_length(self, what: str, lengths: list[int]) -> int:
        """The one length that all have; `InputsRefused` when they differ."""
        if len(set(lengths)) > 1:
            raise self.refuses(f"{what} differ: {lengths}")
        return lengths[0]


class Scan9(Scanner):
    """Scan-9 to Scan-25 (operator document Scan): no batch, any axes and directions.

    Axes may be negative. All scanned lengths must agree, a state keeps shape and type, and so
    do the elements of a collected output. At length 0 the states are the initial ones and the
    collected outputs have length 0 on their axis.
    """

    def __init__(self, node: NodeProto, around: Evaluator) -> None:
        super().__init__(node, around)
        self.axes = self.ints("scan_input_axes", self.scanned, 0)
        self.backwards = self.ints("scan_input_directions", self.scanned, 0)
        self.output_axes = self.ints("scan_output_axes", self.collected, 0)
        self.prepends = self.ints("scan_output_directions", self.collected, 0)

    def __call__(self, operands: list[Value], frame: Frame) -> list[Value]:
        """Returns the final states, then the collected outputs; raises `ModelFailed`."""
        state, inputs = self.operands(operands)
        forward = [self._axis_first(index, value) for index, value in enumerate(inputs)]
        length = self.same_length("lengths of the scanned inputs", [len(x) for x in forward])
        self.ran(length)
        if not length:
            self.machine.idle_scan = True
            return [*state, *self._no_iteration(state, forward, frame)]
        scanned = [
            values[::-1] if back else values
            for values, back in zip(forward, self.backwards, strict=True)
        ]
        collector = Collector(self, self.collected)
        final = self.iterate(self.loop_body.bind(frame), frame, state, scanned, collector)
        stacks = [
            collector.stacked(index, self.output_axes[index], backwards=bool(self.prepends[index]))
            for index in range(self.collected)
        ]
        return [*final, *stacks]

    def _axis_first(self, index: int, value: Array) -> Array:
        axis = self.axes[index]
        if not -value.ndim <= axis < value.ndim:
            raise self.fails(f"axis {axis} does not fit scanned input {index}, {value.ndim}-d")
        return np.moveaxis(value, axis, 0)

    def _no_iteration(self, state: list[Array], scanned: list[Array], frame: Frame) -> list[Array]:
        types = [type_of(value) for value in state]
        types += [tensor_type(value.dtype, value.shape[1:]) for value in scanned]
        inputs = dict(zip(self.names, types, strict=True))
        self.idles(self.loop_body, inputs)
        if not self.collected:
            return []
        return self.elements.blanks(inputs, frame, [(axis, 0) for axis in self.output_axes])
