"""Resizing one axis: where an element of the output reads, and what it makes of the elements there.

All versions of Upsample and Resize compute with the same numbers here, so that a node and what
it is converted to agree bit for bit. As in onnxruntime, positions are float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from passes.verify.executor import Array

_HALF = np.float32(0.5)


@dataclass(frozen=True)
class Axis:
    """An axis of the input, and how long it becomes. `span` is its part of `roi`, as fractions."""

    number: int
    before: int
    after: int
    scale: np.float32
    span: tuple[float, float] = (0.0, 1.0)

    @property
    def stays(self) -> bool:
        """True if nothing changes along the axis."""
        return self.after == self.before and self.scale == 1 and self.span == (0.0, 1.0)


@dataclass(frozen=True)
class Manner:
    """The way to resize. `rounding` is a `nearest_mode`, or "simple": up if an axis shrinks."""

    mode: str = "nearest"
    coordinates: str = "asymmetric"
    rounding: str = "simple"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    outside: float = 0.0

    def resize(self, x: Array, axis: Axis) -> Array:
        """`x` with one axis resized; of the type of `x` if it is nearest, else float64."""
        if axis.stays:
            return x
        if not axis.before and axis.after:
            raise ValueError(f"axis {axis.number} without elements cannot get {axis.after}")
        positions = self._positions(axis)
        if not axis.after:
            return np.take(x, np.zeros(0, np.int64), axis.number)
        if self.mode == "nearest":
            result = np.take(x, _within(self._rounded(positions, axis), axis), axis.number)
        else:
            result = self._blended(x, positions, axis)
        if self.coordinates != "tf_crop_and_resize":
            return result
        beyond = (positions < 0) | (positions > axis.before - 1)
        filler = np.asarray(self.outside, result.dtype)
        return np.where(_along(beyond, axis.number, x.ndim), filler, result)

    def _positions(self, axis: Axis) -> Array:
        """For each element of the output, the place in the input that it reads."""
        at = np.arange(axis.after, dtype=np.float32)
        last, scale = np.float32(axis.before - 1), axis.scale
        match self.coordinates:
            case "asymmetric":
                return np.asarray(at / scale)
            case "half_pixel":
                return np.asarray((at + _HALF) / scale - _HALF)
            case "tf_half_pixel_for_nn":
                return np.asarray((at + _HALF) / scale)
            case "pytorch_half_pixel":
                return np.asarray((at + _HALF) / scale - _HALF if axis.after > 1 else at)
            case "half_pixel_symmetric":
                center = np.float32(axis.before) / 2
                offset = center * (1 - np.float32(axis.after) / (scale * axis.before))
                return np.asarray(offset + (at + _HALF) / scale - _HALF)
            case "align_corners":
                length = scale * np.float32(axis.before)
                return np.asarray(at * last / (length - 1) if length != 1 else at * 0)
            case "tf_crop_and_resize":
                start, end = map(np.float32, axis.span)
                if axis.after == 1:
                    return np.asarray(at + _HALF * (start + end) * last)
                return np.asarray(start * last + at * (end - start) * last / (axis.after - 1))
        raise ValueError(f"coordinate_transformation_mode is {self.coordinates!r}")

    def _rounded(self, positions: Array, axis: Axis) -> Array:
        match self.rounding:
            case "simple":
                return np.ceil(positions) if axis.scale < 1 else np.floor(positions)
            case "floor":
                return np.floor(positions)
            case "ceil":
                return np.ceil(positions)
            case "round_prefer_ceil":
                return np.floor(positions + _HALF)
            case "round_prefer_floor":
                return np.ceil(positions - _HALF)
        raise ValueError(f"nearest_mode is {self.rounding!r}")

    def _blended(self, x: Array, positions: Array, axis: Axis) -> Array:
        """The weighted sums of the elements around each position."""
        floor = np.floor(positions)
        share = positions.astype(np.float64) - floor
        shrunk = min(float(axis.scale), 1.0) if self.antialias else 1.0
        reach = int(np.ceil((1 if self.mode == "linear" else 2) / shrunk))
        steps = np.arange(1 - reach, reach + 1)
        weights = self._weights((steps - share[:, None]) * shrunk)
        places = floor.astype(np.int64)[:, None] + steps
        if self.exclude_outside:
            weights = np.where((places < 0) | (places >= axis.before), 0.0, weights)
        if self.exclude_outside or self.antialias:
            weights = weights / weights.sum(1, keepdims=True)
        result = np.zeros((), np.float64)
        for column in range(len(steps)):
            elements = np.take(x, _within(places[:, column], axis), axis.number)
            result = result + elements * _along(weights[:, column], axis.number, x.ndim)
        return result

    def _weights(self, distances: Array) -> Array:
        distance = np.abs(distances)
        if self.mode == "linear":
            return np.asarray(np.clip(1 - distance, 0, 1))
        if self.mode != "cubic":
            raise ValueError(f"mode {self.mode!r} is none of nearest, linear and cubic")
        a = self.cubic
        inner = ((a + 2) * distance - (a + 3)) * distance * distance + 1
        outer = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
        return np.where(distance <= 1, inner, np.where(distance < 2, outer, 0.0))


def _within(places: Array, axis: Axis) -> Array:
    return np.clip(places, 0, axis.before - 1).astype(np.int64)


def _along(values: Array, axis: int, rank: int) -> Array:
    return values.reshape([-1 if position == axis else 1 for position in range(rank)])
