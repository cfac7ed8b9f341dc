"""Squeeze and Unsqueeze below opset 13: several axes, in any order."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


def normalized(axes: list[int], rank: int) -> list[int]:
    """Axes as 0..rank-1; ValueError when one is out of range or named twice."""
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"axis {axis} does not fit {rank} dimensions")
    positive = [axis % rank for axis in axes]
    if len(set(positive)) < len(positive):
        raise ValueError(f"an axis is named twice in {axes}")
    return positive


@implements("Squeeze", until=12)
def squeeze(call: Call, x: Array) -> Array:
    """Squeeze-1 and -11: drops `axes` (default: every axis of length 1), all at once."""
    axes = call.get("axes")
    if axes is None:
        return np.squeeze(x)
    return np.squeeze(x, tuple(normalized(axes, x.ndim)))


@implements("Unsqueeze", until=12)
def unsqueeze(call: Call, x: Array) -> Array:
    """Unsqueeze-1 and -11: `axes` are places in the output, their order has no meaning."""
    axes = call.get("axes")
    return np.expand_dims(x, tuple(sorted(normalized(axes, x.ndim + len(axes)))))
