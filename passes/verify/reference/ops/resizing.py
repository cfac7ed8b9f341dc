"""Upsample and Resize at every version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.ops.interpolation import Axis, Manner
from passes.verify.reference.ops.layout import normalized
from passes.verify.reference.registry import KernelCall, implements


@implements("Upsample", since=7, until=8)
def upsample_by_attribute(call: KernelCall, x: Array) -> Array:
    """Upsample-7: `scales` is an attribute."""
    return _old(call, x, np.array(call.get("scales"), np.float32))


@implements("Upsample", since=9)
@implements("Resize", since=10, until=10)
def upsample(call: KernelCall, x: Array, scales: Array) -> Array:
    """Upsample-9, Resize-10: `scales` float32 [rank], output dims floor(dim * scale).

    The coordinate is divided by the scale. `nearest` rounds it down, or up where Resize-10
    shrinks the axis (the document leaves it open; onnxruntime does this); `linear` interpolates
    axis by axis, staying inside of the input.
    """
    return _old(call, x, scales)


def _old(call: KernelCall, x: Array, scales: Array) -> Array:
    mode = call.get("mode")
    if mode not in ("nearest", "linear"):
        raise ValueError(f"mode {mode!r} is neither nearest nor linear")
    return _resized(x, _by_scales(x, scales, range(x.ndim)), Manner(mode))


@implements("Resize", since=11)
def resize(
    call: KernelCall,
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
) -> Array:
    """Resize-11 to -19: by `scales` float32 or `sizes` int64, for each of `axes` (default: all)."""
    named = call.get("axes")
    numbers = range(x.ndim) if named is None else normalized(list(named), x.ndim)
    given = sizes is not None and sizes.size > 0
    if given == (scales is not None and scales.size > 0) and len(numbers):
        raise ValueError("just one of scales and sizes must be given")
    if given and sizes is not None:
        policy = call.get("keep_aspect_ratio_policy", "stretch")
        axes = _by_sizes(x, [int(size) for size in sizes], numbers, policy)
    else:
        axes = _by_scales(x, np.zeros(0, np.float32) if scales is None else scales, numbers)
    manner = Manner(
        call.get("mode"),
        call.get("coordinate_transformation_mode"),
        call.get("nearest_mode"),
        float(call.get("cubic_coeff_a")),
        bool(call.get("exclude_outside")),
        bool(call.get("antialias", 0)),
        float(call.get("extrapolation_value")),
    )
    if manner.antialias and manner.mode == "nearest":
        raise ValueError("antialias requires the mode linear or cubic")
    if manner.coordinates == "tf_crop_and_resize":
        axes = _spanning(axes, roi)
    return _resized(x, axes, manner)


def _resized(x: Array, axes: Sequence[Axis], manner: Manner) -> Array:
    result = x
    for axis in axes:
        result = manner.resize(result, axis)
    return _cast(result, x.dtype)


def _cast(result: Array, dtype: np.dtype[Any]) -> Array:
    if result.dtype == dtype or dtype.kind not in "iu":
        return np.asarray(result, dtype)
    limits = np.iinfo(dtype)  # cut off, as in onnxruntime
    return np.asarray(np.clip(result, limits.min, limits.max), dtype)


def _by_scales(x: Array, scales: Array, numbers: Sequence[int]) -> list[Axis]:
    if len(scales) != len(numbers):
        raise ValueError(f"{len(scales)} scales for {len(numbers)} dimensions")
    if not (scales > 0).all():
        raise ValueError(f"scales {scales.tolist()} must be positive")
    found = []
    for number, scale in zip(numbers, scales.astype(np.float32), strict=True):
        before = x.shape[number]
        found.append(Axis(number, before, int(np.float32(before) * scale), scale))
    return found


def _by_sizes(x: Array, sizes: Sequence[int], numbers: Sequence[int], policy: str) -> list[Axis]:
    if len(sizes) != len(numbers):
        raise ValueError(f"{len(sizes)} sizes for {len(numbers)} dimensions")
    before = [x.shape[number] for number in numbers]
    if any(size < 0 for size in sizes) or not all(before):
        raise ValueError(f"{before} elements cannot become {list(sizes)}")
    scales = [
        np.float32(after) / np.float32(size) for after, size in zip(sizes, before, strict=True)
    ]
    if policy != "stretch":
        scales = [{"not_larger": min, "not_smaller": max}[policy](scales)] * len(scales)
        sizes = [
            int(np.floor(scale * size + np.float32(0.5)))
            for scale, size in zip(scales, before, strict=True)
        ]
    columns = zip(numbers, before, sizes, scales, strict=True)
    return [Axis(number, size, after, scale) for number, size, after, scale in columns]


def _spanning(axes: Sequence[Axis], roi: Array | None) -> list[Axis]:
    """The axes with their parts of `roi`, which lists all starts, then all ends."""
    if roi is None or roi.shape != (2 * len(axes),):
        raise ValueError("tf_crop_and_resize needs a roi with a start and an end for each axis")
    starts, ends = roi[: len(axes)], roi[len(axes) :]
    return [
        Axis(axis.number, axis.before, axis.after, axis.scale, (float(start), float(end)))
        for axis, start, end in zip(axes, starts, ends, strict=True)
    ]
