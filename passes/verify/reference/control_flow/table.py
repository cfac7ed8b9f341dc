"""The nodes that hold bodies, by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onnx import NodeProto

from passes.verify.reference.control_flow.branch import If
from passes.verify.reference.control_flow.loop import Loop
from passes.verify.reference.control_flow.scan import scan
from passes.verify.reference.control_flow.sequence_map import SequenceMap
from passes.verify.reference.kernels import Kernel

if TYPE_CHECKING:
    from passes.verify.reference.evaluator import Evaluator

CONTROL_FLOW: dict[str, Callable[[NodeProto, Evaluator], Kernel]] = {
    "If": If,
    "Loop": Loop,
    "Scan": scan,
    "SequenceMap": SequenceMap,
}
