"""Indices in older words: counted from the front, and as places in flattened data."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto

from passes.analysis.integers.integers import Integers
from passes.analysis.integers.intervals import Intervals
from passes.converters.writing.conversion import Conversion
from passes.ir.versions import LESS_TAKES_INTEGERS
from passes.writing import spelling


def axis_from_front(
    node: NodeProto, ctx: Conversion, name: str, default: int, more: int = 0
) -> int:
    """The attribute `axis` of a node, counted from the front; `more` is by how many the rank is
    greater than that of `name`.

    Raises:
        Refused: `unknown-rank`: it is negative, and the rank of `name` is unknown.
    """
    axis = int(ctx.attribute(node, "axis", default))
    return axis if axis >= 0 else axis + ctx.known_rank(name) + more


def static_dims(
    ctx: Conversion, name: str, what: str, start: int = 0, end: int | None = None
) -> list[int]:
    """The sizes of the axes from `start` to before `end`.

    Raises:
        Refused: `unknown-rank`: one of them is unknown.
    """
    dims = ctx.dims_of(name)
    wanted = (dims or ())[start:end]
    known = [dim for dim in wanted if isinstance(dim, int)]
    if dims is None or len(known) < len(wanted):
        raise ctx.refused("unknown-rank", f"{what} depends on the shape of {name!r}, which is open")
    return known


def from_front(ctx: Conversion, indices: str, data: str, axis: int) -> str:
    """Return non-negative indices along an axis of `data`: the same ones if they are proven to be
    so, else the size is added to negative ones."""
    known = ctx.constant(indices)
    dims = ctx.dims_of(data)
    size = dims[axis] if dims is not None and axis < len(dims) else None
    if known is not None and (isinstance(size, int) or (known >= 0).all()):
        counted = known if (known >= 0).all() else np.where(known < 0, known + size, known)
        return indices if (known >= 0).all() else ctx.value(counted.astype(known.dtype), "indices")
    if _counts_from_front(ctx, indices):
        return indices
    elem_type = ctx.known_elem_type(indices)
    if isinstance(size, int):
        length = ctx.number(size, elem_type)
    else:
        length = spelling.scalar_size(ctx, data, axis)
        if elem_type != TensorProto.INT64:
            length = ctx.op("Cast", length, to=elem_type)
    return plus_where_negative(ctx, indices, length, elem_type)


def plus_where_negative(ctx: Conversion, indices: str, size: str, elem_type: int) -> str:
    """Return indices with `size`, of the same type, added to negative ones."""
    negative = is_negative(ctx, indices, elem_type)
    flags = ctx.op("Cast", negative, to=elem_type)
    return ctx.op("Add", indices, ctx.op("Mul", flags, size))


def is_negative(ctx: Conversion, numbers: str, elem_type: int) -> str:
    """Return which whole numbers are negative: bool. Before version 9 Less compares floats only."""
    if ctx.site.target < LESS_TAKES_INTEGERS:
        numbers, elem_type = ctx.op("Cast", numbers, to=TensorProto.FLOAT), TensorProto.FLOAT
    zero = ctx.number(0, elem_type)
    return ctx.op("Less", numbers, zero)


def _counts_from_front(ctx: Conversion, name: str) -> bool:
    """Return whether all numbers of a value are proven to be 0 or more."""
    bounds = Intervals(Integers(ctx.site)).of(name)
    return bounds is not None and bounds[0] >= 0


def in_flat_rows(ctx: Conversion, indices: str, data: str, depth: int) -> str:
    """Return the flat positions of the tuples of `depth` indices in the last axis of `indices`,
    along the first `depth` axes of `data`: int64, without the last axis.

    Raises:
        Refused: `unknown-rank`: the sizes of these axes, or the rank of `indices`, are unknown.
    """
    inner = static_dims(ctx, data, "where an index points to", 1, depth)
    known = ctx.constant(indices)
    strides = np.array([prod(inner[place:]) for place in range(depth)], np.int64)
    dims = ctx.dims_of(data)
    first = dims[0] if dims else None
    if known is not None and (isinstance(first, int) or (known[..., 0] >= 0).all()):
        wrap = np.array([first or 0, *inner], np.int64)
        return ctx.whole((np.where(known < 0, known + wrap, known) * strides).sum(-1), "places")
    rank = ctx.known_rank(indices)
    if ctx.known_elem_type(indices) != TensorProto.INT64:
        indices = ctx.op("Cast", indices, to=TensorProto.INT64)
    if isinstance(first, int):
        wrap_by = ctx.whole([first, *inner], "sizes")
    else:
        wrap_by = ctx.op("Gather", spelling.shape_of(ctx, data), ctx.whole(range(depth)), axis=0)
    counted = plus_where_negative(ctx, indices, wrap_by, TensorProto.INT64)
    scaled = ctx.op("Mul", counted, ctx.whole(strides, "strides"))
    return spelling.along(ctx, "ReduceSum", scaled, [rank - 1], keepdims=0)


def in_flat_elements(ctx: Conversion, indices: str, data: str, axis: int) -> str:
    """Return the flat positions in `data` of indices along an axis, each at its own position along
    the others: int64, in the shape of `indices`.

    Raises:
        Refused: `unknown-rank`: a size of `indices`, or one of `data` but the first, is unknown.
    """
    inner = static_dims(ctx, data, "where an index points to", 1)
    shape = static_dims(ctx, indices, "where an index points to")
    strides = [prod(inner[place:]) for place in range(len(inner) + 1)]
    base = np.zeros(shape, np.int64)
    for place, coordinate in enumerate(np.indices(shape, dtype=np.int64, sparse=True)):
        if place != axis:
            base = base + coordinate * strides[place]
    counted = from_front(ctx, indices, data, axis)
    known = ctx.constant(counted)
    if known is not None:
        return ctx.whole(known * strides[axis] + base, "places")
    if ctx.known_elem_type(indices) != TensorProto.INT64:
        counted = ctx.op("Cast", counted, to=TensorProto.INT64)
    scaled = ctx.op("Mul", counted, ctx.whole(strides[axis], "stride"))
    return ctx.op("Add", scaled, ctx.whole(base, "base"))


def are_distinct(ctx: Conversion, indices: str, data: str, axis: int | None) -> bool:
    """Return whether no two updates of a ScatterElements along `axis`, or a ScatterND (None), are
    proven to go to one place."""
    known = ctx.constant(indices)
    if known is None:
        return False
    dims = ctx.dims_of(data) or ()
    axes: Sequence[int] = range(known.shape[-1]) if axis is None else [axis]
    sizes = [dims[one] if one < len(dims) else None for one in axes]
    if (known < 0).any() and not all(isinstance(size, int) for size in sizes):
        return False
    wrap = np.array([size if isinstance(size, int) else 0 for size in sizes], np.int64)
    counted = np.where(known < 0, known + (wrap if axis is None else wrap[0]), known)
    if axis is None:
        rows = counted.reshape(-1, known.shape[-1])
    else:
        grid = np.indices(known.shape)
        grid[axis] = counted
        rows = grid.reshape(known.ndim, -1).T
    return len(np.unique(rows, axis=0)) == len(rows)
