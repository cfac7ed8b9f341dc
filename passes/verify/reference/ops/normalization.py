"""LRN and LpNormalization."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


@implements("LRN")
def lrn(call: Call, x: Array) -> Array:
    """LRN-1 and -13: `x` [N, C, ...], normalised over `size` neighbouring channels."""
    size, channels = call.get("size"), x.shape[1]
    before, behind = (size - 1) // 2, size // 2
    squares = np.square(x)
    sums = np.stack(
        [squares[:, max(0, c - before) : c + behind + 1].sum(1) for c in range(channels)], 1
    )
    scale = call.get("bias", 1.0) + call.get("alpha", 1e-4) / size * sums
    return np.asarray(x / scale ** call.get("beta", 0.75), x.dtype)


@implements("LpNormalization")
def lp_normalization(call: Call, x: Array) -> Array:
    """LpNormalization-1 and -22: divided by the 1- or 2-norm along `axis`; 0 where it is 0."""
    axis, p = call.get("axis", -1), call.get("p", 2)
    norm = np.abs(x).sum(axis, keepdims=True)
    if p == 2:
        norm = np.sqrt(np.square(x).sum(axis, keepdims=True))
    return np.asarray(np.where(norm == 0, 0, x / norm), x.dtype)
