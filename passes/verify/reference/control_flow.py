"""The nodes that hold bodies, by operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onnx import NodeProto

from passes.verify.reference.branch import If
from passes.verify.reference.kernels import Kernel
from passes.verify.reference.loop import Loop
from passes.verify.reference.scan import scan
from passes.verify.reference.sequence_map import SequenceMap

if TYPE_CHECKING:
    from passes.verify.reference.evaluator import Evaluator

CONTROL_FLOW: dict[str, Callable[[NodeProto, Evaluator], Kernel]] = {
    "If": If,
    "Loop": Loop,
    "Scan": scan,
    "SequenceMap": SequenceMap,
}
