"""Quantizing and dequantizing, and products of quantized values."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute
from passes.vectorize.axes import all_axes, shifted
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling


@batched("QuantizeLinear", "DequantizeLinear")
def linear(node: NodeProto, ctx: Vectorizer) -> None:
    """One scale for all, per place of an axis, or per block; also one scale per row."""
    x, scale, zero = [*node.input, ""][:3]
    axis = attribute(node, "axis", 1)
    if attribute(node, "block_size", 0):
        operands = [ctx.spread(name) for name in (x, scale, zero) if name]
        ctx.again(node, operands, axis=shifted(axis))
    elif not (ctx.carries(scale) or ctx.carries(zero)):
        ctx.again(node, axis=axis if is_one(ctx, scale) else shifted(axis))
    elif is_one(ctx, scale):  # the rows are the places of the new axis
        operands = [ctx.spread(x), *(_flat(ctx, name) for name in (scale, zero) if name)]
        ctx.again(node, operands, axis=0)
    else:
        ctx.only_rows(node, 1, 2)


def is_one(ctx: Vectorizer, scale: str) -> bool:
    """Return whether there is one number in a row, not one for each place of an axis."""
    return ctx.dims(scale) in ((), (1,))


def _flat(ctx: Vectorizer, name: str) -> str:
    """One number per row, [B]."""
    wide = ctx.spread(name)
    return spelling.squeeze(ctx, wide, 1) if ctx.rank(name) else wide


@batched("DynamicQuantizeLinear")
def dynamic(node: NodeProto, ctx: Vectorizer) -> None:
    """Each row gets its own scale: what the op is defined as, with the range of each row."""
    x = node.input[0]
    rank = ctx.rank(x)
    zero, most = (ctx.value(np.array(bound, np.float32), "range") for bound in (0, 255))
    low = ctx.op("Min", _of_row(ctx, "ReduceMin", x, rank), zero)
    high = ctx.op("Max", _of_row(ctx, "ReduceMax", x, rank), zero)
    scale = _or_that_of_zeros(ctx, ctx.op("Sub", high, low), most)
    start = ctx.op("Sub", zero, ctx.op("Div", low, scale))
    rounded = ctx.op("Round", ctx.op("Clip", start, zero, most))
    point = ctx.op("Cast", rounded, to=TensorProto.UINT8)
    outputs = [*node.output, "", ""][:3]
    ctx.op("QuantizeLinear", x, scale, point, outputs=outputs[:1], axis=0)
    for value, name in zip((scale, point), outputs[1:], strict=True):
        if name:
            ctx.name_as(value, name)


def _or_that_of_zeros(ctx: Vectorizer, width: str, most: str) -> str:
    """The scale of each row; undefined for a row of zeros, so the op itself computes that one."""
    zeros = ctx.value(np.zeros(1, np.float32), "zeros")
    known = [ctx.fresh(hint) for hint in ("quantized", "scale", "point")]
    ctx.op("DynamicQuantizeLinear", zeros, outputs=known)
    flat = ctx.op("Equal", width, ctx.value(np.array(0, np.float32), "range"))
    return ctx.op("Where", flat, known[1], ctx.op("Div", width, most))


def _of_row(ctx: Vectorizer, op: str, x: str, rank: int) -> str:
    """The least or largest element of each row, [B]."""
    axes = all_axes(rank)
    return spelling.along(ctx, op, x, axes, keepdims=0) if axes else x
