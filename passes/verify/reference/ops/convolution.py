"""Conv."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from passes.verify.executor import Array
from passes.verify.reference.ops.windows import Windows, windows
from passes.verify.reference.registry import Call, implements


@implements("Conv")
def conv(call: Call, x: Array, w: Array, b: Array | None = None) -> Array:
    """Conv-1 to -22: `x` [N, C, ...], `w` [M, C / group, ...], `b` [M]: one matrix product for each
    image and group. onnx's kernel gathers what it multiplies element by element.

    Raises ValueError where shapes do not fit, and where the kernel is larger than the padded image.
    """
    group = call.get("group", 1)
    if x.ndim < 3 or x.ndim != w.ndim or x.shape[1] != w.shape[1] * group or w.shape[0] % group:
        raise ValueError(f"a kernel of {w.shape} in {group} groups does not fit {x.shape}")
    batch, channels, spatial, sizes = x.shape[0], x.shape[1], x.shape[2:], w.shape[2:]
    if tuple(call.get("kernel_shape") or sizes) != sizes:
        raise ValueError(f"kernel_shape is {call.get('kernel_shape')}, the kernel has {sizes}")
    frame = windows(call, spatial, list(sizes))
    if 0 in frame.counts and all(x.shape):
        raise ValueError(f"a kernel of {sizes} does not fit into {spatial}")
    rows = channels // group * math.prod(sizes)
    if 0 in frame.counts:
        read = np.zeros((batch, channels, *sizes, *frame.counts), x.dtype)
    else:
        read = _read(x, frame)
    read = read.reshape(batch, group, rows, math.prod(frame.counts))
    result = np.matmul(w.reshape(group, w.shape[0] // group, rows), read)
    result = result.reshape(batch, w.shape[0], *frame.counts)
    if b is not None:
        result += b.reshape(-1, *[1] * len(sizes))
    return np.asarray(result, x.dtype)


def _read(x: Array, frame: Windows) -> Array:
    """Return the elements that each element of the kernel reads, [N, C, kernel ..., windows
    ...]."""
    pads, taken, kernel = [(0, 0), (0, 0)], [], []
    for axis, length in enumerate(x.shape[2:]):
        count, stride, before = frame.counts[axis], frame.strides[axis], frame.before[axis]
        span = (frame.sizes[axis] - 1) * frame.dilations[axis] + 1
        end = (count - 1) * stride + span  # after the last window, counted from the padding
        pads.append((before, max(0, end - before - length)))
        taken.append(slice(0, (count - 1) * stride + 1, stride))
        kernel.append(slice(None, None, frame.dilations[axis]))
    spans = [(size - 1) * step + 1 for size, step in zip(frame.sizes, frame.dilations, strict=True)]
    axes = tuple(range(2, x.ndim))
    reads: Any = (slice(None), slice(None), *taken, *kernel)
    views: Array = sliding_window_view(np.pad(x, pads), spans, axis=axes)[reads]
    return np.moveaxis(views, tuple(range(x.ndim, 2 * x.ndim - 2)), axes)
