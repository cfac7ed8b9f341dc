"""Resize of images: the new axis is merged into N, which must keep its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attributes, text
from passes.ir.versions import SOME_AXES
from passes.vectorize.merging import Merging
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling


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
