"""Which nodes of a branch run on tensors without elements, in every executor."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.operators import op_of
from passes.rules.shapes_fit import goes_by_element
from passes.rules.where_empty import WhereEmpty
from passes.value_types import elem_type_of

#: Ops that move data, whatever there is of it.
_MOVING = frozenset(
    {"Clip", "Concat", "Gather", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
)
_ONE_AXIS = 13  # the opset from which a Softmax does not lay axes together


def runs_on_nothing(level: WhereEmpty, node: NodeProto) -> bool:
    """Whether a node runs, and as its document says, on what the branch reads.

    Of a reducer with a negative axis, onnxruntime makes another shape, strings without elements it
    does not transpose, and onnx's reference does not flatten nothing.
    """
    kinds = {elem_type_of(level.type_of(name)) for name in (*node.input, *node.output) if name}
    if kinds & {0, TensorProto.STRING}:
        return False
    known = goes_by_element(node) or op_of(node) in _MOVING
    if op_of(node) in ("MatMul", "Gemm"):
        known = _multiplies(level, node)
    if op_of(node) in ("LogSoftmax", "Softmax"):
        known = level.site.opset >= _ONE_AXIS
    return known and level.cannot_fail(node)


def gives_nothing_anew(level: WhereEmpty, node: NodeProto) -> bool:
    """Whether a node, which is to go, could not fail."""
    if op_of(node) == "ConstantOfShape":
        return level.has_sizes(node.output[0])
    return level.cannot_fail(node)


def _multiplies(level: WhereEmpty, node: NodeProto) -> bool:
    """Whether a product is one with a matrix, and sums up something."""
    left, right = (level.dims_of(name) for name in node.input[:2])
    if left is None or right is None or len(right) != 2 or len(left) < 2:
        return False
    return all(isinstance(size, int) and size for size in right)
