"""Steps of ops that work element by element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter, adapter_down, identical, identical_down, refusal_down
from passes.converters.writing.conversion import Conversion
from passes.converters.writing.replacement import Replacement, through_float
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
identical("BitShift", 28)  # amounts beyond the width, which it now defines, were undefined

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
for _op in ("Elu", "HardSigmoid", "HardSwish", "Mish", "Selu", "ThresholdedRelu"):
    identical(_op, 22)
for _op in ("Round", "Softplus", "Softsign"):
    identical(_op, 22)
identical("Celu", 28)


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
_UNSIGNED: dict[int, int] = {
    TensorProto.INT8: TensorProto.UINT8,
    TensorProto.INT16: TensorProto.UINT16,
    TensorProto.INT32: TensorProto.UINT32,
    TensorProto.INT64: TensorProto.UINT64,
}


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
    new = Replacement(node, ctx)
    if elem_type in _IN_DOUBLE:
        wide = new.casts(TensorProto.DOUBLE, *node.input)
        return new.last(op_of(node), *wide)
    names = list(node.input)
    if elem_type == TensorProto.UINT64:
        least = new.number(-(2**63), TensorProto.INT64)
        signed = new.casts(TensorProto.INT64, *names)
        names = [new.op("Add", name, least) for name in signed]
    part, halves = new.number(2**32, TensorProto.INT64), []
    for name in names:
        high = new.op("Div", name, part)
        low = new.op("Sub", name, new.op("Mul", high, part))
        halves.append(new.casts(TensorProto.DOUBLE, high, low))
    highs, lows = (new.op("Sub", *pair) for pair in zip(*halves, strict=True))
    scaled = new.op("Mul", highs, new.number(2**32, TensorProto.DOUBLE))
    difference = new.op("Add", scaled, lows)
    return new.last(op_of(node), difference, new.number(0, TensorProto.DOUBLE))


@adapter_down("Equal", 11)
def equal_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Floats are equal where none is greater, and none is NaN; integers are, in a wider type."""
    elem_type = ctx.known_elem_type(node.input[0])
    new = Replacement(node, ctx)
    if elem_type == TensorProto.UINT64:  # the Cast keeps the bits
        return new.last("Equal", *new.casts(TensorProto.INT64, *node.input))
    if elem_type not in FLOATS:
        return [node]
    differs = new.op("Or", new.op("Less", *node.input), new.op("Greater", *node.input))
    a, b = (_is_number(new, name, elem_type) for name in node.input)
    return new.last("And", new.op("Not", differs), new.op("And", a, b))


def _is_number(new: Replacement, x: str, elem_type: int) -> str:
    """Whether x is not NaN: below 1, or above 0."""
    zero, one = (new.number(value, elem_type) for value in (0, 1))
    return new.op("Or", new.op("Less", x, one), new.op("Greater", x, zero))


