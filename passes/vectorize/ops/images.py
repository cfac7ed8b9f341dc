"""Ops on images [N, C, ...]: the new axis is merged into N, so that one kernel does all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attribute, attributes, text
from passes.ir.versions import SOME_AXES
from passes.operators.table import where
from passes.types.value_types import is_static
from passes.vectorize.merging import Merging, over_batch
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling


@batched(*where(lambda row: row.by_image))
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
    if is_static(dims):
        return ctx.int(int(np.prod([int(dim or 0) for dim in dims])))
    return ctx.op("ReduceProd", spelling.rest_of_shape(ctx, name, 1), keepdims=1)


@batched("Resize")
def resize(node: NodeProto, ctx: Vectorizer) -> None:
    """Axes after N are resized as in one row; N and the new axis stay as they are."""
    ctx.only_rows(node, 1, 2, 3)
    x, roi, scales, sizes = [*node.input, "", "", ""][:4]
    if not ctx.rank(x):
        ctx.refuse("no-batching-rule", "Resize of a scalar has no N", x)
    if text(node, "coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize":
        roi = ""
    axes = attributes(node, "axes") if ctx.opset >= SOME_AXES else None
    if axes is not None:
        _need(ctx, node, all(axis % ctx.rank(x) for axis in axes), "it may resize N")
        _write(node, ctx, [x, roi, scales, sizes])
        return
    if roi:
        _need(ctx, node, _whole_n(ctx, roi), "its roi may crop N")
    if scales and ctx.dims(scales) != (0,):
        factors = ctx.constant(scales)
        _need(ctx, node, factors is not None and factors.ravel()[0] == 1, "its scales may resize N")
        _write(node, ctx, [x, roi, scales, ""])
        return
    before, after = ctx.dims(x)[0], ctx.dims(node.output[0])[0]
    fixed = ctx.constant(sizes)
    kept = before is not None and (before == after or (fixed is not None and fixed[0] == before))
    _need(ctx, node, kept, "its sizes may resize N")
    _write_sizes(node, ctx, [x, roi, "", sizes])


def _need(ctx: Vectorizer, node: NodeProto, holds: bool, why: str) -> None:
    if not holds:
        ctx.refuse("batched-operand", f"Resize {list(node.output)}: {why}", *node.output)


def _whole_n(ctx: Vectorizer, roi: str) -> bool:
    """Return whether the region is all of N: from 0 to 1."""
    borders = ctx.constant(roi)
    return borders is not None and bool(borders[0] == 0 and borders[borders.size // 2] == 1)


def _write_sizes(node: NodeProto, ctx: Vectorizer, inputs: Sequence[str]) -> None:
    """Write sizes of all axes: only of those after N, if that can be expressed."""
    x, roi, _, sizes = inputs
    rest = ctx.op("Slice", sizes, ctx.ints(1), ctx.ints(np.iinfo(np.int64).max))
    stretched = text(node, "keep_aspect_ratio_policy", "stretch") == "stretch"
    if ctx.opset >= SOME_AXES and stretched and not roi:
        _write(node, ctx, [x, "", "", rest], axes=list(range(1, ctx.rank(x))))
        return
    if not ctx.has_rows():
        ctx.refuse(
            "may-be-empty", "an empty batch cannot be resized to explicit sizes", *node.output
        )
    merging = Merging.like(ctx, x)
    merged = merging.merged(x)
    both = spelling.size_of_axis(ctx, merged, 0)
    _resize(node, merging, [merged, roi, "", ctx.op("Concat", both, rest, axis=0)])


def _write(node: NodeProto, ctx: Vectorizer, inputs: Sequence[str], **attributes: Any) -> None:
    """Write it for the merged N, of which the other inputs do not speak."""
    merging = Merging.like(ctx, inputs[0])
    _resize(node, merging, [merging.merged(inputs[0]), *inputs[1:]], **attributes)


def _resize(node: NodeProto, merging: Merging, inputs: Sequence[str], **attributes: Any) -> None:
    resized = merging.ctx.fresh("resized")
    merging.ctx.again(node, inputs, [resized], **attributes)
    merging.split(resized, node.output[0])
