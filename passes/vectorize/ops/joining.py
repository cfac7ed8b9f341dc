"""Ops that join rows with rows, or cut and pad them along their axes."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute, text
from passes.ir.versions import SOME_AXES
from passes.vectorize.merging import row_size
from passes.vectorize.ops.indexing import taken
from passes.vectorize.ops.reshape import exactly, row_shape
from passes.vectorize.vectorizer import Vectorizer, all_axes, batched, shifted, shifted_input
from passes.writing import spelling


@batched("Concat", "ScatterElements")
def concat(node: NodeProto, ctx: Vectorizer) -> None:
    """Nothing broadcasts: what is the same for all rows is spread over them."""
    axis = shifted(attribute(node, "axis", 0))
    ctx.again(node, [ctx.spread(name) for name in node.input], axis=axis)


@batched("Split")
def split(node: NodeProto, ctx: Vectorizer) -> None:
    """The axis, 0 by default, moves by one."""
    ctx.only_rows(node, 1)
    ctx.again(node, axis=shifted(attribute(node, "axis", 0)))


@batched("Slice")
def slice_(node: NodeProto, ctx: Vectorizer) -> None:
    """Without axes the first ones of a row are meant, as many as there are starts."""
    ctx.only_rows(node, 1, 2, 3, 4)
    x, starts, ends, axes, *steps = [*node.input, ""][: max(4, len(node.input))]
    if axes:
        moved = shifted_input(ctx, axes)
    elif isinstance(count := ctx.dims(starts)[0], int):
        moved = ctx.ints(*all_axes(count))
    else:
        every = spelling.arange(ctx, ctx.op("Shape", starts))
        moved = ctx.op("Add", every, ctx.ints(1))
    if ctx.elem_type(starts) != TensorProto.INT64:  # all bounds are of one type
        moved = ctx.op("Cast", moved, to=ctx.elem_type(starts))
    ctx.again(node, [x, starts, ends, moved, *steps])


@batched("Pad")
def pad(node: NodeProto, ctx: Vectorizer) -> set[str] | None:
    """The new axis is not padded."""
    ctx.only_rows(node, 1, 3)
    x, pads, value, axes = [*node.input, "", ""][:4]
    if value and ctx.carries(value):
        if text(node, "mode", "constant") == "constant":
            _pad_each(node, ctx)
            return None
        value = ""  # it plays no part
    if not ctx.carries(x):
        ctx.again(node, _without_last([x, pads, value, axes]))
        return set(node.output)
    rank = ctx.rank(x)
    known = ctx.constant(pads)
    if axes:
        axes = shifted_input(ctx, axes)
    elif known is not None:
        pads = ctx.ints(0, *map(int, known[:rank]), 0, *map(int, known[rank:]))
    elif ctx.opset >= SOME_AXES:
        axes = ctx.ints(*all_axes(rank))
    else:
        pads = _unpadded_axis(ctx, pads, rank)
    ctx.again(node, _without_last([x, pads, value, axes]))
    return None


def _without_last(inputs: list[str]) -> list[str]:
    while not inputs[-1]:
        inputs.pop()
    return inputs


def _unpadded_axis(ctx: Vectorizer, pads: str, rank: int) -> str:
    """Return [begins, ends] with a 0 before both."""
    none, middle, last = (ctx.ints(bound) for bound in (0, rank, 2 * rank))
    begins = ctx.op("Slice", pads, none, middle)
    return ctx.op("Concat", none, begins, none, ctx.op("Slice", pads, middle, last), axis=0)


def _pad_each(node: NodeProto, ctx: Vectorizer) -> None:
    """Every row has its own padding: pad the indices of a row, and gather its elements.

    A row is its elements followed by its padding value; padded indices select the latter.
    """
    x, pads, value, axes = [*node.input, ""][:4]
    rank = ctx.rank(x)
    elements = ctx.op("Flatten", ctx.spread(x), axis=1)
    padding = ctx.op("Reshape", value, ctx.ints(0, 1))
    row = row_shape(ctx, x)
    count = spelling.size_of_axis(ctx, elements, 1)
    places = spelling.arange(ctx, count)
    if all(isinstance(dim, int) and dim > 0 for dim in ctx.dims(x)):
        places = ctx.op("Reshape", places, row)
    else:
        places = exactly(ctx, places, [row_size(ctx, x, axis) for axis in range(rank)])
    last = spelling.squeeze(ctx, count, 0)
    found = ctx.fresh("places")
    ctx.again(node, _without_last([places, pads, last, axes]), [found])
    table = ctx.op("Concat", elements, padding, axis=1)
    ctx.note(table, ctx.elem_type(x), [None])
    ctx.note(found, TensorProto.INT64, [None] * rank, carries=False)
    ctx.name_as(taken(ctx, table, found, 0), node.output[0])
