"""Conv and ConvTranspose."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from passes.verify.executor import Array
from passes.verify.reference.ops.layout import see_shape
from passes.verify.reference.ops.windows import Windows, windows
from passes.verify.reference.registry import KernelCall, implements


@implements("Conv")
def conv(call: KernelCall, x: Array, w: Array, b: Array | None = None) -> Array:
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
    see_shape(w.shape[:1], b)
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


@implements("ConvTranspose")
def conv_transpose(call: KernelCall, x: Array, w: Array, b: Array | None = None) -> Array:
    """ConvTranspose-1 to -22: `x` [N, C, ...], `w` [C, M / group, ...], `b` [M].

    Raises ValueError where channels, groups and bias do not fit.
    """
    rank, group = x.ndim - 2, call.get("group", 1)
    see_shape((w.shape[1] * group,), b)
    strides = call.get("strides") or [1] * rank
    dilations = call.get("dilations") or [1] * rank
    extra = call.get("output_padding") or [0] * rank
    spans = [(size - 1) * step + 1 for size, step in zip(w.shape[2:], dilations, strict=True)]
    full = [
        strides[axis] * (x.shape[axis + 2] - 1) + spans[axis] + extra[axis] for axis in range(rank)
    ]
    start, lengths = _crop(call, x.shape[2:], strides, full)
    # An output_shape may ask for more than there is: zeros behind.
    room = [max(have, a + n) for have, a, n in zip(full, start, lengths, strict=True)]
    whole = _spread(x, w, (group, strides, dilations), room)
    inside: Any = (..., *(slice(a, a + n) for a, n in zip(start, lengths, strict=True)))
    cropped: Array = whole[inside]
    if b is not None:
        cropped = cropped + b.reshape(-1, *[1] * rank)
    return np.asarray(cropped, x.dtype)


def _spread(x: Array, w: Array, how: tuple[int, list[int], list[int]], full: list[int]) -> Array:
    """Every input element times the kernel, added up in an output without padding."""
    group, strides, dilations = how
    batch, channels, spatial = x.shape[0], x.shape[1], x.shape[2:]
    grouped = x.reshape(batch, group, channels // group, math.prod(spatial))
    kernels = w.reshape(group, channels // group, w.shape[1], *w.shape[2:])
    whole = np.zeros((batch, group * w.shape[1], *full), x.dtype)
    for offset in itertools.product(*map(range, w.shape[2:])):
        tap: Any = (..., *offset)
        part = np.einsum("ngcs,gcm->ngms", grouped, kernels[tap])
        reached: Any = (
            ...,
            *(
                slice(o * d, o * d + (length - 1) * s + 1, s)
                for o, d, s, length in zip(offset, dilations, strides, spatial, strict=True)
            ),
        )
        whole[reached] += part.reshape(batch, whole.shape[1], *spatial)
    return whole


def _crop(
    call: KernelCall, spatial: tuple[int, ...], strides: list[int], full: list[int]
) -> tuple[list[int], list[int]]:
    """The start of the output in the unpadded one, and its lengths."""
    rank, auto = len(spatial), call.get("auto_pad", "NOTSET")
    pads = call.get("pads") or [0] * (2 * rank)
    wanted = call.get("output_shape")
    if wanted is None and auto in ("NOTSET", "VALID"):
        pads = [0] * (2 * rank) if auto == "VALID" else pads
        lengths = [full[axis] - pads[axis] - pads[axis + rank] for axis in range(rank)]
        return pads[:rank], lengths
    lengths = list(wanted or [n * s for n, s in zip(spatial, strides, strict=True)])[-rank:]
    totals = [max(0, have - want) for have, want in zip(full, lengths, strict=True)]
    upper = auto == "SAME_UPPER"
    return [total // 2 if upper else total - total // 2 for total in totals], lengths
