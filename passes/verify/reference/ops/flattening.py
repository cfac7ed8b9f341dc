"""Flatten; Softmax, LogSoftmax and Hardmax below opset 13: over everything from an axis on.

And LogSoftmax of nothing.
"""

from __future__ import annotations

import math
from typing import Any

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


@implements("Flatten")
def flatten(call: Call, x: Array) -> Array:
    """Flatten-1 and later: `x` as a matrix, the dims before `axis` (default 1) as its rows.

    Either dim may be 0. ValueError for an axis outside of -rank..rank.
    """
    axis = call.get("axis")
    if not -x.ndim <= axis <= x.ndim:
        raise ValueError(f"axis {axis} does not fit {x.ndim} dimensions")
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))


@implements("Softmax", "LogSoftmax", "Hardmax", until=12)
def flattened(call: Call, x: Array) -> Array:
    """Softmax-1, -11 and kin (operator documents): `x` float [d0, ..., dn], same shape out.

    The input is taken as a matrix, the dims before `axis` (default 1) as its rows; from
    opset 13 on only the axis itself counts. Raises ValueError for an axis out of range.
    """
    matrix = flatten(call, x)
    if x.size == 0:
        return x.copy()
    # The newest kernel on the last axis: a converted model then gives the same bits.
    result: Array = call.onnx(matrix, version=13, axis=1)[0]
    return result.reshape(x.shape)


@implements("LogSoftmax", since=13)
def log_softmax(call: Call, x: Array) -> Any:
    """LogSoftmax-13: `x` float of any shape, same shape out.

    onnx's kernel writes into an empty input, which may be read-only.
    """
    return x.copy() if x.size == 0 else call.onnx(x)
