"""How far two floats may lie apart: bit-equal, equal but for the sign of zero, or near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from passes.verify.executor import Array

#: Roundings of one element, by the width of its dtype in bytes; narrow ones are few and coarse.
_ROUNDINGS = {8: 16.0, 4: 16.0, 2: 4.0, 1: 1.0}


@dataclass(frozen=True)
class Tolerance:
    """What counts as equal.

    `bits`: the same bits, any NaN for any NaN; -0.0 is not 0.0. `values`: equal numbers, so
    that 0.0 may stand for -0.0. `near`: to a few epsilons of the dtype times the square root of
    `reduction` (the longest sum) times `slack`, relative to the larger of 1 and the largest
    finite number of the tensor, since sums that cancel leave errors of the size of their
    terms. `coarsest` is the epsilon of a coarser dtype that a value may have gone through. NaN
    and infinities must agree in every mode. `rounded` names the integer outputs that come from
    rounded floats: they are not compared.
    """

    mode: Literal["bits", "values", "near"] = "bits"
    reduction: int = 1
    slack: float = 1.0
    coarsest: float = 0.0
    rounded: frozenset[str] = frozenset()

    def allowed(self, expected: Array) -> float:
        """The largest absolute error allowed in a tensor, for `near`."""
        info = ml_dtypes.finfo(expected.dtype)
        finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
        scale = max(1.0, float(finite.max(initial=0.0)))
        roundings = _ROUNDINGS[expected.dtype.itemsize] * float(np.sqrt(max(1, self.reduction)))
        return max(float(info.eps), self.coarsest) * roundings * self.slack * scale


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
