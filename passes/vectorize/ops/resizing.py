"""Resize of images: the new axis is merged into N, which must keep its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.vectorize.axes import attributes, text
from passes.vectorize.merging import Merging
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling

_AXES = 18  # the opset that lets scales and sizes speak of some axes only


@batched("Resize")
def resize(node: NodeProto, at: Vectorizer) -> None:
    """Axes behind N are resized as in one row; N and the new axis stay as they are."""
    at.only_rows(node, 1, 2, 3)
    x, roi, scales, sizes = [*node.input, "", "", ""][:4]
    if not at.rank(x):
        at.refuse("no-batching-rule", "Resize of a scalar has no N", x)
    if text(node, "coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize":
        roi = ""
    axes = attributes(node, "axes") if at.author.opset >= _AXES else None
    if axes is not None:
        _need(at, node, all(axis % at.rank(x) for axis in axes), "it may resize N")
        _write(node, at, [x, roi, scales, sizes])
        return
    if roi:
        _need(at, node, _whole_n(at, roi), "its roi may crop N")
    if scales and at.dims(scales) != (0,):
        factors = at.constant(scales)
        _need(at, node, factors is not None and factors.ravel()[0] == 1, "its scales may resize N")
        _write(node, at, [x, roi, scales, ""])
        return
    before, after = at.dims(x)[0], at.dims(node.output[0])[0]
    given = at.constant(sizes)
    kept = before is not None and (before == after or (given is not None and given[0] == before))
    _need(at, node, kept, "its sizes may resize N")
    _write_sizes(node, at, [x, roi, "", sizes])


def _need(at: Vectorizer, node: NodeProto, holds: bool, why: str) -> None:
    if not holds:
        at.refuse("batched-operand", f"Resize {list(node.output)}: {why}", *node.output)


def _whole_n(at: Vectorizer, roi: str) -> bool:
    """Whether the region is all of N: from 0 to 1."""
    borders = at.constant(roi)
    return borders is not None and bool(borders[0] == 0 and borders[borders.size // 2] == 1)


def _write_sizes(node: NodeProto, at: Vectorizer, inputs: Sequence[str]) -> None:
    """Sizes of all axes: of those behind N alone, where that can be said."""
    x, roi, _, sizes = inputs
    rest = at.op("Slice", sizes, at.author.ints(1), at.author.ints(np.iinfo(np.int64).max))
    stretched = text(node, "keep_aspect_ratio_policy", "stretch") == "stretch"
    if at.author.opset >= _AXES and stretched and not roi:
        _write(node, at, [x, "", "", rest], axes=list(range(1, at.rank(x))))
        return
    if not at.has_rows():
        at.refuse("may-be-empty", "no images cannot be resized to given sizes", *node.output)
    merging = Merging.like(at, x)
    merged = merging.merged(x)
    both = spelling.size_of_axis(at.author, merged, 0)
    _resize(node, merging, [merged, roi, "", at.op("Concat", both, rest, axis=0)])


def _write(node: NodeProto, at: Vectorizer, inputs: Sequence[str], **attributes: Any) -> None:
    """Write it for the merged N, of which the other inputs do not speak."""
    merging = Merging.like(at, inputs[0])
    _resize(node, merging, [merging.merged(inputs[0]), *inputs[1:]], **attributes)


def _resize(node: NodeProto, merging: Merging, inputs: Sequence[str], **attributes: Any) -> None:
    resized = merging.at.author.fresh("resized")
    merging.at.again(node, inputs, [resized], **attributes)
    merging.split(resized, node.output[0])
