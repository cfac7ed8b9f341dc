"""Steps of ops that work element by element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.adapters.bits import UNSIGNED
from passes.converters.steps import adapter, adapter_down, identical, identical_down, refusal_down
from passes.converters.writing.conversion import Conversion, through_float
from passes.ir.operators import op_of
from passes.types.value_types import FLOATS, elem_type_of

for _op in ("Max", "Mean", "Min", "Sum"):
    identical(_op, 8, because="inputs of one shape, as before, broadcast to that shape")
    identical(_op, 13)
for _op in ("Max", "Min"):
    identical(_op, 12)

for _op in ("Greater", "Less"):
    identical(_op, 9, 13)
identical("PRelu", 9, 16)
identical("Pow", 12, 13, 15)  # the exponent may be of another type, which is new
identical("Mod", 13, 28)  # fmod of integers, which only 13 leaves out, is in its own tests

for _op in ("Add", "Div", "Mul", "Relu", "Sub"):
    identical(_op, 13, 14)

for _op in ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal"):
    identical(_op, 13)
for _op in ("Sigmoid", "Sign", "Sqrt", "Tanh"):
    identical(_op, 13)

identical("Equal", 11, 13, 19)
for _op in ("GreaterOrEqual", "LessOrEqual", "LeakyRelu", "Where"):
    identical(_op, 16)
identical("IsInf", 20)
identical("IsNaN", 13, 20)
identical("Identity", 13, 14, 16, 19, 21, 23, 24, 25)

for _op in ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Sin", "Sinh", "Tan"):
    identical(_op, 22)
for _op in ("Round", "Softplus", "Softsign"):
    identical(_op, 22)


@adapter("Erf", 13)
def erf_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers are no longer allowed: they take the way over float and back.

    Input and output (any shape) of any integer type; the result is rounded towards zero, so it is
    0 but where float has no number below 1 left. A value of unknown type is taken to be a float;
    an integer would not pass the checker.
    """
    elem_type = elem_type_of(ctx.type_of(node.input[0]))
    return [node] if elem_type in _NOT_INTEGERS else through_float(node, ctx)


identical_down("Erf", 13)


_NOT_INTEGERS = (0, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
_IN_DOUBLE = (  # integers that a double holds
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32),
)


# -- comparisons ----------------------------------------------------------------------------


@adapter_down("Greater", 9)
@adapter_down("Less", 9)
def order_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers are compared as double; of 64 bits, their difference, from two halves.

    The halves of each difference have at most 34 bits, so it is rounded once, which leaves its
    sign, and is 0 only where the integers are equal. Unsigned ones keep their order as signed
    ones whose first bit is turned.
    """
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type in FLOATS:
        return [node]
    if elem_type in _IN_DOUBLE:
        wide = ctx.casts(TensorProto.DOUBLE, *node.input)
        return ctx.last(node, op_of(node), *wide)
    names = list(node.input)
    if elem_type == TensorProto.UINT64:
        least = ctx.number(-(2**63), TensorProto.INT64)
        signed = ctx.casts(TensorProto.INT64, *names)
        names = [ctx.op("Add", name, least) for name in signed]
    part, halves = ctx.number(2**32, TensorProto.INT64), []
    for name in names:
        high = ctx.op("Div", name, part)
        low = ctx.op("Sub", name, ctx.op("Mul", high, part))
        halves.append(ctx.casts(TensorProto.DOUBLE, high, low))
    highs, lows = (ctx.op("Sub", *pair) for pair in zip(*halves, strict=True))
    scaled = ctx.op("Mul", highs, ctx.number(2**32, TensorProto.DOUBLE))
    difference = ctx.op("Add", scaled, lows)
    return ctx.last(node, op_of(node), difference, ctx.number(0, TensorProto.DOUBLE))


@adapter_down("Equal", 11)
def equal_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Floats are equal where none is greater, and none is NaN; integers are, in a wider type."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type == TensorProto.UINT64:  # the Cast keeps the bits
        return ctx.last(node, "Equal", *ctx.casts(TensorProto.INT64, *node.input))
    if elem_type not in FLOATS:
        return [node]
    differs = ctx.op("Or", ctx.op("Less", *node.input), ctx.op("Greater", *node.input))
    a, b = (_is_number(ctx, name, elem_type) for name in node.input)
    return ctx.last(node, "And", ctx.op("Not", differs), ctx.op("And", a, b))


def _is_number(ctx: Conversion, x: str, elem_type: int) -> str:
    """Return whether x is not NaN: below 1, or above 0."""
    zero, one = (ctx.number(value, elem_type) for value in (0, 1))
    return ctx.op("Or", ctx.op("Less", x, one), ctx.op("Greater", x, zero))


@adapter_down("GreaterOrEqual", 12)
@adapter_down("LessOrEqual", 12)
def or_equal_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a Greater or Less, or Equal."""
    strict = ctx.op(op_of(node).removesuffix("OrEqual"), *node.input)
    return ctx.last(node, "Or", strict, ctx.op("Equal", *node.input))


