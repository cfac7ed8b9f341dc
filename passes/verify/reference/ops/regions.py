"""RoiAlign, NonMaxSuppression, MaxRoiPool, GridSample."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.ops.layout import see_shape
from passes.verify.reference.registry import KernelCall, implements


@implements("RoiAlign")
def roi_align(call: KernelCall, x: Array, rois: Array, batch: Array) -> Array:
    """RoiAlign-10 to -22: `x` [N, C, H, W], `rois` [R, 4] (x1, y1, x2, y2), `batch` [R].

    Version 10 has the coordinates of `output_half_pixel`. The same numbers as onnx's kernel gives,
    which takes seconds for the boxes of a detector. Raises IndexError for a batch index that is
    out of range, ValueError for a region of NaN.
    """
    see_shape((len(batch), 4), rois)
    if batch.size and (batch.min() < 0 or batch.max() >= len(x)):
        raise IndexError(f"batch indices must lie in 0..{len(x) - 1}")
    height, width = call.get("output_height"), call.get("output_width")
    images = np.ascontiguousarray(np.moveaxis(x, 1, -1))  # channels last: they are read together
    result = np.zeros((len(batch), height, width, x.shape[1]), x.dtype)
    scaled = rois * rois.dtype.type(call.get("spatial_scale"))
    half = call.get("coordinate_transformation_mode") == "half_pixel"
    for number, (left, top, right, bottom) in enumerate(scaled - 0.5 if half else scaled):
        samples = [
            _samples(call, first, last, count, length, malformed=not half)
            for first, last, count, length in (
                (top, bottom, height, x.shape[2]),
                (left, right, width, x.shape[3]),
            )
        ]
        result[number] = _pooled(call, images[int(batch[number])], *samples)
    return np.ascontiguousarray(np.moveaxis(result, -1, 1))


#: Samples of a bin along an axis, where their number follows from the size of the region: no
#: image that can be run has more.
_MOST_SAMPLES = 10_000
#: Along an axis: for each bin and sample of it, both places that are read, and their weights.
_Samples = tuple[Array, Array, Array, Array]


def _samples(
    call: KernelCall, first: Any, last: Any, count: int, length: int, *, malformed: bool
) -> _Samples:
    """Return the positions of the samples of `count` bins of a region on an axis of `length`:
    [count, samples].

    The weights are 0 outside of the axis. `malformed` regions become 1 wide. Raises
    NotImplementedError for more samples than an image has: the executor is at fault, not the model.
    """
    extent = max(last - first, first.dtype.type(1)) if malformed else last - first
    size = extent / count
    samples = call.get("sampling_ratio") or int(np.ceil(size))
    if samples > _MOST_SAMPLES:
        raise NotImplementedError(f"{samples} samples of a bin")
    bins = np.arange(count, dtype=first.dtype)[:, None] * size
    inner = (np.arange(max(samples, 0), dtype=first.dtype) + 0.5) * size / samples
    coordinates = first + bins + inner
    if np.isnan(coordinates).any():
        raise ValueError(f"a region from {first} to {last}")
    inside = (coordinates >= -1) & (coordinates <= length)
    coordinates = np.clip(np.where(inside, coordinates, 0), 0, length - 1)
    low, share = np.floor(coordinates).astype(np.int64), coordinates - np.floor(coordinates)
    return low, np.minimum(low + 1, length - 1), inside * (1 - share), inside * share


def _pooled(call: KernelCall, image: Array, rows: _Samples, columns: _Samples) -> Array:
    """The bins of one region: [bins, bins, C], each the mean or the largest of its samples."""
    largest = call.get("mode") == "max"
    counts = rows[0].shape[1], columns[0].shape[1]
    result = np.zeros((len(rows[0]), len(columns[0]), image.shape[2]), image.dtype)
    for number, sample in enumerate(np.ndindex(*counts)):
        corners = [
            np.multiply.outer(rows[2 + y][:, sample[0]], columns[2 + x][:, sample[1]])[..., None]
            * image[rows[y][:, sample[0], None], columns[x][:, sample[1]]]
            for y, x in np.ndindex(2, 2)
        ]
        if largest:
            value = np.maximum.reduce(corners)
            result = np.maximum(result, value) if number else value
        else:
            result = result + sum(corners[1:], corners[0])
    return result if largest else result / image.dtype.type(max(counts[0] * counts[1], 1))


@implements("NonMaxSuppression")
def non_max_suppression(
    call: KernelCall,
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    least: Array | None = None,
) -> Array:
    """NonMaxSuppression-10 and -11: `boxes` [N, B, 4], `scores` [N, C, B]; gives [K, 3].

    The number of boxes defaults to 0, which selects none. Of equal scores the first box wins.
    """
    count = 0 if most is None else int(most.reshape(()).item())
    limit = 0.0 if overlap is None else overlap.reshape(()).item()
    selected: list[tuple[int, int, int]] = []
    for image, group in np.ndindex(*scores.shape[:2]):
        score = scores[image, group]
        order = np.argsort(-score, kind="stable")
        if least is not None:
            order = order[score[order] > least.reshape(())]
        low, high = _corners(boxes[image], centered=bool(call.get("center_point_box")))
        for _ in range(count):
            if not order.size:
                break
            best, order = order[0], order[1:]
            selected.append((image, group, int(best)))
            order = order[~(_overlaps(low, high, best, order) > limit)]
    return np.array(selected, np.int64).reshape(-1, 3)


def _corners(boxes: Array, *, centered: bool) -> tuple[Array, Array]:
    """Lower and upper corners, [B, 2] each, of boxes given by two corners, or center and size."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if centered:
        return first - second / 2, first + second / 2
    return np.minimum(first, second), np.maximum(first, second)


