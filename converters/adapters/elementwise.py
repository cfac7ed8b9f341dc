"""Steps of ops that work element by element."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto

from converters.conversion import Conversion
from converters.steps import adapter, identical
from converters.through_float import through_float
from passes.types.value_types import elem_type_of

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
def erf_13(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Integers are no longer allowed: they take the way over float and back.

    Input and output (any shape) of any integer type; the result is rounded towards zero, so it is
    0 but where float has no number below 1 left. A value of unknown type is taken to be a float;
    an integer would not pass the checker.
    """
    elem_type = elem_type_of(at.type_of(node.input[0]))
    return [node] if elem_type in _NOT_INTEGERS else through_float(node, at)


_NOT_INTEGERS = (0, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