@adapter_down("IsNaN", 9)
def is_nan_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """NaN is neither below 1 nor above 0."""
    elem_type = ctx.known_elem_type(node.input[0])
    return ctx.last(node, "Not", _is_number(ctx, node.input[0], elem_type))


@adapter_down("IsInf", 10)
def is_inf_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """An infinity is beyond the largest finite number."""
    (x,) = node.input
    elem_type = ctx.known_elem_type(x)
    largest = float(np.finfo(helper.tensor_dtype_to_np_dtype(elem_type)).max)
    above = ("Greater", x, ctx.number(largest, elem_type))
    below = ("Less", x, ctx.number(-largest, elem_type))
    positive, negative = (
        ctx.attribute(node, f"detect_{one}", 1) for one in ("positive", "negative")
    )
    if positive and negative:
        return ctx.last(node, "Or", ctx.op(*above), ctx.op(*below))
    if positive or negative:
        return ctx.last(node, *(above if positive else below))
    return ctx.last(node, "Less", x, x)  # nothing is below itself


# -- the larger, the smaller, one of two ----------------------------------------------------


@adapter_down("Max", 12)
@adapter_down("Min", 12)
def extreme_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of integers, the positive part of the difference, in double, is added or subtracted; those
    of 64 bits are compared one after the other."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type in FLOATS:
        return [node]
    larger = op_of(node) == "Max"
    if elem_type in _IN_DOUBLE:
        before, *others = ctx.casts(TensorProto.DOUBLE, *node.input)
        for other in others:
            ordered = (other, before) if larger else (before, other)
            more = ctx.op("Relu", ctx.op("Sub", *ordered))
            before = ctx.op("Add" if larger else "Sub", before, more)
        return ctx.last(node, "Cast", before, to=elem_type)
    before, *others = node.input
    for other in others:
        takes = ctx.op("Greater" if larger else "Less", other, before)
        before = ctx.op("Where", takes, other, before)
    return ctx.last(node, "Identity", before)


