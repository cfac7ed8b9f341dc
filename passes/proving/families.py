"""Operators of one kind, by name: what proofs for all sizes and at drawn sizes treat alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passes.operators.table import where
from passes.operators.traits import Fails, Shape

#: Operators by element of one input whose attributes are all that they mean besides: those that
#: have no rule of their own and give the type that they take.
UNARY = where(lambda row: row.shape is Shape.ELEMENTWISE and row.fails is Fails.NEVER) - {
    *("Clip", "Identity", "IsInf", "IsNaN", "Not", "Shrink", "Swish")
}
#: Those that broadcast numbers and have one rule; a new operator may fail in its own way.
ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Sum", "Mean")
REDUCTIONS = where(lambda row: row.shape is Shape.REDUCED)


def cast_attributes(dtype: str, attributes: Mapping[str, Any]) -> tuple[tuple[str, object], ...]:
    """The attributes that matter to a Cast to this dtype."""
    return tuple(
        (name, attributes[name])
        for name in ("saturate", "round_mode")
        if "float8" in dtype and attributes.get(name) is not None
    )
