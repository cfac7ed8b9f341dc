"""Upsample, Resize-10, and one coordinate of Resize-11."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


@implements("Upsample", since=7, until=8)
def upsample_by_attribute(call: Call, x: Array) -> Array:
    """Upsample-7: `scales` is an attribute."""
    return _resized(x, np.array(call.get("scales"), np.float32), call.get("mode"))


@implements("Upsample", since=9)
@implements("Resize", since=10, until=10)
def upsample(call: Call, x: Array, scales: Array) -> Array:
    """Upsample-9, Resize-10: `scales` float32 [rank], output dims floor(dim * scale).

    The coordinate is divided by the scale. `nearest` rounds it down, or up where Resize-10
    shrinks the axis (the document does not say; onnxruntime does this); `linear` interpolates
    axis by axis, staying inside of the input.
    """
    return _resized(x, scales, call.get("mode"))


def _resized(x: Array, scales: Array, mode: str) -> Array:
    if len(scales) != x.ndim:
        raise ValueError(f"{len(scales)} scales for {x.ndim} dimensions")
    if mode not in ("nearest", "linear"):
        raise ValueError(f"mode {mode!r} is neither nearest nor linear")
    result = x
    for axis, scale in enumerate(scales.astype(np.float32)):
        if scale != 1:
            one = _nearest if mode == "nearest" else _linear
            result = one(result, axis, scale)
    return np.asarray(result, x.dtype)


def _coordinates(x: Array, axis: int, scale: np.float32) -> Array:
    length = int(np.float32(x.shape[axis]) * scale)
    return np.arange(length, dtype=np.float32) / scale


def _nearest(x: Array, axis: int, scale: np.float32) -> Array:
    exact = _coordinates(x, axis, scale)
    rounded = (np.ceil(exact) if scale < 1 else np.floor(exact)).astype(np.int64)
    return np.take(x, np.clip(rounded, 0, x.shape[axis] - 1), axis)


def _linear(x: Array, axis: int, scale: np.float32) -> Array:
    exact = np.clip(_coordinates(x, axis, scale), 0, x.shape[axis] - 1)
    low = np.floor(exact).astype(np.int64)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    shape = [1] * x.ndim
    shape[axis] = -1
    weight = (exact - low).astype(np.float32).reshape(shape)
    return np.asarray(np.take(x, low, axis) * (1 - weight) + np.take(x, high, axis) * weight)


@implements("Resize", since=11)
def resize(
    call: Call,
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
) -> Array:
    """Resize-11 to -19: onnx's kernel, but for `pytorch_half_pixel` on an output of length 1.

    There the document puts the coordinate at 0 (onnx's kernel: at -0.5), so the axis becomes
    its first element, and is not resized any more.
    """
    if call.get("coordinate_transformation_mode") == "pytorch_half_pixel":
        x, scales, sizes = _first_of_single(call, x, scales, sizes)
    result: Array = call.onnx(x, roi, scales, sizes)[0]
    return result


def _first_of_single(
    call: Call, x: Array, scales: Array | None, sizes: Array | None
) -> tuple[Array, Array | None, Array | None]:
    axes = call.get("axes") or list(range(x.ndim))
    scales = None if scales is None or not scales.size else scales.copy()
    for place, axis in enumerate(axes):
        if scales is not None:
            single = int(np.float32(x.shape[axis]) * scales[place]) == 1
        else:
            single = sizes is not None and int(sizes[place]) == 1
        if single:
            x = np.take(x, [0], axis)
            if scales is not None:
                scales[place] = 1
    return x, scales, sizes