def _overlaps(low: Array, high: Array, box: Any, others: Array) -> Array:
    """Return the intersection of a box with each of the others, as a share of their union."""
    common = np.minimum(high[box], high[others]) - np.maximum(low[box], low[others])
    shared = np.where((common > 0).all(-1), common.prod(-1), 0)
    areas = (high - low).prod(-1)
    together = areas[box] + areas[others] - shared
    counts = (shared > 0) & (areas[box] > 0) & (areas[others] > 0) & (together > 0)
    return np.where(counts, shared / np.where(counts, together, 1), 0)


@implements("MaxRoiPool")
def max_roi_pool(call: KernelCall, x: Array, rois: Array) -> Array:
    """MaxRoiPool-1 and -22: `x` [N, C, H, W], `rois` [R, 5] (image, x1, y1, x2, y2).

    Gives [R, C, *pooled_shape]; a bin that holds nothing is 0.
    """
    high, wide = call.get("pooled_shape")
    result = np.zeros((len(rois), x.shape[1], high, wide), x.dtype)
    for number, (image, *corners) in enumerate(rois):
        left, top, right, bottom = np.round(np.array(corners) * call.get("spatial_scale", 1.0))
        rows = _bins(top, bottom, high, x.shape[2])
        columns = _bins(left, right, wide, x.shape[3])
        for row, column in np.ndindex(high, wide):
            part = x[int(image), :, slice(*rows[row]), slice(*columns[column])]
            if part.size:
                result[number, :, row, column] = part.max((1, 2))
    return result


def _bins(first: float, last: float, count: int, length: int) -> list[tuple[int, int]]:
    size = max(last - first + 1, 1) / count
    edges = [(np.floor(k * size) + first, np.ceil((k + 1) * size) + first) for k in range(count)]
    return [(int(np.clip(a, 0, length)), int(np.clip(b, 0, length))) for a, b in edges]


