"""Which values may come out otherwise in their last bits when sums are regrouped."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from tests.instruments.generate.values import FLOATS, Value

_EXACT = """
    Abs Add And Ceil Clip Compress Concat ConcatFromSequence ConstantOfShape DepthToSpace Equal
    Expand EyeLike Flatten Floor Gather GatherElements GatherND Greater GreaterOrEqual Hardmax
    Identity IsInf IsNaN LeakyRelu Less LessOrEqual Max MaxPool Min Mul Neg NonZero Not OneHot Or
    PRelu Pad Range ReduceMax ReduceMin Relu Reshape ReverseSequence Round ScatterElements ScatterND
    SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceLength Shape Sign Size Slice
    SpaceToDepth Split SplitToSequence Squeeze Sub ThresholdedRelu Tile TopK Transpose Trilu
    Unsqueeze Where Xor
"""
#: Ops that move, select, compare, or compute each element on its own without transcendentals.
EXACT = frozenset(_EXACT.split())
#: Ops that only move and select: these keep even narrow floats as they are.
_MOVES = EXACT - {"Abs", "Add", "Mul", "Sub", "LeakyRelu", "PRelu", "ThresholdedRelu", "Range"}


def rounds(node: NodeProto, inputs: Sequence[Value]) -> bool:
    """Whether the outputs of a node may be rounded in more than one way."""
    if any(value.rough for value in inputs):
        return node.op_type not in ("Shape", "Size", "SequenceLength")
    known = _MOVES if any(value.narrow for value in inputs) else EXACT
    return node.op_type not in known and any(value.elem in FLOATS for value in inputs)
