"""Steps of BitShift, and of operators on each bit, which came with opset 18."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter_down, identical
from passes.converters.writing.conversion import Conversion
from passes.ir.operators import op_of

#: The unsigned types, by the signed ones of their widths.
UNSIGNED: dict[int, int] = {
    TensorProto.INT8: TensorProto.UINT8,
    TensorProto.INT16: TensorProto.UINT16,
    TensorProto.INT32: TensorProto.UINT32,
    TensorProto.INT64: TensorProto.UINT64,
}
_LONGEST = 64

identical("BitShift", 28)  # amounts beyond the width, which it now defines, were undefined


@adapter_down("BitShift", 28)
def bit_shift_27(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Signed integers are shifted as unsigned ones; an amount beyond the width leaves nothing.

    A negative one shifted right is -1 - x shifted, the bits all turned, and turned again.
    """
    x, amount = node.input
    elem_type = ctx.known_elem_type(x)
    width = _width(elem_type)
    fixed = ctx.constant(amount)
    inside = fixed is not None and bool(np.all((fixed >= 0) & (fixed < width)))
    unsigned: int = UNSIGNED.get(elem_type, elem_type)
    if inside and unsigned == elem_type:
        return [node]
    bits, by = x, amount
    turned = ""
    if unsigned != elem_type:
        if ctx.attribute(node, "direction") == "RIGHT":
            turned = ctx.op("Less", x, ctx.number(0, elem_type))
            minus = ctx.number(-1, elem_type)
            bits = ctx.op("Where", turned, ctx.op("Sub", minus, x), x)
        bits, by = ctx.casts(unsigned, bits, amount)
    if inside:
        result = ctx.copy(node, bits, by)
    else:  # a negative amount is a large one without its sign
        none = ctx.number(0, unsigned)
        fits = ctx.op("Less", by, ctx.number(width, unsigned))
        result = ctx.copy(node, bits, ctx.op("Where", fits, by, none))
        result = ctx.op("Where", fits, result, none)
    result = ctx.op("Cast", result, to=elem_type)
    if turned:
        back = ctx.op("Sub", minus, result)
        result = ctx.op("Where", turned, back, result)
    return ctx.last(node, "Identity", result)


@adapter_down("BitShift", 11)
def bit_shift_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a product with a power of 2, or a quotient."""
    x, amount = node.input
    elem_type = ctx.known_elem_type(x)
    fixed = ctx.constant(amount)
    if fixed is not None:
        clipped = np.minimum(fixed, _width(elem_type) - 1)
        power = ctx.value(np.left_shift(np.ones((), fixed.dtype), clipped), "power")
    else:
        wide = ctx.op("Cast", amount, to=TensorProto.DOUBLE)
        most = ctx.number(_width(elem_type) - 1, TensorProto.DOUBLE)
        wide = ctx.op("Sub", wide, ctx.op("Relu", ctx.op("Sub", wide, most)))
        raised = ctx.op("Pow", ctx.number(2, TensorProto.DOUBLE), wide)
        power = ctx.op("Cast", raised, to=elem_type)
    return ctx.last(node, "Mul" if ctx.attribute(node, "direction") == "LEFT" else "Div", x, power)


def _width(elem_type: int) -> int:
    return 8 * helper.tensor_dtype_to_np_dtype(elem_type).itemsize


@adapter_down("BitwiseNot", 18)
def bitwise_not_17(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is -1 - x, and of unsigned integers the largest one less x."""
    elem_type = ctx.known_elem_type(node.input[0])
    most = -1 if elem_type in UNSIGNED else 2 ** _width(elem_type) - 1
    return ctx.last(node, "Sub", ctx.number(most, elem_type), node.input[0])


@adapter_down("BitwiseAnd", 18)
@adapter_down("BitwiseOr", 18)
@adapter_down("BitwiseXor", 18)
def bitwise_17(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The product of their bits, on a new last axis, added up: x & y.

    x | y is x + y less that, x ^ y is x + y less twice that, whatever wraps around.
    """
    elem_type = ctx.known_elem_type(node.input[0])
    halves, width = [0], _width(elem_type)
    if width == _LONGEST:
        halves, width = [0, _LONGEST // 2], _LONGEST // 2
    powers, weights = (
        ctx.whole([2**place for place in places], "powers") for places in (range(width), halves)
    )
    last, base = ctx.whole([-1], "last"), ctx.number(2**width, TensorProto.INT64)
    two = ctx.number(2, TensorProto.INT64)
    wide = ctx.casts(TensorProto.INT64, *node.input)
    bits = []
    for name in wide:
        halved = _digits(ctx, ctx.op("Unsqueeze", name, last), weights, base)
        bits.append(_digits(ctx, ctx.op("Unsqueeze", halved, last), powers, two))
    # by MatMul, as onnxruntime's ReduceSum of int64 is one of doubles
    found = ctx.op("MatMul", ctx.op("Mul", *bits), powers)
    found = ctx.op("MatMul", found, weights)
    if op_of(node) != "BitwiseAnd":
        less = found if op_of(node) == "BitwiseOr" else ctx.op("Mul", found, two)
        found = ctx.op("Sub", ctx.op("Add", *wide), less)
    return ctx.last(node, "Cast", found, to=elem_type)


def _digits(ctx: Conversion, x: str, weights: str, base: str) -> str:
    """The digits of integers (..., 1) at some weights (n): (..., n), none of them negative."""
    below = ctx.op("Mod", x, weights)
    return ctx.op("Mod", ctx.op("Div", ctx.op("Sub", x, below), weights), base)
