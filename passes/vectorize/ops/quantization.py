"""Quantizing and dequantizing, and products of quantized values."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute
from passes.vectorize.ops.products import product
from passes.vectorize.vectorizer import Vectorizer, all_axes, batched, shifted
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
        ctx.again(node, axis=axis if _is_one(ctx, scale) else shifted(axis))
    elif _is_one(ctx, scale):  # the rows are the places of the new axis
        operands = [ctx.spread(x), *(_flat(ctx, name) for name in (scale, zero) if name)]
        ctx.again(node, operands, axis=0)
    else:
        ctx.only_rows(node, 1, 2)


def _is_one(ctx: Vectorizer, scale: str) -> bool:
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


_PARAMETERS = (1, 2, 4, 5, 6, 7)  # the scales and zero points of QLinearMatMul


@batched("QLinearMatMul")
def qlinear_matmul(node: NodeProto, ctx: Vectorizer) -> None:
    """One scale for all of an operand, the same for all rows."""
    ctx.only_rows(node, *_PARAMETERS)
    a, a_scale, a_zero, b, *others = node.input
    if not all(_is_one(ctx, node.input[place]) for place in _PARAMETERS):
        sentence = "QLinearMatMul with a scale per line or column has no vectorisation rule"
        ctx.refuse("no-batching-rule", sentence, *node.output)
    value = product(
        *(ctx, a, b),
        lambda left, right: ctx.op("QLinearMatMul", left, a_scale, a_zero, right, *others),
    )
    ctx.name_as(value, node.output[0])


@batched("MatMulInteger")
def matmul_integer(node: NodeProto, ctx: Vectorizer) -> None:
    """Zero points of each row leave the product: (A - z) x B is A x B - z * (sums of B)."""
    a, b, zero_a, zero_b = [*node.input, "", ""][:4]
    shared_b = not (ctx.carries(b) or ctx.carries(zero_b)) and ctx.rank(b) == 2
    if not (ctx.carries(zero_a) or ctx.carries(zero_b)) and _are_one(ctx, zero_a, zero_b):
        value = _times(ctx, a, b, zero_a, zero_b)
    elif shared_b and ctx.carries(a) and _are_one(ctx, zero_a):
        sums = ctx.op("ReduceSum", _difference(ctx, b, zero_b), ctx.ints(0), keepdims=0)
        points = ctx.op("Mul", _whole(ctx, zero_a, ctx.rank(a)), sums)
        value = ctx.op("Sub", _times(ctx, a, b, "", zero_b), points)
    else:
        value = product(ctx, _difference(ctx, a, zero_a, by_line=True), _difference(ctx, b, zero_b))
    ctx.name_as(value, node.output[0])


def _times(ctx: Vectorizer, a: str, b: str, zero_a: str, zero_b: str) -> str:
    points = [zero_a, zero_b] if zero_b else [zero_a] if zero_a else []
    return product(ctx, a, b, lambda left, right: ctx.op("MatMulInteger", left, right, *points))


def _are_one(ctx: Vectorizer, *names: str) -> bool:
    return all(not name or _is_one(ctx, name) for name in names)


def _whole(ctx: Vectorizer, zero: str, rank: int) -> str:
    """A zero point as int32, lined up with an operand of `rank`."""
    wide = ctx.op("Cast", zero, to=TensorProto.INT32)
    ctx.note(wide, TensorProto.INT32, ctx.dims(zero), carries=ctx.carries(zero))
    return ctx.raised(wide, rank)


def _difference(ctx: Vectorizer, x: str, zero: str, *, by_line: bool = False) -> str:
    """An operand without its zero points, int32; a list of them is by column, or `by_line`."""
    wide = ctx.op("Cast", x, to=TensorProto.INT32)
    carries = ctx.carries(x)
    ctx.note(wide, TensorProto.INT32, ctx.dims(x), carries=carries)
    if not zero:
        return wide
    points = zero
    if by_line and ctx.rank(zero) == 1 and not _is_one(ctx, zero):
        points = spelling.unsqueeze(ctx, zero, -1)
        dims = [*ctx.dims(zero), 1]
        ctx.note(points, ctx.elem_type(zero), dims, carries=ctx.carries(zero))
    value = ctx.op("Sub", wide, _whole(ctx, points, ctx.rank(x)))
    return ctx.note(value, TensorProto.INT32, ctx.dims(x), carries=carries or ctx.carries(zero))
