"""The size of an axis of what an operator gives, from the sizes of what it reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from onnx import NodeProto

from passes.operators import op_of
from passes.rules.affine import Affine
from passes.rules.integer_ops import attribute
from passes.rules.size_reading import SizeReading, SizeRule, common
from passes.rules.sizes_said import SAID
from passes.rules.whole_axes import cut_axes


def size_through(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """The size of an axis, counted from the front, of what a node gives; None if it is not told.

    Of several outputs, that of each of them.
    """
    if len(node.output) > 1 and op_of(node) != "Split":
        return None
    if op_of(node) in SHAPE_KEEPING:
        return read.size(node.input[0], axis)
    if op_of(node) in _BROADCASTING:
        return _broadcast(read, node, axis)
    if op_of(node) in _REDUCING:
        return _reduced(read, node, axis)
    follow = _SIZES.get(op_of(node))
    return None if follow is None else follow(read, node, axis)


def _broadcast(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    ranks = [read.rank(name) for name in node.input]
    known = [rank for rank in ranks if rank is not None]
    if len(known) != len(ranks):
        return None
    pairs = zip(node.input, (axis - max(known) + rank for rank in known), strict=True)
    sizes = [read.size(name, at) for name, at in pairs if at >= 0]
    return common(sizes)


def _reduced(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    rank, axes = read.rank(node.input[0]), read.numbers(node, 1, "axes")
    if rank is None or not axes:
        return None
    gone = {at % rank for at in axes}
    if attribute(node, "keepdims", 1):
        return Affine(1) if axis in gone else read.size(node.input[0], axis)
    return read.size(node.input[0], [at for at in range(rank) if at not in gone][axis])


def _squeezed(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    rank, axes = read.rank(node.input[0]), read.numbers(node, 1, "axes")
    if rank is None or not axes:
        return None
    gone = {at % rank for at in axes}
    return read.size(node.input[0], [at for at in range(rank) if at not in gone][axis])


def _unsqueezed(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    rank, axes = read.rank(node.input[0]), read.numbers(node, 1, "axes")
    if rank is None or axes is None:
        return None
    new = {at % (rank + len(axes)) for at in axes}
    return (
        Affine(1) if axis in new else read.size(node.input[0], axis - sum(at < axis for at in new))
    )


def _sliced(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """That of an axis that is not cut."""
    rank, count = read.rank(node.input[0]), len(node.input)
    starts, ends = read.numbers(node, 1, "starts"), read.numbers(node, 2, "ends")
    named = count > 3 or any(one.name == "axes" for one in node.attribute)
    every = None if starts is None else list(range(len(starts)))
    axes = read.numbers(node, 3, "axes") if named else every
    if rank is None or axes is None:
        return None
    steps = read.numbers(node, 4, "steps") if count > 4 else [1] * len(axes)
    cut: Sequence[int] = range(len(axes))
    if starts is not None and ends is not None and steps is not None:
        cut = cut_axes(starts, ends, steps)
    return None if axis in {axes[at] % rank for at in cut} else read.size(node.input[0], axis)


def _product(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """That of a product with a matrix, from the right."""
    rank, other = (read.rank(name) for name in node.input)
    if rank is None or rank < 2 or other != 2:
        return None
    return read.size(node.input[1], 1) if axis == rank - 1 else read.size(node.input[0], axis)


def _split(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """That of an axis that is not split."""
    rank = read.rank(node.input[0])
    if rank is None or axis == (attribute(node, "axis", 0) or 0) % rank:
        return None
    return read.size(node.input[0], axis)


def _gathered(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """That of another axis than the one that is read from, or of the indices."""
    rank, picked = (read.rank(name) for name in node.input)
    if not rank or picked is None:
        return None
    at = (attribute(node, "axis", 0) or 0) % rank
    if at <= axis < at + picked:
        return read.size(node.input[1], axis - at)
    return read.size(node.input[0], axis if axis < at else axis - picked + 1)


def _joined(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    rank = read.rank(node.input[0])
    sizes = [read.size(name, axis) for name in node.input]
    known = [size for size in sizes if size is not None]
    if rank is None or len(known) != len(sizes):
        return None
    if axis != (attribute(node, "axis", 1) or 0) % rank:
        return known[0]
    return reduce(Affine.__add__, known)


def _transposed(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    perm = next((list(one.ints) for one in node.attribute if one.name == "perm"), None)
    return None if perm is None else read.size(node.input[0], perm[axis])


#: Ops whose output has the shape of their first input.
# fmt: off
SHAPE_KEEPING = (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cast", "CastLike", "Ceil", "Celu",
    "Clip", "Cos", "Cosh", "CumSum", "DequantizeLinear", "Elu", "Erf", "Exp", "Floor", "Gelu",
    "HardSigmoid", "HardSwish", "Hardmax", "Identity", "InstanceNormalization", "IsInf", "IsNaN",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "Mish", "Neg",
    "Not", "PRelu", "QuantizeLinear", "Reciprocal", "Relu", "ReverseSequence", "Round",
    "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax",
    "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
)
_BROADCASTING = (
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow",
    "Sub", "Sum", "Where", "Xor",
)
_REDUCING = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)
# fmt: on
_SIZES: dict[str, SizeRule] = {
    "Concat": _joined,
    "Gather": _gathered,
    "MatMul": _product,
    "Slice": _sliced,
    "Split": _split,
    "Squeeze": _squeezed,
    "Transpose": _transposed,
    "Unsqueeze": _unsqueezed,
    **SAID,
}
#: All that are followed.
SIZED = (*SHAPE_KEEPING, *_BROADCASTING, *_REDUCING, *_SIZES)
