"""Div and Mod of integers, Mean, Softsign, Clip, casts to strings, Dropout's old mask."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from passes.verify.executor import Array
from passes.verify.reference.registry import KernelCall, implements


@implements("Div", "Mod")
def checked_division(call: KernelCall, a: Array, b: Array) -> Array:
    """Div-7 and later, Mod-10 and later: integers divided by zero are an error, not garbage.

    Raises ZeroDivisionError where the divisor that an element meets is the integer 0.
    """
    if b.dtype.kind in "iu" and not b.all() and np.broadcast(a, b).size:
        raise ZeroDivisionError("integer division by zero")
    result: Array = call.onnx(a, b)[0]
    return result


@implements("Mean", since=8)
def mean(call: KernelCall, first: Array, *others: Array) -> Array:
    """Mean-8 and -13: the operands are broadcast, each to the shape of all of them."""
    total = first
    for other in others:
        total = total + other
    return np.asarray(total / (1 + len(others)), first.dtype)


@implements("Dropout", since=7, until=11)
def dropout(call: KernelCall, x: Array) -> tuple[Array, Array]:
    """Dropout-7 and -10 are inference only: the data as it is.

    The documents leave the mask open; onnxruntime gives zeros, of the data's type at opset 7,
    bool from 10 on.
    """
    return x, np.zeros(x.shape, x.dtype if call.version < 10 else np.bool_)


@implements("Softsign")
def softsign(call: KernelCall, x: Array) -> Array:
    """Softsign-1 and -22: x / (1 + |x|); onnx's kernel fails for scalars."""
    return np.asarray(x / (1 + np.abs(x)), x.dtype)


@implements("Clip", since=6)
def clip(
    call: KernelCall, x: Array, lower: Array | None = None, upper: Array | None = None
) -> Array:
    """Clip-6 to -13: Max and then Min, so that equal bounds and inputs give equal zeros.

    numpy's `clip`, which onnx's kernel calls, keeps -0.0 at a bound of 0.0 only where both bounds
    are given. Raises ValueError for a bound of another number of elements than one.
    """
    kept = x
    for bound, name, nearer in ((lower, "min", np.maximum), (upper, "max", np.minimum)):
        given = call.get(name) if call.version < 11 else bound
        if given is not None:
            if np.size(given) != 1:
                raise ValueError(f"a bound has {np.size(given)} elements")
            kept = nearer(kept, np.asarray(given, x.dtype))
    return kept


@implements("Cast")
def cast(call: KernelCall, x: Array) -> Array:
    """Cast-6 and later; to a string as onnxruntime writes it, which the document leaves open."""
    if call.get("to") == TensorProto.STRING and x.dtype != object:
        return as_strings(x)
    result: Array = call.onnx(x)[0]
    return result


@implements("CastLike")
def cast_like(call: KernelCall, x: Array, like: Array) -> Array:
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
