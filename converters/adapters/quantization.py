"""Steps of quantized ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter, adapter_down, expanded, identical
from passes.converters.writing.conversion import Conversion
from passes.ir.operators import op_of
from passes.ir.versions import HAS_ROUND
from passes.operators.element_types import signature
from passes.types.value_types import elem_type_of
from passes.writing import spelling

identical("DequantizeLinear", 13, because="axis is new, and a scalar scale has none")
identical("DequantizeLinear", 19)
identical("DequantizeLinear", 21, because="block_size is new, and 0 is no blocks, as before")
identical("DequantizeLinear", 23, because="output_dtype is new, by default the type of x_scale")
identical("DequantizeLinear", 24, 25, 28)

identical("QuantizeLinear", 13, because="axis is new, and a scalar scale has none")


@adapter("QuantizeLinear", 19)
def quantize_linear_19(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The scale has the type of x: an x of int32, whose scale is float, is cast to float."""
    x, *others = node.input
    elem_type = elem_type_of(ctx.type_of(x))
    if elem_type == TensorProto.FLOAT:
        return [node]
    if elem_type:
        as_float = ctx.op("Cast", x, to=TensorProto.FLOAT)
    else:
        as_float = ctx.op("CastLike", x, others[0])
    return [ctx.changed(node, inputs=[as_float, *others])]


identical(
    "QuantizeLinear", 21, because="output_dtype and block_size are new, and 0 is none, as before"
)
identical("QuantizeLinear", 23, because="precision is new, by default the type of y_scale")
identical("QuantizeLinear", 24, 25, 28)

identical("QLinearMatMul", 21)
expanded("DynamicQuantizeLinear", 11)

_BYTES = (TensorProto.INT8, TensorProto.UINT8)
_FLOAT8 = (
    TensorProto.FLOAT8E4M3FN,
    TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2,
    TensorProto.FLOAT8E5M2FNUZ,
)
_BY_ARITHMETIC = (*_BYTES, TensorProto.INT16, TensorProto.UINT16)


