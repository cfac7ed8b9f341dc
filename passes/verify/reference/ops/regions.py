"""RoiAlign-10, MaxRoiPool, NonMaxSuppression."""

from __future__ import annotations

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import Call, implements


@implements("RoiAlign", until=15)
def roi_align(call: Call, x: Array, rois: Array, batch: Array) -> Array:
    """RoiAlign-10: as RoiAlign-16 with the coordinates of `output_half_pixel`."""
    mode = "output_half_pixel"
    result: Array = call.onnx(x, rois, batch, version=16, coordinate_transformation_mode=mode)[0]
    return result


@implements("NonMaxSuppression")
def non_max_suppression(
    call: Call,
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    overlap: Array | None = None,
    least: Array | None = None,
) -> Array:
    """NonMaxSuppression-10 and -11: the number of boxes defaults to 0, which selects none."""
    if most is None or int(most.reshape(()).item()) == 0:
        return np.zeros((0, 3), np.int64)
    overlap = np.zeros(1, np.float32) if overlap is None else overlap
    result: Array = call.onnx(boxes, scores, most, overlap, least)[0]
    return result


@implements("MaxRoiPool")
def max_roi_pool(call: Call, x: Array, rois: Array) -> Array:
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


#: What version 16 calls the modes of version 20.
_OLD_MODES = {"bilinear": "linear", "bicubic": "cubic"}


@implements("GridSample", since=16)
def grid_sample(call: Call, x: Array, grid: Array) -> Array:
    """GridSample-16 to -22: `x` [N, C, ...], `grid` [N, ..., rank of the image].

    Version 16 says "bilinear" and "bicubic" where version 20 says "linear" and "cubic".
    """
    shape = (*x.shape[:2], *grid.shape[1:-1])
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    mode = call.get("mode")
    result: Array = call.onnx(x, grid, version=20, mode=_OLD_MODES.get(mode, mode))[0]
    return result