@adapter_down("GreaterOrEqual", 12)
@adapter_down("LessOrEqual", 12)
def or_equal_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a Greater or Less, or Equal."""
    new = Replacement(node, ctx)
    strict = new.op(op_of(node).removesuffix("OrEqual"), *node.input)
    return new.last("Or", strict, new.op("Equal", *node.input))


@adapter_down("IsNaN", 9)
def is_nan_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """NaN is neither below 1 nor above 0."""
    new = Replacement(node, ctx)
    elem_type = ctx.known_elem_type(node.input[0])
    return new.last("Not", _is_number(new, node.input[0], elem_type))


@adapter_down("IsInf", 10)
def is_inf_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """An infinity is beyond the largest finite number."""
    (x,), new = node.input, Replacement(node, ctx)
    elem_type = ctx.known_elem_type(x)
    largest = float(np.finfo(helper.tensor_dtype_to_np_dtype(elem_type)).max)
    above = ("Greater", x, new.number(largest, elem_type))
    below = ("Less", x, new.number(-largest, elem_type))
    positive, negative = (
        ctx.attribute(node, f"detect_{one}", 1) for one in ("positive", "negative")
    )
    if positive and negative:
        return new.last("Or", new.op(*above), new.op(*below))
    if positive or negative:
        return new.last(*(above if positive else below))
    return new.last("Less", x, x)  # nothing is below itself


# -- the larger, the smaller, one of two ----------------------------------------------------


@adapter_down("Max", 12)
@adapter_down("Min", 12)
def extreme_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of integers, the positive part of the difference, in double, is added or subtracted; those
    of 64 bits are compared one after the other."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type in FLOATS:
        return [node]
    new = Replacement(node, ctx)
    larger = op_of(node) == "Max"
    if elem_type in _IN_DOUBLE:
        before, *others = new.casts(TensorProto.DOUBLE, *node.input)
        for other in others:
            ordered = (other, before) if larger else (before, other)
            more = new.op("Relu", new.op("Sub", *ordered))
            before = new.op("Add" if larger else "Sub", before, more)
        return new.last("Cast", before, to=elem_type)
    before, *others = node.input
    for other in others:
        takes = new.op("Greater" if larger else "Less", other, before)
        before = new.op("Where", takes, other, before)
    return new.last("Identity", before)


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
    new = Replacement(node, ctx)
    none = [new.op("Less", name, name) for name in node.input]  # nothing is below itself
    nowhere = none[0]
    for other in none[1:]:
        nowhere = new.op("Or", nowhere, other)
    (zeros,) = new.casts(ctx.known_elem_type(node.input[0]), nowhere)
    return new.last(op_of(node), *(new.op("Sub", name, zeros) for name in node.input))


@adapter_down("Where", 9)
def where_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Each element is gathered from both tensors, laid behind each other.

    Their sizes are known; integers of unknown sizes are multiplied by 0 or 1 and added up.
    """
    condition, x, y = node.input
    new = Replacement(node, ctx)
    shapes = [ctx.dims_of(name) or (None,) * ctx.known_rank(name) for name in (x, y)]
    sizes = [tuple(dim for dim in shape if isinstance(dim, int)) for shape in shapes]
    if list(map(len, sizes)) == list(map(len, shapes)):
        x_size, y_size = (int(np.prod(size, dtype=np.int64)) for size in sizes)
        flat = ctx.value(np.array([-1]), "flat")
        both = new.op("Concat", new.op("Reshape", x, flat), new.op("Reshape", y, flat), axis=0)
        from_y = np.arange(x_size, x_size + y_size).reshape(sizes[1])
        step = np.arange(x_size).reshape(sizes[0]) - from_y
        chosen = new.op("Cast", condition, to=TensorProto.INT64)
        moved = new.op("Mul", chosen, ctx.value(step, "step"))
        places = new.op("Add", moved, ctx.value(from_y, "places"))
        return new.last("Gather", both, places)
    elem_type = ctx.known_elem_type(x)
    if elem_type not in (TensorProto.INT32, TensorProto.INT64):
        raise ctx.refused(
            "unknown-rank",
            f"opset {ctx.version} has no Where, and the sizes of {x!r} and {y!r} are not known",
        )
    chosen = new.op("Cast", condition, to=elem_type)
    left = new.op("Cast", new.op("Not", condition), to=elem_type)
    return new.last("Add", new.op("Mul", chosen, x), new.op("Mul", left, y))


# -- arithmetic -----------------------------------------------------------------------------


@adapter_down("Relu", 14)
def relu_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of integers, it is the larger one of them and 0."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type in FLOATS:
        return [node]
    new = Replacement(node, ctx)
    return new.last("Max", node.input[0], new.number(0, elem_type))