@adapter_down("QuantizeLinear", 23, exact=False)
def quantize_linear_22(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """`precision` becomes the type of the scale, and the input gets that type, too."""
    x, scale, *zero = node.input
    precision = ctx.attribute(node, "precision", 0) or ctx.known_elem_type(scale)
    inputs = [ctx.cast(name, ctx.known_elem_type(name), precision) for name in (x, scale)]
    return [ctx.changed(node, inputs=[*inputs, *zero], without=["precision"])]


@adapter_down("QuantizeLinear", 21)
def quantize_linear_20(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Blocks, and integers of 16 bits, become arithmetic; `output_dtype` a zero point of 0."""
    to = _quantized_type(node, ctx)
    if ctx.attribute(node, "block_size", 0) or to not in (*_BYTES, *_FLOAT8):
        return _quantize(node, ctx)
    plain = ctx.changed(node, without=["block_size", "output_dtype"])
    x, scale, *zero = node.input
    if any(zero) or to == TensorProto.UINT8:
        return [plain]
    zeros = spelling.filled(ctx, spelling.shape_of(ctx, scale), to, 0)
    return [ctx.changed(plain, inputs=[x, scale, zeros])]


@adapter_down("QuantizeLinear", 19, exact=False)
def quantize_linear_18(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The scale is float, and so is an input of another float type: they are cast."""
    to = _quantized_type(node, ctx)
    if to not in _BYTES:
        name = TensorProto.DataType.Name(to).lower()
        raise ctx.refused("no-equivalent", f"QuantizeLinear-13 quantizes to no {name}")
    x, scale, *zero = node.input
    plain = ctx.changed(node, without=["saturate"])
    elem_type = ctx.known_elem_type(x)
    if elem_type == TensorProto.FLOAT:
        return [plain]
    if elem_type != TensorProto.INT32:
        (x,) = ctx.casts(TensorProto.FLOAT, x)
    return [ctx.changed(plain, inputs=[x, *ctx.casts(TensorProto.FLOAT, scale), *zero])]


@adapter_down("QuantizeLinear", 13)
def quantize_linear_12(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Scales along an axis become arithmetic."""
    return _with_one_scale(node, ctx) or _quantize(node, ctx)


@adapter_down("DequantizeLinear", 28)
@adapter_down("DequantizeLinear", 25)
def dequantize_linear_27_and_24(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Fixed numbers of a type that is new are stored in a wider one."""
    node = _stored_wider(node, ctx)
    return _dequantize(node, ctx) if _is_of_floats(node, ctx) else [node]


@adapter_down("DequantizeLinear", 23, exact=False)
def dequantize_linear_22(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """`output_dtype` becomes the type of the scale, fixed numbers of 4 bits are stored as float."""
    node = _stored_wider(node, ctx)
    x, scale, *zero = node.input
    plain = ctx.changed(node, without=["output_dtype"])
    to = ctx.attribute(node, "output_dtype", 0)
    if to and ctx.known_elem_type(scale) != to:
        plain = ctx.changed(plain, inputs=[x, *ctx.casts(to, scale), *zero])
    return _dequantize(plain, ctx) if _is_of_floats(plain, ctx) else [plain]


@adapter_down("DequantizeLinear", 21)
def dequantize_linear_20(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Blocks, and integers of 16 bits, become arithmetic; fixed ones of 4 bits become 8 bits."""
    node = _stored_wider(node, ctx)
    known = (*_BYTES, TensorProto.INT32, *_FLOAT8)
    if ctx.attribute(node, "block_size", 0) or ctx.known_elem_type(node.input[0]) not in known:
        return _dequantize(node, ctx)
    return [ctx.changed(node, without=["block_size"])]


@adapter_down("DequantizeLinear", 19)
def dequantize_linear_18(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The scale is float, and so is the result, which is cast to what it was; fixed numbers of
    float8 are stored as float."""
    node = _stored_wider(node, ctx)
    if _is_of_floats(node, ctx):
        return _dequantize(node, ctx)
    x, scale, *zero = node.input
    elem_type = ctx.known_elem_type(scale)
    if elem_type == TensorProto.FLOAT:
        return [node]
    inputs = [x, *ctx.casts(TensorProto.FLOAT, scale), *zero]
    wide = ctx.copy(node, *inputs)
    return ctx.last(node, "Cast", wide, to=elem_type)


@adapter_down("DequantizeLinear", 13)
def dequantize_linear_12(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Scales along an axis become arithmetic."""
    return _with_one_scale(node, ctx) or _dequantize(node, ctx)


def _with_one_scale(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The node without an axis, where it has one scale; a vector of one becomes a scalar."""
    x, *scales = node.input
    dims = ctx.dims_of(scales[0])
    plain = ctx.changed(node, without=["axis"])
    if dims == ():
        return [plain]
    if dims != (1,):
        return []
    scalar = ctx.whole([], "scalar")
    reshaped = [ctx.op("Reshape", name, scalar) for name in scales if name]
    return [ctx.changed(plain, inputs=[x, *reshaped])]


def _quantized_type(node: NodeProto, ctx: Conversion) -> int:
    """The element type that a QuantizeLinear gives."""
    declared: int = ctx.attribute(node, "output_dtype", 0)
    if declared:
        return declared
    zero = node.input[2] if len(node.input) > 2 else ""
    return ctx.known_elem_type(zero) if zero else TensorProto.UINT8


@adapter_down("QuantizeLinear", 10)
def quantize_linear_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a division, rounding and a Clip."""
    return _quantize(node, ctx)


@adapter_down("DequantizeLinear", 10)
def dequantize_linear_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a difference of integers and a product."""
    return _dequantize(node, ctx)


def _quantize(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    to = _quantized_type(node, ctx)
    ctx = _with_round(ctx)
    x, scale, *zero = node.input
    wide = ctx.op("Cast", x, to=TensorProto.FLOAT)
    divisor = ctx.op("Cast", _spread(node, ctx, scale), to=TensorProto.FLOAT)
    zero_point = _spread(node, ctx, zero[0]) if any(zero) else ""
    return _saturated(node, ctx, ctx.op("Div", wide, divisor), zero_point, to)


def _dequantize(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    ctx = _with_round(ctx)
    x, scale, *zero = node.input
    to = ctx.known_elem_type(scale)
    is_float = _is_of_floats(node, ctx) or ctx.known_elem_type(x) in _FLOAT8
    wide = TensorProto.FLOAT if is_float else TensorProto.INT32
    value = ctx.op("Cast", x, to=wide)
    if any(zero):
        value = ctx.op("Sub", value, ctx.op("Cast", _spread(node, ctx, zero[0]), to=wide))
    value = ctx.op("Cast", value, to=TensorProto.FLOAT)
    factor = ctx.op("Cast", _spread(node, ctx, scale), to=TensorProto.FLOAT)
    return ctx.last(node, "Cast", ctx.op("Mul", value, factor), to=to)


def _stored_wider(node: NodeProto, ctx: Conversion) -> NodeProto:
    """A DequantizeLinear of fixed numbers, in a wider type where the target does not take theirs:
    integers as such of 8 bits, others as float, which it does not take, either."""
    x, scale, *zero = node.input
    elem_type = ctx.known_elem_type(x)
    taken = signature("DequantizeLinear", ctx.site.target)
    if elem_type not in _STORED or (taken and elem_type in taken.inputs[0].valid):
        return node
    numbers = [ctx.stored(name) for name in (x, *filter(None, zero))]
    if any(array is None for array in numbers):
        return node
    wide = [ctx.value(np.asarray(array).astype(_STORED[elem_type]), x) for array in numbers]
    return ctx.changed(node, inputs=[wide[0], scale, *wide[1:]])


_STORED: Mapping[int, npt.DTypeLike] = {
    TensorProto.INT2: np.int8,
    TensorProto.INT4: np.int8,
    TensorProto.UINT2: np.uint8,
    TensorProto.UINT4: np.uint8,
    TensorProto.FLOAT4E2M1: np.float32,
    TensorProto.FLOAT6E2M3: np.float32,
    TensorProto.FLOAT6E3M2: np.float32,
    **dict.fromkeys(_FLOAT8, np.float32),
}


def _is_of_floats(node: NodeProto, ctx: Conversion) -> bool:
    return ctx.known_elem_type(node.input[0]) == TensorProto.FLOAT


@adapter_down("MatMulInteger", 10)
def mat_mul_integer_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a product of int32 matrices, the zero points subtracted before."""
    ctx = _with_round(ctx)
    a, b, *zeros = node.input
    a_zero, b_zero = (*zeros, "", "")[:2]
    a_shifted = _shifted(ctx, a, _of_rows(ctx, a_zero), TensorProto.INT32)
    b_shifted = _shifted(ctx, b, b_zero, TensorProto.INT32)
    return ctx.last(node, "MatMul", a_shifted, b_shifted)


@adapter_down("ConvInteger", 10)
def conv_integer_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes convolutions in float, which holds each of their sums of integers.

    Numbers of 8 bits whose zero point is subtracted are below 256. Where their products could
    add up to more than 2**24, they are written as 16 * high + low, each below or equal to 16.
    """
    ctx = _with_round(ctx)
    x, w, *zeros = node.input
    x_zero, w_zero = (*zeros, "", "")[:2]
    rank, dims = ctx.known_rank(w), ctx.dims_of(w) or ()
    terms = 1
    for dim in dims[1:]:
        if not isinstance(dim, int):
            raise ctx.refused("unknown-rank", f"the reduction size of {w!r} is unknown")
        terms *= dim
    w_zero = w_zero and (w_zero if ctx.known_rank(w_zero) == 0 else _along(ctx, w_zero, 0, rank))
    xs = [(_shifted(ctx, x, x_zero, TensorProto.FLOAT), 1)]
    ws = [(_shifted(ctx, w, w_zero, TensorProto.FLOAT), 1)]
    if terms * 255 * 255 > _EXACT:
        xs = _halves(ctx, xs[0][0])
    if terms * 16 * 255 > _EXACT:
        ws = _halves(ctx, ws[0][0])
    if terms * 16 * 16 > _EXACT:
        raise ctx.refused("no-equivalent", f"a float does not hold sums of {terms} products")
    parts = [_product(node, ctx, one, two, by * w_by) for one, by in xs for two, w_by in ws]
    return ctx.last(node, "Identity", reduce(partial(ctx.op, "Add"), parts))


@adapter_down("QLinearMatMul", 10, exact=False)
def q_linear_mat_mul_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a MatMulInteger, whose result is scaled and rounded."""
    ctx = _with_round(ctx)
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.input
    whole = ctx.op("MatMulInteger", a, b, a_zero, b_zero)
    scale = ctx.op("Mul", _of_rows(ctx, a_scale), b_scale)
    return _rescaled(node, ctx, whole, scale, y_scale, y_zero)


@adapter_down("QLinearConv", 10, exact=False)
def q_linear_conv_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a ConvInteger, to whose result the bias is added, and which is scaled and
    rounded."""
    ctx = _with_round(ctx)
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = node.input
    rank = ctx.known_rank(x)
    inner = ctx.copy(node, x, w, x_zero, w_zero, op="ConvInteger")
    if any(bias):
        inner = ctx.op("Add", inner, _along(ctx, bias[0], 1, rank))
    if ctx.known_rank(w_scale):
        w_scale = _along(ctx, w_scale, 1, rank)
    return _rescaled(node, ctx, inner, ctx.op("Mul", x_scale, w_scale), y_scale, y_zero)


def _with_round(ctx: Conversion) -> Conversion:
    """Arithmetic in the place of a quantized op is written in opset 11 or later: its nodes take
    their own steps further down."""
    return ctx.later(max(ctx.version, HAS_ROUND))


def _saturated(
    node: NodeProto, ctx: Conversion, quotient: str, zero: str, to: int
) -> list[NodeProto]:
    """Float (any shape) rounded to even, the zero point added, to integers of type `to`."""
    if to not in _BY_ARITHMETIC:
        name = TensorProto.DataType.Name(to).lower()
        version = ctx.version
        raise ctx.refused("no-equivalent", f"opset {version} has no {name} to quantize to")
    value = ctx.op("Round", quotient)
    if zero:
        value = ctx.op("Add", value, ctx.op("Cast", zero, to=TensorProto.FLOAT))
    range_ = np.iinfo(helper.tensor_dtype_to_np_dtype(to))
    limits = [ctx.value(np.float32(one), "limit") for one in (range_.min, range_.max)]
    return ctx.last(node, "Cast", ctx.op("Clip", value, *limits), to=to)


def _spread(node: NodeProto, ctx: Conversion, scale: str) -> str:
    """A scale or zero point in a shape that broadcasts to that of the first input.

    It is a scalar, one of an axis (n), or one of blocks along that axis.
    """
    if ctx.known_rank(scale) == 0 or ctx.dims_of(scale) == (1,):
        return scale
    rank = ctx.known_rank(node.input[0])
    axis = ctx.attribute(node, "axis", 1)
    block = ctx.attribute(node, "block_size", 0)
    if rank == 1 and not block:
        return scale  # the axis of a vector does not matter
    if not -rank <= axis < rank:
        raise ctx.refused("invalid-node", f"axis {axis} of {op_of(node)} is none of {rank} axes")
    axis %= rank
    if not block:
        return _along(ctx, scale, axis, rank)
    size = (ctx.dims_of(node.input[0]) or ())[axis]
    if not isinstance(size, int):
        raise ctx.refused(
            "unknown-rank", f"{op_of(node)} has blocks along an axis of unknown length"
        )
    places = ctx.value(np.arange(size) // block, "blocks")
    return ctx.op("Gather", scale, places, axis=axis)


def _shifted(ctx: Conversion, x: str, zero: str, to: int) -> str:
    """Numbers of 8 bits less their zero point, in a wider type."""
    wide = ctx.op("Cast", x, to=to)
    return ctx.op("Sub", wide, ctx.op("Cast", zero, to=to)) if zero else wide


def _halves(ctx: Conversion, x: str) -> list[tuple[str, int]]:
    """Integers, as float (any shape), that are 16 * high + low, and what each half counts."""
    high = ctx.op("Floor", ctx.op("Mul", x, ctx.value(np.float32(1 / 16), "part")))
    low = ctx.op("Sub", x, ctx.op("Mul", high, ctx.value(np.float32(16), "part")))
    return [(high, 16), (low, 1)]


def _product(node: NodeProto, ctx: Conversion, x: str, w: str, by: int) -> str:
    """The convolution of two tensors of integers, as int32, `by` times."""
    whole = ctx.op("Cast", ctx.copy(node, x, w, op="Conv"), to=TensorProto.INT32)
    return whole if by == 1 else ctx.op("Mul", whole, ctx.value(np.int32(by), "by"))


def _rescaled(
    node: NodeProto, ctx: Conversion, whole: str, scale: str, y_scale: str, y_zero: str
) -> list[NodeProto]:
    """An int32 result (any shape) in the scale of the output."""
    factor = ctx.op("Div", scale, y_scale)
    value = ctx.op("Mul", ctx.op("Cast", whole, to=TensorProto.FLOAT), factor)
    return _saturated(node, ctx, value, y_zero, ctx.known_elem_type(y_zero))


def _of_rows(ctx: Conversion, vector: str) -> str:
    """A scale or zero point of each row of a matrix, (m) as (m, 1); others as they are."""
    if not vector or ctx.known_rank(vector) != 1 or ctx.dims_of(vector) == (1,):
        return vector
    return _along(ctx, vector, 0, 2)


def _along(ctx: Conversion, vector: str, axis: int, rank: int) -> str:
    """A vector (n) as (n, 1, ..., 1), so that it lies along an axis of a tensor."""
    if axis == rank - 1:
        return vector
    shape = np.array([-1] + [1] * (rank - 1 - axis))
    return ctx.op("Reshape", vector, ctx.value(shape, "along"))


_EXACT = 2**24  # float has all integers up to here
