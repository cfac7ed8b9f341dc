"""Loop: for, while, do-while, both at once, or forever."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TypeProto

from passes.verify.executor import Array, Value
from passes.verify.reference.control_flow.collected import Collector, Elements
from passes.verify.reference.control_flow.holder import Holder
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.machine import Frame
from passes.verify.reference.value_types import tensor_type, type_of


class Loop(Holder):
    """Loop-1 to Loop-25 (operator document Loop), all five modes.

    `M` (int64, shape [] or [1]) and `cond` (bool, one element) may each be omitted: without
    `M` there is no limit, without `cond` the loop starts. The initial `cond` is tested before
    iteration 0, what iteration k returns decides on iteration k + 1, also where `cond` is omitted:
    there the document has it ignored, but onnxruntime does not. The body gets iteration number and
    condition in the rank, 0 or 1, that it declares. Carried
    values may be sequences or empty optionals and may change shape, not type. A collected
    value of rank r gives rank r + 1. No iteration: carried values are the initial ones,
    collected outputs have length 0.
    """

    def __init__(self, node: NodeProto, around: Evaluator) -> None:
        super().__init__(node, around)
        self.loop_body = self.body("body")
        self.carried = max(0, len(node.input) - 2)
        self.collected = self.collected_count(self.loop_body, 1 + self.carried)
        self.names = self.loop_body.formal_inputs(2 + self.carried, node)
        self.elements = Elements(self, self.loop_body, 1 + self.carried)
        ranks = {
            value.name: len(value.type.tensor_type.shape.dim) for value in self.graph("body").input
        }
        self.number_shape, self.flag_shape = ((1,) * min(1, ranks[name]) for name in self.names[:2])

    def __call__(self, operands: list[Value], frame: Frame) -> list[Value]:
        """Returns the carried values, then the collected ones.

        Raises `ModelFailed` for malformed operands and for elements that change; `CannotRun`
        for a loop without end, once the time is over.
        """
        limit, cond, initial = self._operands(operands)
        carried, collector, trips = self._iterate(limit, cond, initial, frame)
        if trips:
            stacks = [collector.stacked(index) for index in range(self.collected)]
        else:
            stacks = self._no_iteration(initial, frame)
        return [*carried, *stacks]

    def _operands(self, operands: list[Value]) -> tuple[int | None, Value, list[Value]]:
        padded = [*operands, None, None]
        limit = None if padded[0] is None else self._trip_limit(padded[0])
        return limit, padded[1], operands[2:]

    def _trip_limit(self, value: Value) -> int:
        tensor = self.tensor(value, "M")
        if tensor.dtype != np.int64 or tensor.shape not in ((), (1,)):
            raise self.fails(f"M must be one int64, not {tensor.dtype} of shape {tensor.shape}")
        return int(tensor.item())

    def _iterate(
        self, limit: int | None, cond: Value, initial: list[Value], frame: Frame
    ) -> tuple[list[Value], Collector, int]:
        body, collector = self.loop_body, Collector(self, self.collected)
        going = cond is None or self.flag(cond, "cond")
        carried, trip = initial, 0
        base = body.bind(frame) if limit is None or limit > 0 else {}
        true = np.ones(self.flag_shape, np.bool_)
        while going and (limit is None or trip < limit):
            self.machine.tick()
            number = np.array([trip] if self.number_shape else trip, np.int64)
            answer, *results = body.call(base, frame, self.names, [number, true, *carried])
            going = self.flag(answer, "the condition that the body returns")
            after, elements = self.split(results, self.carried)
            for index, (before, value) in enumerate(zip(carried, after, strict=True)):
                self.same_kind("carried value", index, before, value)
                self.resizes(body, self.names[2 + index], before, value)
            if not trip:  # the others are as large
                collected = enumerate(elements, start=1 + self.carried)
                kept = all(body.returns(position, value) for position, value in collected)
                self.machine.undeclared |= not kept
            collector.add(elements)
            carried, trip = after, trip + 1
        self.ran(trip)
        if not going:
            self.did("ended")
        return carried, collector, trip

    def _no_iteration(self, initial: list[Value], frame: Frame) -> list[Array]:
        fed = {name: type_of(value) for name, value in zip(self.names[2:], initial, strict=True)}
        self.idles(self.loop_body, fed)
        if not self.collected:
            return []
        types = [
            tensor_type(np.dtype(np.int64), self.number_shape),
            tensor_type(np.dtype(np.bool_), self.flag_shape),
        ]
        # Carried values may change their shapes, so the initial ones determine only the types.
        carried: list[TypeProto] = [type_of(value, shaped=False) for value in initial]
        inputs = dict(zip(self.names, [*types, *carried], strict=True))
        places = [(0, 0)] * self.collected
        return self.elements.blanks(inputs, frame, places)
