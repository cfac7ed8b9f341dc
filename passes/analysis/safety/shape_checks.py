"""What ops that do more than go element by element ask of the shapes they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from onnx import NodeProto

from passes.analysis.integers.folding import Array
from passes.ir.operators import op_of
from passes.types.value_types import Dim, Dims


@dataclass(frozen=True)
class Reading:
    """What is known of the values that a node reads: dims, fixed values; `trusted`: whether
    sizes of one symbol are equal, as proven dims are."""

    opset: int
    dims_of: Callable[[str], Dims | None]
    constant: Callable[[str], Array | None]
    trusted: bool = True

    def dims(self, node: NodeProto) -> list[Dims] | None:
        """The dims of all inputs that are not omitted; None where a rank is not known."""
        found = [self.dims_of(name) for name in node.input if name]
        return None if None in found else [one for one in found if one is not None]

    def same(self, sizes: Sequence[Dim]) -> bool:
        """Whether these are one size."""
        first, *rest = sizes
        known = isinstance(first, int) or (self.trusted and first is not None)
        return not rest or (known and all(one == first for one in rest))

    def broadcast(self, shapes: Sequence[Dims]) -> Dims | None:
        """The shape that these broadcast to, None where they may not."""
        result: list[Dim] = []
        for column in zip_longest(*(reversed(one) for one in shapes), fillvalue=1):
            sizes = [size for size in column if size != 1]
            if sizes and not self.same(sizes):
                return None
            result.append(sizes[0] if sizes else 1)
        return tuple(reversed(result))

    def ints(self, node: NodeProto, attribute: str, position: int) -> list[int] | None:
        """Whole numbers that an attribute or a fixed input gives; None where neither does."""
        said = next((one for one in node.attribute if one.name == attribute), None)
        if said is not None:
            return list(said.ints)
        if position >= len(node.input) or not node.input[position]:
            return None
        value = self.constant(node.input[position])
        return None if value is None else [int(one) for one in value.reshape(-1)]


def _int(node: NodeProto, name: str, default: int) -> int:
    return next((int(one.i) for one in node.attribute if one.name == name), default)


def _axis(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    default = -1 if reading.opset >= 13 and op_of(node) != "Flatten" else 1
    rank = len(dims[0])
    return -rank <= _int(node, "axis", default) < rank


def _clip(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    return all(one == () for one in dims[1:])


def _matmul(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    left, right = dims
    if not left or not right or not reading.same([left[-1], right[-2:][0]]):
        return False
    return reading.broadcast([left[:-2], right[:-2]]) is not None


def _gemm(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    if len(dims[0]) != 2 or len(dims[1]) != 2:
        return False
    left = dims[0][:: -1 if _int(node, "transA", 0) else 1]
    right = dims[1][:: -1 if _int(node, "transB", 0) else 1]
    made = (left[0], right[1])
    added = len(dims) < 3 or reading.broadcast([made, dims[2]]) == made
    return added and reading.same([left[1], right[0]])


def _concat(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    rank, axis = len(dims[0]), _int(node, "axis", 1)
    if not -rank <= axis < rank or any(len(one) != rank for one in dims):
        return False
    return all(
        at == axis % rank or reading.same(column)
        for at, column in enumerate(zip(*dims, strict=True))
    )


def _transpose(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    order = reading.ints(node, "perm", 1)
    return order is None or sorted(order) == list(range(len(dims[0])))


def _gather(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    axis, index = _int(node, "axis", 0), reading.constant(node.input[1])
    if index is None or not -len(dims[0]) <= axis < len(dims[0]):
        return False
    size, least = dims[0][axis], 0 if reading.opset < 11 else -1
    if not isinstance(size, int):
        return False
    return bool(np.all(index >= least * size) and np.all(index < size))


def _squeeze(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    axes, rank = reading.ints(node, "axes", 1), len(dims[0])
    if axes is None:
        return len(node.input) < 2 and None not in dims[0]
    return all(-rank <= axis < rank and dims[0][axis] == 1 for axis in axes)


def _unsqueeze(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    axes = reading.ints(node, "axes", 1) or []
    rank = len(dims[0]) + len(axes)
    inside = all(-rank <= axis < rank for axis in axes)
    return inside and 0 < len(axes) == len({axis % rank for axis in axes})


def _reduce(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    axes, rank = reading.ints(node, "axes", 1), len(dims[0])
    if axes is None:
        return len(node.input) < 2 or not node.input[1]
    return all(-rank <= axis < rank for axis in axes)


def _reshape(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    """A 0 copies a dim, whatever it is; a -1 is what is left, which takes sizes that are not 0."""
    shape, row = reading.ints(node, "shape", 1), dims[0]
    if shape is None or _int(node, "allowzero", 0) or min(shape, default=1) < -1:
        return False
    if shape.count(-1) > 1 or 0 in shape[len(row) :]:
        return False
    copied = [size for size, wanted in zip(row, shape, strict=False) if wanted == 0]
    left = [size for at, size in enumerate(row) if shape[at : at + 1] != [0]]
    known = int(np.prod([size for size in left if isinstance(size, int)], dtype=np.int64))
    wanted = int(np.prod([size for size in shape if size > 0], dtype=np.int64))
    if -1 in shape:
        return known % wanted == 0 and all(isinstance(size, int) and size for size in copied)
    return known == wanted and all(isinstance(size, int) for size in left)


def _expand(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    shape = reading.ints(node, "shape", 1)
    return shape is not None and reading.broadcast([dims[0], tuple(shape)]) is not None


def _tile(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    repeats = reading.ints(node, "repeats", 1)
    return repeats is not None and len(repeats) == len(dims[0]) and min(repeats, default=0) >= 0


def _slice(node: NodeProto, dims: Sequence[Dims], reading: Reading) -> bool:
    starts, ends = reading.ints(node, "starts", 1), reading.ints(node, "ends", 2)
    axes, steps = reading.ints(node, "axes", 3), reading.ints(node, "steps", 4)
    given = [name for name in node.input[1:] if name]
    if starts is None or ends is None or any(reading.constant(name) is None for name in given):
        return False
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    rank = len(dims[0])
    inside = all(-rank <= axis < rank for axis in axes) and 0 not in steps
    return inside and len(starts) == len(ends) == len(axes) == len(steps)


Check = Callable[[NodeProto, Sequence[Dims], Reading], bool]
#: By op; all reducers under one name.
CHECKS: Mapping[str, Check] = {
    "Clip": _clip,
    "Concat": _concat,
    "Expand": _expand,
    "Flatten": _axis,
    "Gather": _gather,
    "Gemm": _gemm,
    "Hardmax": _axis,
    "LogSoftmax": _axis,
    "MatMul": _matmul,
    "Reduce": _reduce,
    "Reshape": _reshape,
    "Slice": _slice,
    "Softmax": _axis,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
