"""SequenceMap: a body run on every element of a sequence."""

from __future__ import annotations

from onnx import NodeProto

from passes.verify.executor import Value
from passes.verify.reference.control_flow.holder import Holder, kind_of
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.machine import Frame


class SequenceMap(Holder):
    """SequenceMap-17 (operator document SequenceMap).

    Further inputs that are sequences are read element by element with the first one and must
    not be shorter; tensors are handed to every iteration.
    """

    def __init__(self, node: NodeProto, around: Evaluator) -> None:
        super().__init__(node, around)
        self.loop_body = self.body("body")
        self.names = self.loop_body.formal_inputs(len(node.input), node)

    def __call__(self, operands: list[Value], frame: Frame) -> list[Value]:
        """Returns one sequence per output of the body; raises `ModelFailed`."""
        first, *others = operands
        if not isinstance(first, list):
            raise self.fails(f"its first input must be a sequence, not {kind_of(first)}")
        for other in others:
            if isinstance(other, list) and len(other) < len(first):
                raise self.fails(f"the sequences have {len(first)} and {len(other)} elements")
        base = self.loop_body.bind(frame)
        collected: list[list[Value]] = [[] for _ in self.loop_body.output_names_]
        for index, element in enumerate(first):
            self.machine.tick()
            fed = [element, *(x[index] if isinstance(x, list) else x for x in others)]
            results = self.loop_body.call(base, frame, self.names, fed)
            for sequence, value in zip(collected, results, strict=True):
                sequence.append(value)
        return list(collected)
