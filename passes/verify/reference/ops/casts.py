"""Casts to strings."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


@implements("Cast")
def cast(call: Call, x: Array) -> Array:
    """Cast-6 and later; to a string as onnxruntime writes it, which the document leaves open."""
    if call.get("to") == TensorProto.STRING and x.dtype != object:
        return as_strings(x)
    result: Array = call.onnx(x)[0]
    return result


@implements("CastLike")
def cast_like(call: Call, x: Array, like: Array) -> Array:
    """CastLike-15 and later; see `cast`."""
    if like.dtype == object and x.dtype != object:
        return as_strings(x)
    result: Array = call.onnx(x, like)[0]
    return result


def as_strings(x: Array) -> Array:
    """Eight significant digits, `INF`, `-INF` and `NaN`; bools as `1` and `0`."""
    written = np.empty(x.shape, object)
    written.reshape(-1)[:] = [_written(element) for element in x.reshape(-1).tolist()]
    return written


def _written(element: float | int | bool) -> str:
    if not isinstance(element, float):
        return str(int(element))
    if np.isnan(element):
        return "NaN"
    if np.isinf(element):
        return "INF" if element > 0 else "-INF"
    return f"{element:.8g}"
