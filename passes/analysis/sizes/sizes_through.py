"""The size of an axis of what an operator gives, from the sizes of what it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy.typing as npt
from onnx import NodeProto

from passes.analysis.integers.affine import Affine, Ints
from passes.analysis.integers.integer_ops import attribute
from passes.analysis.sizes.whole_axes import cut_axes
from passes.ir.operators import op_of
from passes.types.value_types import Dims


@dataclass(frozen=True)
class SizeReading:
    """Reads what a node reads: the size of an axis, the dims, the value where it is fixed, and
    the whole numbers that it holds."""

    size: Callable[[str, int], Affine | None]
    dims: Callable[[str], Dims | None]
    constant: Callable[[str], npt.NDArray[Any] | None]
    ints: Callable[[str], Ints | None]

    def rank(self, name: str) -> int | None:
        """How many axes a value has."""
        dims = self.dims(name)
        return None if dims is None else len(dims)

    def items(self, name: str) -> tuple[Affine, ...] | None:
        """The numbers of a vector."""
        found = self.ints(name)
        return found.items if found is not None and found.rank == 1 else None

    def numbers(self, node: NodeProto, position: int, name: str) -> list[int] | None:
        """Numbers that are an input, or an attribute in older opsets, where they are fixed."""
        if position < len(node.input) and node.input[position]:
            array = self.constant(node.input[position])
            return None if array is None else [int(one) for one in array.ravel()]
        return next((list(one.ints) for one in node.attribute if one.name == name), None)


#: Tells the size of an axis, counted from the front, of what a node gives.
SizeRule = Callable[[SizeReading, NodeProto, int], Affine | None]


def common(sizes: Sequence[Affine | None]) -> Affine | None:
    """The size that all have that do not repeat their only element."""
    several = [size for size in sizes if size is None or size.number != 1]
    return (several or [Affine(1)])[0] if len(set(several)) <= 1 else None


def _filled(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """One of the sizes that a tensor is made with."""
    items = read.items(node.input[0])
    return items[axis] if items is not None and axis < len(items) else None


def _expanded(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    rank, items = read.rank(node.input[0]), read.items(node.input[1])
    if rank is None or items is None:
        return None
    before = max(rank, len(items))  # both count from the last axis
    own, wanted = axis - before + rank, axis - before + len(items)
    sizes = [items[wanted]] if wanted >= 0 else []
    return common([*sizes, read.size(node.input[0], own)] if own >= 0 else sizes)


def _reshaped(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """That which the new shape says, unless it may be the 0 that copies a size, or the -1."""
    items = read.items(node.input[1]) if len(node.input) > 1 else None
    rank = read.rank(node.input[0])
    if items is None or rank is None or axis >= len(items):
        return None
    said, copies = items[axis], not attribute(node, "allowzero", 0)
    own = read.size(node.input[0], axis) if axis < rank else None
    if copies and said.number == 0:
        return own
    sure = said.at_least(1 if copies else 0)
    return said if sure or (said == own and said.at_least(0)) else None


def _counted(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """How many numbers a Range counts one by one, if not fewer than none."""
    start, limit, step = (read.ints(name) for name in node.input)
    if start is None or limit is None or step is None:
        return None
    if start.single is None or limit.single is None or step.single is None:
        return None
    counts = step.single.number == 1 and limit.single.at_least(start.single)
    return limit.single - start.single if counts else None


#: Ops whose shape an input says.
SAID: dict[str, SizeRule] = {
    "ConstantOfShape": _filled,
    "Expand": _expanded,
    "Range": _counted,
    "Reshape": _reshaped,
}


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
