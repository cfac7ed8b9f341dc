"""QuantizeLinear of large numbers, and DequantizeLinear below opset 19."""

from __future__ import annotations

from typing import Any

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements

#: Far beyond what any whole type holds, and within int32 after the zero point is added.
_FAR = float(1 << 30)


@implements("QuantizeLinear", since=10)
def quantize_linear(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Any:
    """QuantizeLinear-10 to -25: x / scale + zero, rounded to even and saturated.

    onnx's kernel goes through int32, which larger quotients overflow.
    """
    with np.errstate(all="ignore"):
        most = _FAR * np.abs(_spread(scale, x, call).astype(np.float64))
        beyond = (np.abs(x.astype(np.float64)) > most) & (most > 0)
        if beyond.any():
            x = np.where(beyond, np.sign(x) * most, x).astype(x.dtype)
    return call.onnx(x, scale, zero)


def _spread(scale: Array, x: Array, call: Call) -> Array:
    """The scale of each element, in a shape that broadcasts to that of `x`."""
    block = call.get("block_size", 0)
    if scale.size == 1 or not block:
        return _along(scale, x, call)
    axis = call.get("axis", 1)
    return np.take(np.repeat(scale, block, axis), range(x.shape[axis]), axis)


@implements("DequantizeLinear", since=10, until=18)
def dequantize_linear(call: Call, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """DequantizeLinear-10 and -13: (x - zero) * scale, float32.

    `x` int8, uint8 or int32; `scale` and `zero` one number, or (from 13) one per place of
    `axis` (default 1). Raises ValueError where they do not fit.
    """
    whole = x.astype(np.int64)
    if zero is not None:
        whole = whole - _along(zero.astype(np.int64), x, call)
    return np.asarray(whole.astype(np.float32) * _along(scale, x, call), np.float32)


def _along(values: Array, x: Array, call: Call) -> Array:
    if values.size == 1:
        return values.reshape(())
    axis = call.get("axis", 1)
    if not -x.ndim <= axis < x.ndim or values.shape != (x.shape[axis],):
        raise ValueError(f"scales of shape {values.shape} do not fit axis {axis} of {x.shape}")
    shape = [1] * x.ndim
    shape[axis] = -1
    return values.reshape(shape)
