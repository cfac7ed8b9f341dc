"""Quantizing and dequantizing, and products of quantized values."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from passes.vectorize.axes import all_axes, attribute, shifted
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling


@batched("QuantizeLinear", "DequantizeLinear")
def linear(node: NodeProto, at: Vectorizer) -> None:
    """One scale for all, per place of an axis, or per block; also one scale per row."""
    x, scale, zero = [*node.input, ""][:3]
    axis = attribute(node, "axis", 1)
    if attribute(node, "block_size", 0):
        operands = [at.spread(name) for name in (x, scale, zero) if name]
        at.again(node, operands, axis=shifted(axis))
    elif not (at.carries(scale) or at.carries(zero)):
        at.again(node, axis=axis if _is_one(at, scale) else shifted(axis))
    elif _is_one(at, scale):  # the rows are the places of the new axis
        operands = [at.spread(x), *(_flat(at, name) for name in (scale, zero) if name)]
        at.again(node, operands, axis=0)
    else:
        at.only_rows(node, 1, 2)


def _is_one(at: Vectorizer, scale: str) -> bool:
    """Whether there is one scale in a row, not one per place of an axis."""
    return at.dims(scale) in ((), (1,))


def _flat(at: Vectorizer, name: str) -> str:
    """One number per row, [B]."""
    wide = at.spread(name)
    return spelling.squeeze(at.author, wide, 1) if at.rank(name) else wide


@batched("DynamicQuantizeLinear")
def dynamic(node: NodeProto, at: Vectorizer) -> None:
    """Each row gets its own scale: what the op is defined as, with the range of each row."""
    x = node.input[0]
    rank = at.rank(x)
    zero, most = (at.author.constant(np.array(one, np.float32), "range") for one in (0, 255))
    low = at.op("Min", _of_row(at, "ReduceMin", x, rank), zero)
    high = at.op("Max", _of_row(at, "ReduceMax", x, rank), zero)
    scale = _or_that_of_zeros(at, at.op("Sub", high, low), most)
    start = at.op("Sub", zero, at.op("Div", low, scale))
    rounded = at.op("Round", at.op("Clip", start, zero, most))
    point = at.op("Cast", rounded, to=TensorProto.UINT8)
    outputs = [*node.output, "", ""][:3]
    at.op("QuantizeLinear", x, scale, point, outputs=outputs[:1], axis=0)
    for value, name in zip((scale, point), outputs[1:], strict=True):
        if name:
            at.name_as(value, name)


def _or_that_of_zeros(at: Vectorizer, width: str, most: str) -> str:
    """The scale of each row; that of a row of zeros is not defined, so the op itself tells it."""
    zeros = at.author.constant(np.zeros(1, np.float32), "zeros")
    told = [at.author.fresh(hint) for hint in ("quantized", "scale", "point")]
    at.op("DynamicQuantizeLinear", zeros, outputs=told)
    flat = at.op("Equal", width, at.author.constant(np.array(0, np.float32), "range"))
    return at.op("Where", flat, told[1], at.op("Div", width, most))


def _of_row(at: Vectorizer, op: str, x: str, rank: int) -> str:
    """The least or largest element of each row, [B]."""
    axes = list(all_axes(rank))
    if not axes:
        return x
    if at.author.opset < 18:
        return at.op(op, x, axes=axes, keepdims=0)
    return at.op(op, x, at.author.ints(*axes), keepdims=0)
