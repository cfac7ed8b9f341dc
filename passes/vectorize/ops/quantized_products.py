"""Products of quantized matrices."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.vectorize.ops.products import product
from passes.vectorize.ops.quantization import is_one
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling

_PARAMETERS = (1, 2, 4, 5, 6, 7)  # the scales and zero points of QLinearMatMul


@batched("QLinearMatMul")
def qlinear_matmul(node: NodeProto, ctx: Vectorizer) -> None:
    """One scale for all of an operand, the same for all rows."""
    ctx.only_rows(node, *_PARAMETERS)
    a, a_scale, a_zero, b, *others = node.input
    if not all(is_one(ctx, node.input[place]) for place in _PARAMETERS):
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
    return all(not name or is_one(ctx, name) for name in names)


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
    if by_line and ctx.rank(zero) == 1 and not is_one(ctx, zero):
        points = spelling.unsqueeze(ctx, zero, -1)
        dims = [*ctx.dims(zero), 1]
        ctx.note(points, ctx.elem_type(zero), dims, carries=ctx.carries(zero))
    value = ctx.op("Sub", wide, _whole(ctx, points, ctx.rank(x)))
    return ctx.note(value, TensorProto.INT32, ctx.dims(x), carries=carries or ctx.carries(zero))
