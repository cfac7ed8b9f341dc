"""Ops on images [N, C, ...]: the new axis is merged into N, so that one kernel does all rows."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attribute
from passes.vectorize.merging import Merging, over_batch
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling


@batched(
    *("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "GlobalAveragePool"),
    *("GlobalLpPool", "GlobalMaxPool", "InstanceNormalization", "LRN", "LpPool", "QLinearConv"),
)
def image(node: NodeProto, ctx: Vectorizer) -> None:
    """One image an N, and weights that all share."""
    over_batch(node, ctx)


@batched("GroupNormalization")
def group_normalization(node: NodeProto, ctx: Vectorizer) -> None:
    """Each image is normalised by itself.

    onnx's inference does not find the output's shape. The op is defined by nodes that fail on
    no images at all.
    """
    if not ctx.has_rows():
        ctx.refuse("may-be-empty", "GroupNormalization needs an image", *node.output)
    ctx.note(node.output[0], ctx.elem_type(node.input[0]), ctx.dims(node.input[0]))
    over_batch(node, ctx)


@batched("BatchNormalization")
def batch_normalization(node: NodeProto, ctx: Vectorizer) -> None:
    """Out of training each image is normalised by itself, with given mean and variance."""
    if attribute(node, "training_mode", 0):
        ctx.refuse(
            "no-batching-rule",
            "BatchNormalization in training takes mean and variance over the images of one row",
            *node.output,
        )
    over_batch(node, ctx)


@batched("GridSample")
def grid_sample(node: NodeProto, ctx: Vectorizer) -> None:
    """Each image has its own grid."""
    over_batch(node, ctx, {0, 1})


@batched("DeformConv")
def deform_conv(node: NodeProto, ctx: Vectorizer) -> None:
    """Each image has its own offsets and mask; weights and bias are shared."""
    over_batch(node, ctx, {0, 2, 4})


@batched("MaxPool")
def max_pool(node: NodeProto, ctx: Vectorizer) -> None:
    """The places of the maxima count through all images, so those of earlier rows come off."""
    if len(node.output) < 2 or not node.output[1]:
        over_batch(node, ctx)
        return
    merging = Merging.like(ctx, node.input[0])
    values, places = ctx.fresh("maxima"), ctx.fresh("places")
    ctx.again(node, [merging.merged(node.input[0])], [values, places])
    merging.split(values, node.output[0])
    apart = ctx.fresh("places")
    merging.split(places, node.output[1], named=apart)
    before = ctx.op("Mul", _row_numbers(ctx), _row_size(ctx, node.input[0]))
    ones = range(1, 1 + ctx.rank(node.output[1]))
    earlier = spelling.unsqueeze_axes(ctx, before, ones)
    ctx.op("Sub", apart, earlier, outputs=[node.output[1]])


def _row_numbers(ctx: Vectorizer) -> str:
    """0, 1, ... for the rows, int64 [B]."""
    if ctx.axis.static is not None:
        return ctx.value(np.arange(ctx.axis.static), "rows")
    return spelling.arange(ctx, ctx.axis.size)


def _row_size(ctx: Vectorizer, name: str) -> str:
    """Return the number of elements in one row of a carrying value, int64 scalar or [1]."""
    dims = ctx.dims(name)
    if all(isinstance(dim, int) for dim in dims):
        return ctx.int(int(np.prod([int(dim or 0) for dim in dims])))
    return ctx.op("ReduceProd", spelling.rest_of_shape(ctx, name, 1), keepdims=1)
