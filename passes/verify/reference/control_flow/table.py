"""The nodes that hold bodies, by operator: If and SequenceMap here, the loops each in a file."""

from __future__ import annotations

from collections.abc import Callable

from onnx import NodeProto

from passes.verify.executor import Value, kind_of
from passes.verify.reference.control_flow.holder import Holder
from passes.verify.reference.control_flow.loop import Loop
from passes.verify.reference.control_flow.scan import Scan9
from passes.verify.reference.control_flow.scan_8 import Scan8
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.machine import Frame, Kernel


class If(Holder):
    """If-1 to If-25 (operator document If): `cond` is a bool tensor of one element.

    The branch not taken is never run; what its captures hold does not matter. A branch may
    return an outer value directly, a sequence, or an empty optional.
    """

    def __init__(self, node: NodeProto, around: Evaluator) -> None:
        super().__init__(node, around)
        self.branches = {True: self.body("then_branch"), False: self.body("else_branch")}

    def __call__(self, operands: list[Value], frame: Frame) -> list[Value]:
        """Returns the outputs of the branch taken; raises `ModelFailed` for a bad `cond`."""
        taken = self.flag(operands[0], "cond")
        self.did("true" if taken else "false")
        self.decided(int(taken))
        branch = self.branches[taken]
        results = branch.call(branch.bind(frame), frame)
        if len(results) < len(self.node.output):
            raise self.fails(
                f"the branch taken has {len(results)} outputs, the node {len(self.node.output)}"
            )
        return results


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


def _scan(node: NodeProto, around: Evaluator) -> Kernel:
    """Return the kernel of a Scan at the opset of the graph that contains it."""
    return Scan8(node, around) if around.versions.get("", 9) < 9 else Scan9(node, around)


#: The kernels of operators with bodies.
CONTROL_FLOW: dict[str, Callable[[NodeProto, Evaluator], Kernel]] = {
    "If": If,
    "Loop": Loop,
    "Scan": _scan,
    "SequenceMap": SequenceMap,
}
