"""The nodes that hold bodies, by operator."""

from __future__ import annotations

from collections.abc import Callable

from onnx import NodeProto

from passes.verify.reference.control_flow.branch import If
from passes.verify.reference.control_flow.loop import Loop
from passes.verify.reference.control_flow.scan import Scan9
from passes.verify.reference.control_flow.scan_8 import Scan8
from passes.verify.reference.control_flow.sequence_map import SequenceMap
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.machine import Kernel


def _scan(node: NodeProto, around: Evaluator) -> Kernel:
    """Return the kernel of a Scan at the opset of the graph that contains it."""
    return Scan8(node, around) if around.versions.get("", 9) < 9 else Scan9(node, around)


CONTROL_FLOW: dict[str, Callable[[NodeProto, Evaluator], Kernel]] = {
    "If": If,
    "Loop": Loop,
    "Scan": _scan,
    "SequenceMap": SequenceMap,
}
