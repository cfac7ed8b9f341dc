"""How far two floats may lie apart: bit-equal, equal but for the sign of zero, or near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from passes.verify.executor import Array


@dataclass(frozen=True)
class Tolerance:
    """What counts as equal.

    `bits`: the same bits, any NaN for any NaN; -0.0 is not 0.0. `values`: equal numbers, so
    that 0.0 may stand for -0.0. `near`: each element to `units` epsilons of its dtype, relative
    to itself, or to `floor` where it is smaller. NaN and infinities must agree in every mode.
    """

    mode: Literal["bits", "values", "near"] = "bits"
    units: float = 4.0
    floor: float = 0.0

    def allowed(self, expected: Array) -> Array:
        """float64: the largest absolute error allowed of each element, for `near`."""
        size = np.maximum(np.abs(expected.astype(np.float64)), self.floor)
        return np.asarray(float(ml_dtypes.finfo(expected.dtype).eps) * self.units * size)


BITS = Tolerance()


def unequal(expected: Array, actual: Array, tolerance: Tolerance) -> Array:
    """bool array: where two real float arrays of one dtype and shape differ by more."""
    both_nan = np.isnan(expected) & np.isnan(actual)
    if tolerance.mode == "bits":
        return np.asarray(~both_nan & (bits(expected) != bits(actual)))
    different = np.asarray(~both_nan & (expected != actual))
    if tolerance.mode == "values":
        return different
    finite = np.isfinite(expected) & np.isfinite(actual)
    far = absolute_errors(expected, actual) > tolerance.allowed(expected)
    return np.asarray(different & (~finite | far))


def bits(array: Array) -> Array:
    """The elements as unsigned integers, bit for bit; the shape stays."""
    contiguous = np.ascontiguousarray(array).reshape(array.shape)
    return contiguous.view(f"u{array.dtype.itemsize}")


def absolute_errors(expected: Array, actual: Array) -> Array:
    """float64: |expected - actual|, 0 where either is not finite."""
    finite = np.isfinite(expected) & np.isfinite(actual)
    with np.errstate(all="ignore"):
        errors = np.abs(expected.astype(np.float64) - actual.astype(np.float64))
    return np.where(finite, errors, 0.0)


def ulp_errors(expected: Array, actual: Array) -> Array:
    """float64: how many representable numbers lie between, 0 where either is not finite."""
    finite = np.isfinite(expected) & np.isfinite(actual)
    return np.where(finite, np.abs(_rank(expected) - _rank(actual)), 0.0)


def _rank(array: Array) -> Array:
    """The place of each number among those of its dtype: -0.0 and 0.0 share place 0."""
    raw = bits(array)
    sign = raw.dtype.type(1 << (8 * array.dtype.itemsize - 1))
    magnitude = (raw & ~sign).astype(np.float64)
    ranks: np.ndarray[Any, Any] = np.where(raw & sign, -magnitude, magnitude)
    return ranks
