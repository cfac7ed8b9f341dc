"""If: runs one of two bodies."""

from __future__ import annotations

from onnx import NodeProto

from passes.verify.executor import Value
from passes.verify.reference.control_flow.holder import Holder
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.machine import Frame


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
        branch = self.branches[taken]
        results = branch.call(branch.bind(frame), frame)
        if len(results) < len(self.node.output):
            raise self.fails(
                f"the branch taken has {len(results)} outputs, the node {len(self.node.output)}"
            )
        return results
