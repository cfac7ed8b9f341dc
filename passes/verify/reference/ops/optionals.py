"""Optionals: an optional value is the value itself, an empty one is None."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array, Value
from passes.verify.reference.registry import KernelCall, implements


@implements("Optional")
def optional(call: KernelCall, value: Value = None) -> tuple[Value]:
    """Optional-15: the value, or None without an input."""
    return (value,)


@implements("OptionalHasElement")
def has_element(call: KernelCall, value: Value = None) -> Array:
    """OptionalHasElement-15 and -18: one bool, shape []."""
    return np.array(value is not None)


@implements("OptionalGetElement")
def get_element(call: KernelCall, value: Value) -> tuple[Value]:
    """OptionalGetElement-15 and -18; ValueError for an empty optional."""
    if value is None:
        raise ValueError("the optional is empty")
    return (value,)


@implements("Identity")
def identity(call: KernelCall, value: Value) -> tuple[Value]:
    """Identity-1 and later: tensors, sequences, and empty optionals from opset 16 on."""
    return (list(value) if isinstance(value, list) else value,)
