"""What operators mean, by name, where proofs for all sizes and at drawn sizes treat them alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passes.operators.comparisons import COMPARISONS
from passes.operators.functions import NUMPY
from passes.operators.table import TRAITS, where
from passes.operators.traits import Fails, Folds, Shape

#: Operators by element of one input whose attributes are all that they mean besides: those that
#: have no rule of their own.
UNARY = where(lambda row: row.shape is Shape.ELEMENTWISE and row.fails is Fails.NEVER) - {
    *("Clip", "Identity", "Not", "Shrink", "Swish")
}
#: Those that broadcast numbers and have one rule.
ARITHMETIC = where(
    lambda row: (
        row.shape is Shape.BROADCAST
        and row.fails in (Fails.NEVER, Fails.INTEGERS)
        and not (row.compares or row.logic)
    )
) - {"Where"}
REDUCTIONS = where(lambda row: row.shape is Shape.REDUCED)
_COMMUTE = where(lambda row: row.commutes)
#: What every machine computes of floats to the same bits.
EXACT_OPERATORS = {
    op: function
    for op, function in NUMPY.items()
    if op in COMPARISONS or TRAITS[op].folds is Folds.FLOATS
}
#: The types of which a type has every value.
LOSSLESS = {
    "float32": {"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float16", "bfloat16"},
    "float64": {"float16", "float32", "int32"},
    "int8": {"int4"},
    "uint8": {"uint4"},
    "int32": {"int8", "uint8", "int16", "uint16"},
    "int64": {"int32"},
}

#: Attributes that are 0 or 1; of other numbers, executors differ.
_FLAGS = """allowzero exclusive fmod input_forget keepdims largest layout linear_before_reset
    new_axis noop_with_empty_axes reverse select_last_index sorted transA transB upper"""


def odd_flag(attributes: Mapping[str, Any]) -> str:
    """A sentence on an attribute that should be 0 or 1 and is not; empty if there is none."""
    odd = (name for name in _FLAGS.split() if attributes.get(name) not in (None, 0, 1))
    return next((f"the attribute {name!r} is {attributes[name]}, not 0 or 1" for name in odd), "")


def commutes(op: str, dtype: str) -> bool:
    """Return whether operands may change places without another bit, NaN aside; of floats, Max and
    Min take the first or the second zero."""
    return op in _COMMUTE or (op in ("Max", "Min") and "float" not in dtype)


def is_number(dtype: str) -> bool:
    """Return whether elements are floats, which are free in every proof."""
    return "float" in dtype or "complex" in dtype


def cast_attributes(dtype: str, attributes: Mapping[str, Any]) -> tuple[tuple[str, object], ...]:
    """The attributes that matter to a Cast to this dtype."""
    return tuple(
        (name, attributes[name])
        for name in ("saturate", "round_mode")
        if "float8" in dtype and attributes.get(name) is not None
    )
