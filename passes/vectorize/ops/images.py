"""Ops on images [N, C, ...]: the new axis is merged into N, so that one kernel does all rows."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from passes.vectorize.axes import attribute
from passes.vectorize.merging import Merging, over_batch
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling


@batched(
    *("AveragePool", "Conv", "ConvInteger", "ConvTranspose", "GlobalAveragePool"),
    *("GlobalLpPool", "GlobalMaxPool", "InstanceNormalization", "LRN", "LpPool", "QLinearConv"),
)
def image(node: NodeProto, at: Vectorizer) -> None:
    """One image an N, and weights that all share."""
    over_batch(node, at)


@batched("GroupNormalization")
def group_normalization(node: NodeProto, at: Vectorizer) -> None:
    """Each image is normalised by itself.

    Inference of onnx does not tell the output's shape. The op is defined by nodes that fail on
    no images at all.
    """
    if not at.has_rows():
        at.refuse("may-be-empty", "GroupNormalization needs an image", *node.output)
    at.note(node.output[0], at.elem_type(node.input[0]), at.dims(node.input[0]))
    over_batch(node, at)


@batched("BatchNormalization")
def batch_normalization(node: NodeProto, at: Vectorizer) -> None:
    """Out of training each image is normalised by itself, with given mean and variance."""
    if attribute(node, "training_mode", 0):
        at.refuse(
            "no-batching-rule",
            "BatchNormalization in training takes mean and variance over the images of one row",
            *node.output,
        )
    over_batch(node, at)


@batched("GridSample")
def grid_sample(node: NodeProto, at: Vectorizer) -> None:
    """Each image has its own grid."""
    over_batch(node, at, {0, 1})


@batched("DeformConv")
def deform_conv(node: NodeProto, at: Vectorizer) -> None:
    """Each image has its own offsets and mask; weights and bias are shared."""
    over_batch(node, at, {0, 2, 4})


@batched("MaxPool")
def max_pool(node: NodeProto, at: Vectorizer) -> None:
    """The places of the maxima count through all images, so those of earlier rows come off."""
    if len(node.output) < 2 or not node.output[1]:
        over_batch(node, at)
        return
    merging = Merging.like(at, node.input[0])
    values, places = at.author.fresh("maxima"), at.author.fresh("places")
    at.again(node, [merging.merged(node.input[0])], [values, places])
    merging.split(values, node.output[0])
    apart = at.author.fresh("places")
    merging.split(places, node.output[1], named=apart)
    before = at.op("Mul", _row_numbers(at), _row_size(at, node.input[0]))
    ones = range(1, 1 + at.rank(node.output[1]))
    earlier = spelling.unsqueeze_axes(at.author, before, ones)
    at.author.op("Sub", apart, earlier, outputs=[node.output[1]])


def _row_numbers(at: Vectorizer) -> str:
    """0, 1, ... for the rows, int64 [B]."""
    if at.axis.static is not None:
        return at.author.constant(np.arange(at.axis.static), "rows")
    return spelling.arange(at.author, at.axis.size)


def _row_size(at: Vectorizer, name: str) -> str:
    """How many elements one row of a carrying value has, int64 scalar or [1]."""
    dims = at.dims(name)
    if all(isinstance(dim, int) for dim in dims):
        return at.author.int(int(np.prod([int(dim or 0) for dim in dims])))
    return at.op("ReduceProd", spelling.rest_of_shape(at.author, name, 1), keepdims=1)
