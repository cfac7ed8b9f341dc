"""DequantizeLinear below opset 19."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


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
