"""The sizes that Reshape, Squeeze and Unsqueeze give, where it is proven that they do not fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.types.value_types import Dims

#: A size: a number, or, in a tuple, the axis of the original tensor that has this size; none of it
#: where it is another one.
Size = int | tuple[int, ...]
Sizes = tuple[Size, ...]
_OTHER: Size = ()

#: The ops that return the elements of their first input, in order, with other axes, and how their
#: second input is called where it is an attribute.
RESHAPING = {"Reshape": "shape", "Squeeze": "axes", "Unsqueeze": "axes"}


def sizes_of(dims: Dims) -> Sizes:
    """The sizes of the original tensor."""
    return tuple(dim if isinstance(dim, int) else (position,) for position, dim in enumerate(dims))


def reshaped(node: NodeProto, sizes: Sizes, given: Sequence[int]) -> Sizes | None:
    """The sizes of the output of a node, with this shape or these axes; None where it may fail."""
    if op_of(node) == "Reshape":
        return _in_shape(node, sizes, given)
    return (_squeezed if op_of(node) == "Squeeze" else _unsqueezed)(sizes, given)


def _squeezed(sizes: Sizes, axes: Sequence[int]) -> Sizes | None:
    rank = len(sizes)
    if not axes or not all(-rank <= axis < rank and sizes[axis] == 1 for axis in axes):
        return None  # onnxruntime drops every axis of size 1 where none is named
    gone = {axis % rank for axis in axes}
    return tuple(size for position, size in enumerate(sizes) if position not in gone)


def _unsqueezed(sizes: Sizes, axes: Sequence[int]) -> Sizes | None:
    rank = len(sizes) + len(axes)
    places = {axis % rank for axis in axes if -rank <= axis < rank}
    if len(places) < len(axes):
        return None
    rest = iter(sizes)
    return tuple(1 if position in places else next(rest) for position in range(rank))


def _in_shape(node: NodeProto, sizes: Sizes, shape: Sequence[int]) -> Sizes | None:
    """A 0 copies a size, unless `allowzero`; a -1 is the rest, for which copied sizes must not be
    0."""
    if attribute(node, "allowzero", 0) and 0 in shape:
        return None
    if min(shape, default=1) < -1 or shape.count(-1) > 1 or 0 in shape[len(sizes) :]:
        return None
    copied = {position for position, size in enumerate(shape) if size == 0}
    left = [size for position, size in enumerate(sizes) if position not in copied]
    open_ = [size for size in left if isinstance(size, tuple)]
    known = int(np.prod([size for size in left if isinstance(size, int)], dtype=np.int64))
    wanted = int(np.prod([size for size in shape if size > 0], dtype=np.int64))
    if -1 not in shape:
        rest: Size | None = 1 if known == wanted and not open_ else None
    elif any(sizes[position] == 0 or isinstance(sizes[position], tuple) for position in copied):
        return None  # where a size that is copied is 0, what is left is unknown
    elif known % wanted:
        return None
    elif open_:
        rest = open_[0] if known == wanted and len(open_) == 1 else _OTHER
    else:
        rest = known // wanted
    if rest is None:
        return None
    return tuple(
        sizes[position] if size == 0 else rest if size == -1 else size
        for position, size in enumerate(shape)
    )