@implements("GridSample", since=16)
def grid_sample(call: KernelCall, x: Array, grid: Array) -> Array:
    """GridSample-16 to -22: `x` [N, C, ...], `grid` [N, ..., rank of the image].

    Version 16 names "bilinear" and "bicubic" what version 20 names "linear" and "cubic". Raises
    ValueError for places that are not finite, where they are no whole pixels or are reflected.
    """
    if grid.ndim != x.ndim or (len(grid), grid.shape[-1]) != (len(x), x.ndim - 2):
        raise ValueError(f"a grid of shape {grid.shape} for {x.shape}")
    shape = (*x.shape[:2], *grid.shape[1:-1])
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    rank = x.ndim - 2
    places = np.asarray(grid, np.result_type(grid.dtype, np.float32))
    axes = [_taps(call, places[..., rank - 1 - axis], x.shape[2 + axis]) for axis in range(rank)]
    whole = call.get("mode") == "nearest"
    result = np.zeros(shape, x.dtype if whole else np.result_type(x.dtype, np.float32))
    images = (np.arange(len(x)).reshape(-1, *[1] * rank),)
    for taps in itertools.product(*axes):
        inside = np.logical_and.reduce([tap.inside for tap in taps])[:, None]
        reads: Any = (*images, slice(None), *(tap.index for tap in taps))
        values = np.where(inside, np.moveaxis(x[reads], -1, 1), np.zeros((), x.dtype))
        weight = np.multiply.reduce([tap.weight for tap in taps])[:, None]
        result = values if whole else result + weight * values
    return np.asarray(result, x.dtype)


@dataclass(frozen=True)
class _Tap:
    """The elements read along an axis for each point, whether they are inside, and their
    weights."""

    index: Array
    inside: Array
    weight: Array


def _taps(call: KernelCall, places: Array, length: int) -> list[_Tap]:
    """The pixels that places between -1 and 1 are blended of, along an axis of `length`."""
    mode, padding, align = (call.get(name) for name in ("mode", "padding_mode", "align_corners"))
    low, high = (0.0, length - 1.0) if align else (-0.5, length - 0.5)
    coordinates = (places + 1) / 2 * (length - 1) if align else ((places + 1) * length - 1) / 2
    if mode == "nearest":
        coordinates = np.rint(coordinates)
    if padding == "border":
        coordinates = np.where(
            (coordinates < low) | (coordinates > high),
            np.clip(coordinates, 0, length - 1),
            coordinates,
        )
    if not np.isfinite(coordinates).all() and (mode != "nearest" or padding == "reflection"):
        raise ValueError("a place is not finite")
    if padding == "reflection":
        coordinates = _reflected(coordinates, low, high)
    first = np.floor(coordinates)
    weights = _weights(mode, coordinates - first)
    offset = -1 if len(weights) == 4 else 0
    found = []
    for number, weight in enumerate(weights):
        pixel = first + (number + offset)
        inside = (pixel >= 0) & (pixel < length) if padding == "zeros" else np.array(True)
        if padding == "reflection":
            pixel = np.trunc(_reflected(pixel, low, high))
        index = np.clip(np.where(np.isnan(pixel), 0, pixel), 0, length - 1).astype(np.int64)
        found.append(_Tap(index, np.broadcast_to(inside, index.shape), weight))
    return found


def _weights(mode: str, share: Array) -> list[Array]:
    """Return the weights of the pixels around a point that is `share` past one of them."""
    if mode == "nearest":
        return [np.ones_like(share)]
    if mode in ("linear", "bilinear"):
        return [1 - share, share]
    a = -0.75  # of Keys' cubic convolution
    near = [((a + 2) * d - (a + 3)) * d * d + 1 for d in (share, 1 - share)]
    far = [((a * d - 5 * a) * d + 8 * a) * d - 4 * a for d in (share + 1, 2 - share)]
    return [far[0], *near, far[1]]


def _reflected(coordinates: Array, low: float, high: float) -> Array:
    """Places, those outside reflected at both ends until they are inside."""
    outside = (coordinates < low) | (coordinates > high)
    if low == high and outside.any():
        raise ValueError("nothing to reflect at in an axis of one pixel")
    beyond = np.where(coordinates < low, low - coordinates, coordinates - high)
    times, rest = np.divmod(np.where(outside, beyond, 0), max(high - low, 1))
    back = (times % 2 == 0) == (coordinates < low)
    return np.where(outside, np.where(back, low + rest, high - rest), coordinates)