@adapter_down("Max", 8)
@adapter_down("Min", 8)
@adapter_down("Sum", 8)
@adapter_down("Mean", 8)
def of_one_shape_7(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Inputs are broadcast first: zeros of their common shape are subtracted."""
    first, *others = [ctx.dims_of(name) for name in node.input]
    if not others or (
        first is not None and None not in first and all(one == first for one in others)
    ):
        return [node]
    none = [ctx.op("Less", name, name) for name in node.input]  # nothing is below itself
    nowhere = none[0]
    for other in none[1:]:
        nowhere = ctx.op("Or", nowhere, other)
    (zeros,) = ctx.casts(ctx.known_elem_type(node.input[0]), nowhere)
    return ctx.last(node, op_of(node), *(ctx.op("Sub", name, zeros) for name in node.input))


@adapter_down("Where", 9)
def where_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Each element is gathered from both tensors, concatenated.

    Their sizes are known; integers of unknown sizes are multiplied by 0 or 1 and added up.
    """
    condition, x, y = node.input
    shapes = [ctx.dims_of(name) or (None,) * ctx.known_rank(name) for name in (x, y)]
    sizes = [tuple(dim for dim in shape if isinstance(dim, int)) for shape in shapes]
    if list(map(len, sizes)) == list(map(len, shapes)):
        x_size, y_size = (int(np.prod(size, dtype=np.int64)) for size in sizes)
        flat = ctx.whole([-1], "flat")
        both = ctx.op("Concat", ctx.op("Reshape", x, flat), ctx.op("Reshape", y, flat), axis=0)
        from_y = np.arange(x_size, x_size + y_size).reshape(sizes[1])
        step = np.arange(x_size).reshape(sizes[0]) - from_y
        chosen = ctx.op("Cast", condition, to=TensorProto.INT64)
        moved = ctx.op("Mul", chosen, ctx.value(step, "step"))
        places = ctx.op("Add", moved, ctx.value(from_y, "places"))
        return ctx.last(node, "Gather", both, places)
    elem_type = ctx.known_elem_type(x)
    if elem_type not in (TensorProto.INT32, TensorProto.INT64):
        raise ctx.refused(
            "unknown-rank",
            f"opset {ctx.version} has no Where, and the sizes of {x!r} and {y!r} are not known",
        )
    chosen = ctx.op("Cast", condition, to=elem_type)
    left = ctx.op("Cast", ctx.op("Not", condition), to=elem_type)
    return ctx.last(node, "Add", ctx.op("Mul", chosen, x), ctx.op("Mul", left, y))


# -- arithmetic -----------------------------------------------------------------------------


@adapter_down("Relu", 14)
def relu_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of integers, it is the larger one of them and 0."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type in FLOATS:
        return [node]
    return ctx.last(node, "Max", node.input[0], ctx.number(0, elem_type))


@adapter_down("Pow", 12, exact=False)
def pow_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """An exponent of another type, and a base of int32, are raised in double."""
    base, exponent = (ctx.known_elem_type(name) for name in node.input)
    if base == exponent and base in FLOATS:
        return [node]
    if base == TensorProto.INT64:
        return _as_product(node, ctx)
    fixed = ctx.constant(node.input[1])
    if fixed is not None and base in FLOATS:
        same = fixed.astype(helper.tensor_dtype_to_np_dtype(base))
        if np.array_equal(same.astype(fixed.dtype), fixed):
            return [ctx.changed(node, inputs=[node.input[0], ctx.value(same, "exponent")])]
    wide = ctx.casts(TensorProto.DOUBLE, *node.input)
    return ctx.last(node, "Cast", ctx.op("Pow", *wide), to=base)


def _as_product(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The base, multiplied by itself as often as a constant exponent requires."""
    x, y = node.input
    power = ctx.constant(y)
    if power is None or power.ndim or not 0 < power <= _MOST_FACTORS or power % 1:
        sentence = "Pow-7 does not support int64, and no float type represents all int64 values"
        raise ctx.refused("no-equivalent", sentence)
    product = x
    for _ in range(int(power) - 1):
        product = ctx.op("Mul", product, x)
    return ctx.last(node, "Identity", product)


_MOST_FACTORS = 16


@adapter_down("Mod", 28)
def mod_27(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of floats, what is left has the sign of the divisor: that is added where it has not."""
    elem_type = ctx.known_elem_type(node.input[0])
    if ctx.attribute(node, "fmod", 0) or elem_type not in FLOATS:
        return [node]
    return _of_divisors_sign(node, ctx, ctx.copy(node, *node.input, fmod=1), elem_type)


@adapter_down("Mod", 10)
def mod_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of integers, the quotient times the divisor is subtracted."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type in FLOATS:
        raise ctx.refused("no-equivalent", "no op before Mod-10 divides floats with a remainder")
    a, b = node.input
    left = ctx.op("Sub", a, ctx.op("Mul", ctx.op("Div", a, b), b))
    if ctx.attribute(node, "fmod", 0) or elem_type not in UNSIGNED:
        return ctx.last(node, "Identity", left)
    return _of_divisors_sign(node, ctx, left, elem_type)


def _of_divisors_sign(
    node: NodeProto, ctx: Conversion, left: str, elem_type: int
) -> Sequence[NodeProto]:
    """The remainder of a division, plus the divisor if their signs differ; a zero has the sign of
    the divisor, too."""
    divisor = node.input[1]
    zero = ctx.number(0, elem_type)
    signs = [ctx.op("Less", name, zero) for name in (left, divisor)]
    other = ctx.op("And", ctx.op("Xor", *signs), _differs(ctx, left, zero))
    if elem_type in FLOATS:  # whose divisor may be infinite
        found = ctx.op("Where", other, ctx.op("Add", left, divisor), left)
        ones = [ctx.number(one, elem_type) for one in (-1, 1)]
        sign = ctx.op("Where", signs[1], *ones)
        return ctx.last(node, "Mul", ctx.op("Abs", found), sign)  # onnxruntime's Where loses -0.0
    factor = ctx.op("Cast", other, to=elem_type)
    return ctx.last(node, "Add", left, ctx.op("Mul", factor, divisor))


def _differs(ctx: Conversion, a: str, b: str) -> str:
    return ctx.op("Or", ctx.op("Less", a, b), ctx.op("Greater", a, b))


@adapter_down("Sign", 9)
def sign_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is whether the number is above 0, less whether it is below; of NaN, 0 divided by 0."""
    (x,) = node.input
    elem_type = ctx.known_elem_type(x)
    zero = ctx.number(0, elem_type)
    above, below = ctx.casts(elem_type, ctx.op("Greater", x, zero), ctx.op("Less", x, zero))
    if elem_type not in FLOATS:
        return ctx.last(node, "Sub", above, below)
    number = ctx.op("Cast", _is_number(ctx, x, elem_type), to=elem_type)
    return ctx.last(node, "Div", ctx.op("Sub", above, below), number)


@adapter_down("Round", 11, exact=False)
def round_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Floor, and 1 more from a half on, if the floor is odd, and above a half in any case.

    A 0 may lose its sign.
    """
    (x,) = node.input
    elem_type = ctx.known_elem_type(x)
    half, two = ctx.number(0.5, elem_type), ctx.number(2, elem_type)
    floor = ctx.op("Floor", x)
    part = ctx.op("Sub", x, floor)
    even = ctx.op("Mul", ctx.op("Floor", ctx.op("Mul", floor, half)), two)
    odd = ctx.op("Greater", ctx.op("Sub", floor, even), half)
    at_least = ctx.op("Not", ctx.op("Less", part, half))
    more = ctx.op("Or", ctx.op("Greater", part, half), ctx.op("And", odd, at_least))
    one = ctx.op("Cast", more, to=elem_type)
    return ctx.last(node, "Add", floor, one)


# -- hyperbolic functions -------------------------------------------------------------------


@adapter_down("Cosh", 9, exact=False)
@adapter_down("Sinh", 9, exact=False)
def hyperbolic_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Exponentials in double; Sinh is Tanh times Cosh, which is accurate around 0, too."""
    (x,) = node.input
    wide = ctx.op("Cast", x, to=TensorProto.DOUBLE)
    half = ctx.number(0.5, TensorProto.DOUBLE)
    root = ctx.op("Exp", ctx.op("Mul", wide, half))
    inverse = ctx.op("Exp", ctx.op("Neg", ctx.op("Mul", wide, half)))
    squares = [ctx.op("Mul", one, ctx.op("Mul", one, half)) for one in (root, inverse)]
    value = ctx.op("Add", *squares)
    if op_of(node) == "Sinh":
        value = ctx.op("Mul", value, ctx.op("Tanh", wide))
    return ctx.last(node, "Cast", value, to=ctx.known_elem_type(x))


@adapter_down("Acosh", 9, exact=False)
@adapter_down("Asinh", 9, exact=False)
@adapter_down("Atanh", 9, exact=False)
def inverse_hyperbolic_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A logarithm in double, whose digits are enough for a float."""
    (x,) = node.input
    ctx = ctx.later(9)
    elem_type = ctx.known_elem_type(x)
    if elem_type == TensorProto.DOUBLE:
        raise ctx.refused("no-equivalent", f"{op_of(node)} as a logarithm is less accurate")
    wide = ctx.op("Cast", x, to=TensorProto.DOUBLE)
    one, half = (ctx.number(value, TensorProto.DOUBLE) for value in (1, 0.5))
    if op_of(node) == "Atanh":
        ratio = ctx.op("Div", ctx.op("Add", one, wide), ctx.op("Sub", one, wide))
        value = ctx.op("Mul", ctx.op("Log", ratio), half)
    elif op_of(node) == "Acosh":
        square = ctx.op("Mul", ctx.op("Sub", wide, one), ctx.op("Add", wide, one))
        value = ctx.op("Log", ctx.op("Add", wide, ctx.op("Sqrt", square)))
    else:  # of the absolute, as the sum would cancel out below 0
        size = ctx.op("Abs", wide)
        root = ctx.op("Sqrt", ctx.op("Add", ctx.op("Mul", wide, wide), one))
        logarithm = ctx.op("Log", ctx.op("Add", size, root))
        value = ctx.op("Mul", logarithm, ctx.op("Sign", wide))
    return ctx.last(node, "Cast", value, to=elem_type)


refusal_down("Erf", 9, "no-equivalent", "no op before Erf-9 computes the error function")
