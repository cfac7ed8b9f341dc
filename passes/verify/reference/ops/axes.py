"""Squeeze, and Unsqueeze below opset 13: several axes, in any order."""

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
    return _squeezed(x, call.get("axes"))


@implements("Squeeze", since=13)
def squeeze_input(call: Call, x: Array, axes: Array | None = None) -> Array:
    """Squeeze-13 and later: the same, `axes` being an input."""
    return _squeezed(x, None if axes is None else [int(axis) for axis in axes.reshape(-1)])


def _squeezed(x: Array, axes: list[int] | None) -> Array:
    """Without these axes, or without all of length 1.

    Raises NotImplementedError for a list of no axes: by the document nothing is dropped then,
    but onnxruntime drops every axis of length 1.
    """
    if axes is None:
        return np.squeeze(x)
    if not axes and 1 in x.shape:
        raise NotImplementedError("runtimes differ in what an empty list of axes means")
    return np.squeeze(x, tuple(normalized(axes, x.ndim)))


@implements("Unsqueeze", until=12)
def unsqueeze(call: Call, x: Array) -> Array:
    """Unsqueeze-1 and -11: `axes` are places in the output, their order has no meaning."""
    axes = call.get("axes")
    return np.expand_dims(x, tuple(sorted(normalized(axes, x.ndim + len(axes)))))
