"""Ops that look elements up by their place in a row, or put them there."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute
from passes.vectorize.vectorizer import Vectorizer, batched, shifted
from passes.writing import spelling


@batched("Gather")
def gather(node: NodeProto, ctx: Vectorizer) -> None:
    """Each row looks up in its own data, or all in the same."""
    data, indices = node.input
    axis = attribute(node, "axis", 0)
    ctx.name_as(taken(ctx, data, indices, axis), node.output[0])


def taken(ctx: Vectorizer, data: str, indices: str, axis: int) -> str:
    """Gather along an axis of a row; at least one of `data` and `indices` carries the axis."""
    rank = ctx.rank(data)
    axis = axis + rank if axis < 0 else axis
    if not ctx.carries(indices):
        return ctx.op("Gather", data, indices, axis=axis + 1)
    count = ctx.rank(indices)
    if not ctx.carries(data):
        found = ctx.op("Gather", data, indices, axis=axis)
        return spelling.axis_moved(
            ctx, found, axis, 0, rank + count
        )  # [before, B, indices, behind]
    index = spelling.unsqueeze(ctx, _int64(ctx, indices), -1)
    places = spelling.axis_moved(ctx, data, axis + 1, 1, rank + 1)
    found = ctx.op("GatherND", places, index, batch_dims=1)  # [B, indices, before, behind]
    if not (axis and count):
        return found
    behind = 1 + count + axis
    perm = [0, *range(1 + count, behind), *range(1, 1 + count), *range(behind, rank + count)]
    return ctx.op("Transpose", found, perm=perm)


def _int64(ctx: Vectorizer, indices: str) -> str:
    if ctx.elem_type(indices) == TensorProto.INT64:
        return indices
    return ctx.op("Cast", indices, to=TensorProto.INT64)


@batched("GatherElements")
def gather_elements(node: NodeProto, ctx: Vectorizer) -> None:
    """Data and indices have one rank and do not broadcast."""
    data, indices = node.input
    axis = attribute(node, "axis", 0)
    if ctx.rank(data) == 1 and not ctx.carries(data):
        ctx.op("Gather", data, indices, outputs=list(node.output), axis=0)
    else:
        ctx.again(node, [ctx.spread(data), ctx.spread(indices)], axis=shifted(axis))


@batched("GatherND")
def gather_nd(node: NodeProto, ctx: Vectorizer) -> None:
    """The new axis is one more batch axis of the op."""
    data, indices = node.input
    batch = attribute(node, "batch_dims", 0)
    if ctx.carries(data) or batch:
        ctx.again(node, [ctx.spread(data), ctx.spread(indices)], batch_dims=batch + 1)
    else:
        ctx.again(node)


@batched("ScatterND")
def scatter_nd(node: NodeProto, ctx: Vectorizer) -> None:
    """Places get the number of their row in front."""
    data, indices, updates = (ctx.spread(name) for name in node.input)
    ctx.again(node, [data, _with_row(ctx, indices, ctx.rank(node.input[1])), updates])


def _with_row(ctx: Vectorizer, indices: str, rank: int) -> str:
    """[B, ..., K] to [B, ..., 1 + K]: the row precedes each index; `rank` is that of a row."""
    numbers = spelling.arange(ctx, ctx.axis.size)
    numbers = spelling.unsqueeze_axes(ctx, numbers, range(1, rank + 1))
    lead = ctx.op("Slice", ctx.op("Shape", indices), ctx.ints(0), ctx.ints(-1))
    shape = ctx.op("Concat", lead, ctx.ints(1), axis=0)
    return ctx.op("Concat", ctx.op("Expand", numbers, shape), indices, axis=-1)


@batched("OneHot")
def one_hot(node: NodeProto, ctx: Vectorizer) -> None:
    """Look the values of each row up where the shared op gives 1 or 0."""
    ctx.only_rows(node, 1)
    indices, depth, values = node.input
    axis = attribute(node, "axis", -1)
    there = shifted(axis) if ctx.carries(indices) else axis
    if not ctx.carries(values):
        ctx.again(node, axis=there)
        return
    inputs = [_int64(ctx, indices), _int64(ctx, depth)]
    bits = ctx.value(np.array([0, 1], np.int64), "bits")
    hot = ctx.op("OneHot", *inputs, bits, axis=there)
    dims = ctx.dims(node.output[0])
    ctx.note(hot, TensorProto.INT64, dims, carries=ctx.carries(indices))
    ctx.name_as(taken(ctx, values, hot, 0), node.output[0])


@batched("Compress")
def compress(node: NodeProto, ctx: Vectorizer) -> None:
    """The condition must be shared; without an axis the elements of a row are one list."""
    ctx.only_rows(node, 1)
    x, condition = node.input
    axis = attribute(node, "axis", None)
    if axis is None:
        ctx.again(node, [ctx.op("Flatten", x, axis=1), condition], axis=1)
    else:
        ctx.again(node, axis=shifted(axis))


@batched("NonZero", "Unique")
def counted(node: NodeProto, ctx: Vectorizer) -> None:
    """The size of the result depends on the values of a row.

    Raises:
        Refused: `batched-operand`, always.
    """
    ctx.only_rows(node, 0)