@adapter_down("Pow", 12, exact=False)
def pow_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """An exponent of another type, and a base of int32, are raised in double."""
    base, exponent = (ctx.known_elem_type(name) for name in node.input)
    if base == exponent and base in FLOATS:
        return [node]
    new = Replacement(node, ctx)
    if base == TensorProto.INT64:
        return _as_product(new)
    fixed = ctx.constant(node.input[1])
    if fixed is not None and base in FLOATS:
        same = fixed.astype(helper.tensor_dtype_to_np_dtype(base))
        if np.array_equal(same.astype(fixed.dtype), fixed):
            return [ctx.changed(node, inputs=[node.input[0], ctx.value(same, "exponent")])]
    wide = new.casts(TensorProto.DOUBLE, *node.input)
    return new.last("Cast", new.op("Pow", *wide), to=base)


def _as_product(new: Replacement) -> Sequence[NodeProto]:
    """The base, multiplied with itself as often as a fixed exponent says."""
    (x, y), ctx = new.node.input, new.ctx
    power = ctx.constant(y)
    if power is None or power.ndim or not 0 < power <= _MOST_FACTORS or power % 1:
        raise ctx.refused("no-equivalent", "Pow-7 takes no int64, and no float holds all of them")
    product = x
    for _ in range(int(power) - 1):
        product = new.op("Mul", product, x)
    return new.last("Identity", product)


_MOST_FACTORS = 16


