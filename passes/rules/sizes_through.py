"""The size of an axis of what a node gives, from the sizes of what it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy.typing as npt
from onnx import NodeProto

from passes.rules.affine import Affine
from passes.rules.integer_ops import attribute
from passes.rules.whole_axes import cut_axes
from passes.value_types import Dims


@dataclass(frozen=True)
class SizeReading:
    """Reads what a node reads: the size of an axis, the dims, the value where it is fixed."""

    size: Callable[[str, int], Affine | None]
    dims: Callable[[str], Dims | None]
    constant: Callable[[str], npt.NDArray[Any] | None]

    def rank(self, name: str) -> int | None:
        """How many axes a value has."""
        dims = self.dims(name)
        return None if dims is None else len(dims)

    def numbers(self, node: NodeProto, position: int, name: str) -> list[int] | None:
        """Numbers that are an input, or an attribute in older opsets, where they are fixed."""
        if position < len(node.input) and node.input[position]:
            array = self.constant(node.input[position])
            return None if array is None else [int(one) for one in array.ravel()]
        return next((list(one.ints) for one in node.attribute if one.name == name), None)


def size_through(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """The size of an axis, counted from the front, of what a node gives; None if it is not told.

    Of several outputs, that of each of them.
    """
    if len(node.output) > 1 and node.op_type != "Split":
        return None
    if node.op_type in SHAPE_KEEPING:
        return read.size(node.input[0], axis)
    if node.op_type in _BROADCASTING:
        return _broadcast(read, node, axis)
    if node.op_type in _REDUCING:
        return _reduced(read, node, axis)
    follow = _SIZES.get(node.op_type)
    return None if follow is None else follow(read, node, axis)


def _broadcast(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """The size that all have that do not repeat their only element."""
    ranks = [read.rank(name) for name in node.input]
    known = [rank for rank in ranks if rank is not None]
    if len(known) != len(ranks):
        return None
    pairs = zip(node.input, (axis - max(known) + rank for rank in known), strict=True)
    sizes = [read.size(name, at) for name, at in pairs if at >= 0]
    several = [size for size in sizes if size is None or size.number != 1]
    return (several or [Affine(1)])[0] if len(set(several)) <= 1 else None


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
    if rank is None or starts is None or ends is None:
        return None
    named = count > 3 or any(one.name == "axes" for one in node.attribute)
    axes = read.numbers(node, 3, "axes") if named else list(range(len(starts)))
    if axes is None:
        return None
    steps = read.numbers(node, 4, "steps") if count > 4 else [1] * len(axes)
    cut = range(len(axes)) if steps is None else cut_axes(starts, ends, steps)
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


#: Ops of one input whose output has its shape.
SHAPE_KEEPING = (
    *("Abs", "Cast", "Ceil", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "Identity", "LeakyRelu"),
    *("Log", "LogSoftmax", "Neg", "Not", "Reciprocal", "Relu", "Round", "Sigmoid", "Sin"),
    *("Softmax", "Softplus", "Sqrt", "Tanh"),
)
_BROADCASTING = (
    *("Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max"),
    *("Min", "Mul", "Or", "Pow", "Sub", "Where", "Xor"),
)
_REDUCING = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean"),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
_SIZES: dict[str, Callable[[SizeReading, NodeProto, int], Affine | None]] = {
    "Concat": _joined,
    "MatMul": _product,
    "Slice": _sliced,
    "Split": _split,
    "Squeeze": _squeezed,
    "Transpose": _transposed,
    "Unsqueeze": _unsqueezed,
}
#: All that are followed.
SIZED = (*SHAPE_KEEPING, *_BROADCASTING, *_REDUCING, *_SIZES)
