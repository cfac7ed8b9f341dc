"""Operators of one kind, by name: what proofs for all sizes and at drawn sizes treat alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

#: Operators by element of one input whose attributes are all that they mean besides.
UNARY = tuple(
    """
    Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu
    HardSigmoid HardSwish LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh
    Softplus Softsign Sqrt Tan Tanh ThresholdedRelu
    """.split()  # noqa: SIM905  # a table
)
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Sum", "Mean")
_REDUCED = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
REDUCTIONS = tuple(f"Reduce{name}" for name in _REDUCED)
#: The activations of RNN, GRU and LSTM, with their parameters.
ACTIVATIONS: Mapping[str, Sequence[str]] = {
    "Affine": ("alpha", "beta"),
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "ScaledTanh": ("alpha", "beta"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}


def cast_attributes(dtype: str, attributes: Mapping[str, Any]) -> tuple[tuple[str, object], ...]:
    """The attributes that matter to a Cast to this dtype."""
    return tuple(
        (name, attributes[name])
        for name in ("saturate", "round_mode")
        if "float8" in dtype and attributes.get(name) is not None
    )