@adapter_down("Mod", 28)
def mod_27(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of floats, what is left has the sign of the divisor: that is added where it has not."""
    elem_type = ctx.known_elem_type(node.input[0])
    if ctx.attribute(node, "fmod", 0) or elem_type not in FLOATS:
        return [node]
    new = Replacement(node, ctx)
    return _of_divisors_sign(new, new.copy(None, *node.input, fmod=1), elem_type)


@adapter_down("Mod", 10)
def mod_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of integers, the quotient times the divisor is subtracted."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type in FLOATS:
        raise ctx.refused("no-equivalent", "no op before Mod-10 divides floats with a remainder")
    (a, b), new = node.input, Replacement(node, ctx)
    left = new.op("Sub", a, new.op("Mul", new.op("Div", a, b), b))
    if ctx.attribute(node, "fmod", 0) or elem_type not in _UNSIGNED:
        return new.last("Identity", left)
    return _of_divisors_sign(new, left, elem_type)


def _of_divisors_sign(new: Replacement, left: str, elem_type: int) -> Sequence[NodeProto]:
    """What is left of a division, the divisor added where their signs differ; a zero has the sign
    of the divisor, too."""
    divisor = new.node.input[1]
    zero = new.number(0, elem_type)
    signs = [new.op("Less", name, zero) for name in (left, divisor)]
    other = new.op("And", new.op("Xor", *signs), _differs(new, left, zero))
    if elem_type in FLOATS:  # whose divisor may be infinite
        found = new.op("Where", other, new.op("Add", left, divisor), left)
        ones = [new.number(one, elem_type) for one in (-1, 1)]
        sign = new.op("Where", signs[1], *ones)
        return new.last("Mul", new.op("Abs", found), sign)  # onnxruntime's Where loses -0.0
    factor = new.op("Cast", other, to=elem_type)
    return new.last("Add", left, new.op("Mul", factor, divisor))


def _differs(new: Replacement, a: str, b: str) -> str:
    return new.op("Or", new.op("Less", a, b), new.op("Greater", a, b))


@adapter_down("Sign", 9)
def sign_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is whether the number is above 0, less whether it is below; of NaN, 0 divided by 0."""
    (x,), new = node.input, Replacement(node, ctx)
    elem_type = ctx.known_elem_type(x)
    zero = new.number(0, elem_type)
    above, below = new.casts(elem_type, new.op("Greater", x, zero), new.op("Less", x, zero))
    if elem_type not in FLOATS:
        return new.last("Sub", above, below)
    number = new.op("Cast", _is_number(new, x, elem_type), to=elem_type)
    return new.last("Div", new.op("Sub", above, below), number)


@adapter_down("Round", 11, exact=False)
def round_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Floor, and 1 more from a half on, if the floor is odd, and above a half in any case.

    A 0 may lose its sign.
    """
    (x,), new = node.input, Replacement(node, ctx)
    elem_type = ctx.known_elem_type(x)
    half, two = new.number(0.5, elem_type), new.number(2, elem_type)
    floor = new.op("Floor", x)
    part = new.op("Sub", x, floor)
    even = new.op("Mul", new.op("Floor", new.op("Mul", floor, half)), two)
    odd = new.op("Greater", new.op("Sub", floor, even), half)
    at_least = new.op("Not", new.op("Less", part, half))
    more = new.op("Or", new.op("Greater", part, half), new.op("And", odd, at_least))
    one = new.op("Cast", more, to=elem_type)
    return new.last("Add", floor, one)


# -- hyperbolic functions -------------------------------------------------------------------


@adapter_down("Cosh", 9, exact=False)
@adapter_down("Sinh", 9, exact=False)
def hyperbolic_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Exponentials in double; Sinh is Tanh times Cosh, which is accurate around 0, too."""
    (x,), new = node.input, Replacement(node, ctx)
    wide = new.op("Cast", x, to=TensorProto.DOUBLE)
    half = new.number(0.5, TensorProto.DOUBLE)
    root = new.op("Exp", new.op("Mul", wide, half))
    inverse = new.op("Exp", new.op("Neg", new.op("Mul", wide, half)))
    squares = [new.op("Mul", one, new.op("Mul", one, half)) for one in (root, inverse)]
    value = new.op("Add", *squares)
    if op_of(node) == "Sinh":
        value = new.op("Mul", value, new.op("Tanh", wide))
    return new.last("Cast", value, to=ctx.known_elem_type(x))


@adapter_down("Acosh", 9, exact=False)
@adapter_down("Asinh", 9, exact=False)
@adapter_down("Atanh", 9, exact=False)
def inverse_hyperbolic_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A logarithm in double, whose digits are enough for a float."""
    (x,), new = node.input, Replacement(node, ctx.later(9))
    elem_type = ctx.known_elem_type(x)
    if elem_type == TensorProto.DOUBLE:
        raise ctx.refused("no-equivalent", f"{op_of(node)} as a logarithm is less accurate")
    wide = new.op("Cast", x, to=TensorProto.DOUBLE)
    one, half = (new.number(value, TensorProto.DOUBLE) for value in (1, 0.5))
    if op_of(node) == "Atanh":
        ratio = new.op("Div", new.op("Add", one, wide), new.op("Sub", one, wide))
        value = new.op("Mul", new.op("Log", ratio), half)
    elif op_of(node) == "Acosh":
        square = new.op("Mul", new.op("Sub", wide, one), new.op("Add", wide, one))
        value = new.op("Log", new.op("Add", wide, new.op("Sqrt", square)))
    else:  # of the absolute, as the sum would cancel out below 0
        size = new.op("Abs", wide)
        root = new.op("Sqrt", new.op("Add", new.op("Mul", wide, wide), one))
        logarithm = new.op("Log", new.op("Add", size, root))
        value = new.op("Mul", logarithm, new.op("Sign", wide))
    return new.last("Cast", value, to=elem_type)


refusal_down("Erf", 9, "no-equivalent", "no op before Erf-9 computes the error function")


# -- bits -----------------------------------------------------------------------------------


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
    unsigned: int = _UNSIGNED.get(elem_type, elem_type)
    if inside and unsigned == elem_type:
        return [node]
    new = Replacement(node, ctx)
    bits, by = x, amount
    turned = ""
    if unsigned != elem_type:
        if ctx.attribute(node, "direction") == "RIGHT":
            turned = new.op("Less", x, new.number(0, elem_type))
            minus = new.number(-1, elem_type)
            bits = new.op("Where", turned, new.op("Sub", minus, x), x)
        bits, by = new.casts(unsigned, bits, amount)
    if inside:
        result = new.copy(None, bits, by)
    else:  # a negative amount is a large one without its sign
        none = new.number(0, unsigned)
        fits = new.op("Less", by, new.number(width, unsigned))
        result = new.copy(None, bits, new.op("Where", fits, by, none))
        result = new.op("Where", fits, result, none)
    result = new.op("Cast", result, to=elem_type)
    if turned:
        back = new.op("Sub", minus, result)
        result = new.op("Where", turned, back, result)
    return new.last("Identity", result)


@adapter_down("BitShift", 11)
def bit_shift_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a product with a power of 2, or a quotient."""
    (x, amount), new = node.input, Replacement(node, ctx)
    elem_type = ctx.known_elem_type(x)
    fixed = ctx.constant(amount)
    if fixed is not None:
        clipped = np.minimum(fixed, _width(elem_type) - 1)
        power = ctx.value(np.left_shift(np.ones((), fixed.dtype), clipped), "power")
    else:
        wide = new.op("Cast", amount, to=TensorProto.DOUBLE)
        most = new.number(_width(elem_type) - 1, TensorProto.DOUBLE)
        wide = new.op("Sub", wide, new.op("Relu", new.op("Sub", wide, most)))
        raised = new.op("Pow", new.number(2, TensorProto.DOUBLE), wide)
        power = new.op("Cast", raised, to=elem_type)
    return new.last("Mul" if ctx.attribute(node, "direction") == "LEFT" else "Div", x, power)


def _width(elem_type: int) -> int:
    return 8 * helper.tensor_dtype_to_np_dtype(elem_type).itemsize


@adapter_down("BitwiseNot", 18)
def bitwise_not_17(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is -1 - x, and of unsigned integers the largest one less x."""
    new = Replacement(node, ctx)
    elem_type = ctx.known_elem_type(node.input[0])
    most = -1 if elem_type in _UNSIGNED else 2 ** _width(elem_type) - 1
    return new.last("Sub", new.number(most, elem_type), node.input[0])


@adapter_down("BitwiseAnd", 18)
@adapter_down("BitwiseOr", 18)
@adapter_down("BitwiseXor", 18)
def bitwise_17(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The product of their bits, on a new last axis, added up: x & y.

    x | y is x + y less that, x ^ y is x + y less twice that, whatever wraps around.
    """
    new, elem_type = Replacement(node, ctx), ctx.known_elem_type(node.input[0])
    halves, width = [0], _width(elem_type)
    if width == _LONGEST:
        halves, width = [0, _LONGEST // 2], _LONGEST // 2
    powers, weights = (
        ctx.value(np.array([2**place for place in places], np.int64), "powers")
        for places in (range(width), halves)
    )
    last, base = ctx.value(np.array([-1]), "last"), new.number(2**width, TensorProto.INT64)
    two = new.number(2, TensorProto.INT64)
    wide = new.casts(TensorProto.INT64, *node.input)
    bits = []
    for name in wide:
        halved = _digits(new, new.op("Unsqueeze", name, last), weights, base)
        bits.append(_digits(new, new.op("Unsqueeze", halved, last), powers, two))
    # by MatMul, as onnxruntime's ReduceSum of int64 is one of doubles
    found = new.op("MatMul", new.op("Mul", *bits), powers)
    found = new.op("MatMul", found, weights)
    if op_of(node) != "BitwiseAnd":
        less = found if op_of(node) == "BitwiseOr" else new.op("Mul", found, two)
        found = new.op("Sub", new.op("Add", *wide), less)
    return new.last("Cast", found, to=elem_type)


_LONGEST = 64


def _digits(new: Replacement, x: str, weights: str, base: str) -> str:
    """The digits of integers (..., 1) at some weights (n): (..., n), none of them negative."""
    below = new.op("Mod", x, weights)
    return new.op("Mod", new.op("Div", new.op("Sub", x, below), weights), base)
