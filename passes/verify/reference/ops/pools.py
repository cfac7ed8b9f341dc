"""MaxPool, AveragePool, and the pools over whole images."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.ops.windows import Windows, windows
from passes.verify.reference.registry import KernelCall, implements


@implements("MaxPool")
def max_pool(call: KernelCall, x: Array) -> tuple[Array, Array]:
    """MaxPool-1 to -22: `x` [N, C, ...] of any rank, integers too.

    Gives the maxima and their places in the flat input (int64), of equal values the first one;
    `storage_order=1` counts the spatial places column by column. Padding never wins.
    """
    frame = windows(call, x.shape[2:])
    spatial = x.shape[2:]
    best = np.full((*x.shape[:2], *frame.counts), _lowest(x.dtype), x.dtype)
    place = np.full(best.shape, -1, np.int64)
    numbers = np.arange(math.prod(spatial)).reshape(
        spatial, order="F" if call.get("storage_order", 0) else "C"
    )
    for offset in itertools.product(*map(range, frame.sizes)):
        reached, inside = _reached(frame, offset, spatial)
        grid = np.ix_(*reached)
        reads: Any = (..., *grid)
        values = x[reads]
        # A NaN never wins: no version of the document specifies more.
        wins = inside & (values == values) & ((values > best) | (place < 0))
        best = np.where(wins, values, best)
        place = np.where(wins, numbers[grid], place)
    first = np.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *[1] * len(spatial))
    return best, place + first * math.prod(spatial)


@implements("AveragePool")
def average_pool(call: KernelCall, x: Array) -> Array:
    """AveragePool-1 to -22: the mean over each window, without its padding unless the attribute
    `count_include_pad` is 1; elements past the padding (`ceil_mode`) never count."""
    frame, spatial = windows(call, x.shape[2:]), x.shape[2:]
    total = np.zeros((*x.shape[:2], *frame.counts), np.result_type(x.dtype, np.float32))
    number = np.zeros(frame.counts, total.dtype)
    for offset in itertools.product(*map(range, frame.sizes)):
        reached, inside = _reached(frame, offset, spatial)
        reads: Any = (..., *np.ix_(*reached))
        total += np.where(inside, x[reads], 0)
        padded = call.get("count_include_pad", 0)
        number += _reached(frame, offset, spatial, padded=True)[1] if padded else inside
    with np.errstate(all="ignore"):
        return np.asarray(total / number, x.dtype)


def _reached(
    frame: Windows, offset: tuple[int, ...], spatial: tuple[int, ...], *, padded: bool = False
) -> tuple[list[Array], Array]:
    """Per axis, what every window reads at `offset` (kept inside), and whether it is inside, or
    inside of the `padded` image."""
    reached, inside = [], np.array(True)
    for axis, length in enumerate(spatial):
        starts = np.arange(frame.counts[axis]) * frame.strides[axis] - frame.before[axis]
        reads = starts + offset[axis] * frame.dilations[axis]
        before, after = (frame.before[axis], frame.after[axis]) if padded else (0, 0)
        held = (reads >= -before) & (reads < length + after)
        inside = np.multiply.outer(inside, held)
        reached.append(np.clip(reads, 0, max(0, length - 1)))
    return reached, inside


def _lowest(dtype: np.dtype[Any]) -> float | int:
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -np.inf


@implements("GlobalAveragePool")
def global_average_pool(call: KernelCall, x: Array) -> Array:
    """GlobalAveragePool-1 and -22: the mean over all spatial axes, [N, C, 1, ...]."""
    return np.asarray(x.mean(tuple(range(2, x.ndim)), keepdims=True), x.dtype)


@implements("GlobalMaxPool")
def global_max_pool(call: KernelCall, x: Array) -> Array:
    """GlobalMaxPool-1 and -22: the maximum over all spatial axes, [N, C, 1, ...]."""
    return np.asarray(x.max(tuple(range(2, x.ndim)), keepdims=True), x.dtype)


@implements("GlobalLpPool")
def global_lp_pool(call: KernelCall, x: Array) -> Array:
    """GlobalLpPool-2 and -22: the p-norm (default 2) over all spatial axes, [N, C, 1, ...]."""
    p = call.get("p", 2)
    axes = tuple(range(2, x.ndim))
    return np.asarray((np.abs(x) ** p).sum(axes, keepdims=True) ** (1.0 / p), x.dtype)
