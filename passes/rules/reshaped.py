"""What shape a tensor has behind ops that only give its elements other axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import NodeProto

from passes.operators import op_of
from passes.rules.folding import Array
from passes.value_types import Dims

#: A size: a number, or the size of this axis of the tensor that was reshaped, in a tuple.
Size = int | tuple[int]
Sizes = tuple[Size, ...]
Constant = Callable[[str], Array | None]

RESHAPING = ("Reshape", "Squeeze", "Unsqueeze")


def reshapes(node: NodeProto) -> bool:
    """Whether a node gives the elements of its first input, in their order, in other axes."""
    return op_of(node) in RESHAPING


def sizes_of(dims: Dims) -> Sizes:
    """The sizes of a tensor itself."""
    return tuple(dim if isinstance(dim, int) else (at,) for at, dim in enumerate(dims))


def reshaped(node: NodeProto, sizes: Sizes, constant: Constant) -> Sizes | None:
    """The sizes behind a node; None where they are not known, or it would fail."""
    name = "shape" if op_of(node) == "Reshape" else "axes"
    numbers = _numbers(node, name, constant)
    if numbers is None:
        return None
    if op_of(node) == "Reshape":
        return _in_shape(node, sizes, numbers)
    return (_squeezed if op_of(node) == "Squeeze" else _unsqueezed)(sizes, numbers)


def _numbers(node: NodeProto, name: str, constant: Constant) -> list[int] | None:
    said = next((one for one in node.attribute if one.name == name), None)
    if said is not None:
        return None if said.ref_attr_name else list(said.ints)
    value = constant(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    return None if value is None else [int(one) for one in value.reshape(-1)]


def _squeezed(sizes: Sizes, axes: Sequence[int]) -> Sizes | None:
    rank = len(sizes)
    if not axes or not all(-rank <= axis < rank and sizes[axis] == 1 for axis in axes):
        return None  # onnxruntime drops every axis of size 1 where none is named
    gone = {axis % rank for axis in axes}
    return tuple(size for at, size in enumerate(sizes) if at not in gone)


def _unsqueezed(sizes: Sizes, axes: Sequence[int]) -> Sizes | None:
    rank = len(sizes) + len(axes)
    places = {axis % rank for axis in axes if -rank <= axis < rank}
    if len(places) < len(axes):
        return None
    rest = iter(sizes)
    return tuple(1 if at in places else next(rest) for at in range(rank))


def _in_shape(node: NodeProto, sizes: Sizes, shape: Sequence[int]) -> Sizes | None:
    """A 0 copies a size, unless it may be one; a -1 is what is left, where that is one size."""
    zero_is_a_size = any(one.name == "allowzero" and one.i for one in node.attribute)
    if zero_is_a_size and 0 in shape:
        return None
    if min(shape, default=1) < -1 or shape.count(-1) > 1 or 0 in shape[len(sizes) :]:
        return None
    copied = {at for at, wanted in enumerate(shape) if wanted == 0}
    left = [size for at, size in enumerate(sizes) if at not in copied]
    open_ = [size for size in left if isinstance(size, tuple)]
    known = int(np.prod([size for size in left if isinstance(size, int)], dtype=np.int64))
    wanted = int(np.prod([size for size in shape if size > 0], dtype=np.int64))
    if -1 not in shape:
        rest: Size | None = 1 if known == wanted and not open_ else None
    elif any(sizes[at] == 0 or isinstance(sizes[at], tuple) for at in copied):
        return None  # where a size that is copied is 0, nothing tells what is left
    elif open_:
        rest = open_[0] if known == wanted and len(open_) == 1 else None
    else:
        rest = known // wanted if known % wanted == 0 else None
    if rest is None:
        return None
    return tuple(
        sizes[at] if size == 0 else rest if size == -1 else size for at, size in enumerate(shape)
    )
