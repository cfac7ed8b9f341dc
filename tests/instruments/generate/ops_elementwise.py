"""Ops that handle each element on its own."""

from __future__ import annotations

from onnx import TensorProto

from tests.instruments.generate.block import Block, NotHere
from tests.instruments.generate.odd import odd
from tests.instruments.generate.templates import (
    partner,
    some_float,
    some_number,
    some_tensor,
    template,
)
from tests.instruments.generate.values import (
    BOOL,
    FLOAT,
    FLOATS,
    INNER,
    INT64,
    INTS,
    RARE,
    SELECTED,
    STRING,
    Value,
    array_of,
)

_SMOOTH = (
    *("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Softplus", "Softsign", "Elu", "Selu", "LeakyRelu"),
    *("HardSigmoid", "Sin", "Cos", "Atan", "Asinh", "Erf", "Celu", "HardSwish", "Mish", "Gelu"),
    *("Swish", "Dropout", "Identity"),
)
_STEPS = ("Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Shrink")
_OF_SMALL = ("Exp", "Sinh", "Cosh", "Tan")
_OF_UNIT = ("Asin", "Acos", "Atanh")
_OF_POSITIVE = ("Log", "Sqrt", "Reciprocal", "Acosh")


@template(5)
def unary(b: Block) -> None:
    b.op(b.choices.pick(_SMOOTH), some_float(b))


@template()
def step(b: Block) -> None:
    b.op(b.choices.pick(_STEPS), some_float(b, smooth=True))


@template()
def unary_within_bounds(b: Block) -> None:
    """Functions that are steep or undefined elsewhere, where rounding would blow up."""
    x = some_float(b)
    kind = b.choices.below(3)
    if kind == 0:
        b.op(b.choices.pick(_OF_SMALL), b.op("Tanh", x))
        return
    positive = b.op("Add", b.op("Abs", x), b.scalar(8, x.elem))
    if kind == 1:
        b.op(b.choices.pick(_OF_POSITIVE), positive)
    else:
        b.op(b.choices.pick(_OF_UNIT), b.op("Div", x, positive))


@template(6)
def binary(b: Block) -> None:
    op = b.choices.pick(["Add", "Sub", "Max", "Min", "Mul", "Mean", "Sum"])
    x = some_number(b)
    y = partner(b, x)
    inputs = [y, x] if b.choices.one_in(3) else [x, y]
    made = b.op(op, *inputs)
    if op == "Mul" and x.is_float and not b.choices.one_in(4):
        b.op("Softsign", made)


@odd("equal")
def equal_constants(b: Block) -> None:
    """The same constant again and again."""
    x = some_number(b, smooth=True)
    drawn = array_of(x.elem, (), [b.choices.below(9) - 4])
    for _ in range(2 + b.choices.below(3)):
        x = b.op(b.choices.pick(["Add", "Sub", "Max"]), x, b.constant(drawn))


@template()
def quotient(b: Block) -> None:
    x = some_number(b)
    divisor = b.scalar(b.choices.below(4) + 2, x.elem)
    b.op("Mod" if not x.is_float and b.choices.one_in(2) else "Div", x, divisor)


@template()
def power(b: Block) -> None:
    x = some_float(b)
    b.op("Pow", b.op("Tanh", x), b.scalar(4 * (b.choices.below(3) + 1), x.elem))


@template()
def bits(b: Block) -> None:
    x = b.pick(lambda v: v.elem in (INT64, TensorProto.UINT8, TensorProto.UINT32))
    if b.choices.one_in(2):
        b.op("BitwiseNot", x)
    elif x.elem != INT64 and b.choices.one_in(2):
        b.op("BitShift", x, b.scalar(1, x.elem), direction="RIGHT")
    else:
        b.op(b.choices.pick(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), x, partner(b, x))


@template(2)
def comparison(b: Block) -> None:
    op = b.choices.pick(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
    x = some_number(b, smooth=True)
    b.op(op, x, partner(b, x, smooth=True))


@template()
def same_string(b: Block) -> None:
    x = b.pick(lambda v: v.elem in (STRING, BOOL) and not v.sequence and not v.rough)
    b.op("Equal", x, partner(b, x, smooth=True))


@template()
def logic(b: Block) -> None:
    x = b.pick(lambda v: v.elem == BOOL and not v.sequence)
    if b.choices.one_in(3):
        b.op("Not", x)
    else:
        b.op(b.choices.pick(["And", "Or", "Xor"]), x, partner(b, x))


@template(2)
def where(b: Block) -> None:
    anything = b.choices.one_in(12)
    x = b.pick(lambda v: not v.sequence and (anything or v.elem in SELECTED))
    condition = b.want(BOOL, b.choices.pick([(), x.shape]), smooth=True)
    b.op("Where", condition, x, partner(b, x))


@template()
def odd_numbers(b: Block) -> None:
    x = some_float(b)
    b.op(b.choices.pick(["IsNaN", "IsInf"]), x)


@template()
def clip(b: Block) -> None:
    x = some_float(b)
    if b.version("Clip") < 11:
        b.op("Clip", x, min=-1.5, max=2.0)
    else:
        low = None if b.choices.one_in(3) else b.scalar(-6, x.elem)
        b.op("Clip", x, low, b.scalar(8, x.elem))


@template(2)
def cast(b: Block) -> None:
    """Of whole numbers and bools to anything; floats only to other floats."""
    x = some_tensor(b)
    if x.elem == STRING:
        raise NotHere
    targets: tuple[int, ...] = (
        (*FLOATS, TensorProto.BFLOAT16) if _is_real(x) else (*FLOATS, *INTS, BOOL)
    )
    targets = tuple(target for target in targets if b.program.opset >= RARE.get(target, 0))
    if b.odd("rare") and not x.rough:  # between float and these; not from one to the other
        targets = tuple(one for one in RARE if b.program.opset >= RARE[one]) or targets
        targets = targets if x.elem == FLOAT else (FLOAT,)
    elif x.elem in INNER:
        targets = (FLOAT,)
    to = b.choices.pick(targets)
    if to in INNER:
        b.narrowed(x, to)
        return
    if b.program.opset >= 15 and b.choices.one_in(4):
        b.op("CastLike", x, b.want(to, ()))
    else:
        b.op("Cast", x, to=to)


def _is_real(value: Value) -> bool:
    return value.elem in (*FLOATS, TensorProto.BFLOAT16)


@template()
def slope(b: Block) -> None:
    x = some_float(b, rank=1)
    b.op("PRelu", x, b.want(x.elem, x.shape[-1:]))


@template()
def random_that_shows_nothing(b: Block) -> None:
    """A random op whose result is known all the same: what lies below 1 is 0 when cut off."""
    x = some_float(b)
    if x.narrow:
        raise NotHere
    drawn = b.op("RandomUniformLike", x, low=0.0, high=0.5)
    b.op("Add", x, b.op("Floor", drawn))
    b.visible[:] = [value for value in b.visible if value != drawn]
