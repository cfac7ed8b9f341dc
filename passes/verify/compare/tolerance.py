"""Decides how far an element may differ: a function of the expected and the actual value, and a
bound.

| expected | actual | accepted |
|---|---|---|
| NaN | NaN | always; the payload does not count |
| infinity | the same infinity | always |
| 0.0 | -0.0 | unless bits are compared |
| finite | finite | the same bits, the same number, or an error within the bound, by mode |
| any | any other | only within the reach of roundings: see `Reach` |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np

from passes.verify.executor import Array

#: How much further than the furthest perturbed run an element may lie.
_FACTOR = 4.0
#: An element that moves by this part of itself proves nothing.
LOOSE = 0.05


@dataclass(frozen=True)
class Tolerance:
    """The rule by which two elements count as equal.

    `bits`: the same bits, any NaN for any NaN; -0.0 is not 0.0. `values`: equal numbers, so
    that 0.0 equals -0.0. `near`: each element to `units` epsilons of its dtype, relative
    to itself, or to `floor` where it is smaller, or, if that is more, to `absolute` and `relative`
    of itself. NaN and infinities must agree in every mode.
    """

    mode: Literal["bits", "values", "near"] = "bits"
    units: float = 4.0
    floor: float = 0.0
    absolute: float = 0.0
    relative: float = 0.0

    def allowed(self, expected: Array) -> Array:
        """float64: the largest absolute error allowed of each element, for `near`; 0 for what is
        not finite."""
        itself = np.abs(expected.astype(np.float64))
        info = ml_dtypes.finfo(expected.dtype)
        # below the smallest normal number, an epsilon stays as large as there
        floor = max(self.floor, float(info.smallest_normal))
        allowed = np.maximum(
            float(info.eps) * self.units * np.maximum(itself, floor),
            self.absolute + self.relative * itself,
        )
        return np.where(np.isfinite(itself), allowed, 0.0)


BITS, VALUES = Tolerance(), Tolerance("values")
#: What two runs of the reference executor may differ by without a look at the arithmetic.
NEAR = Tolerance("near")
#: The same for another executor, whose kernels approximate functions to some absolute error.
NEAR_ELSEWHERE = Tolerance("near", units=16.0, floor=1.0)
#: The same for two executors.
NEAR_ACROSS = Tolerance("near", units=256.0, floor=1.0)


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


@dataclass(frozen=True)
class Reach:
    """The values that an element takes where the original runs with other roundings.

    `plain` is what it gives without, `runs` what it gives with them; each an array of floats,
    whole numbers, bools or strings, of one shape and dtype. `further`: by how many times further
    roundings may carry than these.
    """

    plain: Array
    runs: Sequence[Array]
    further: float = 1.0

    def moved(self) -> Array:
        """bool array: the elements that any run changes."""
        return np.asarray(np.logical_or.reduce([run != self.plain for run in self.runs]))

    def times_loose(self) -> Array:
        """int array: how many runs move an element so far that it proves nothing."""
        wide = self.plain.astype(np.float64)
        moves = [np.abs(run.astype(np.float64) - wide) > LOOSE * np.abs(wide) for run in self.runs]
        return np.asarray(np.sum(moves, axis=0))

    def values(self, expected: Array, actual: Array) -> tuple[Array, Array]:
        """bool arrays for whole numbers, bools and strings: the elements within reach, and those
        of them that prove nothing, which are all.

        An element that a run changes may be any value that a run gave. A number may also lie
        between those, or be off by as much as a float may that moves so little.
        """
        moved = self.moved()
        if expected.dtype.kind not in "iu":
            seen = np.logical_or.reduce([np.asarray(run == actual) for run in self.runs])
            return moved & seen, moved
        lowest = np.minimum.reduce([expected, self.plain, *self.runs])
        highest = np.maximum.reduce([expected, self.plain, *self.runs])
        between = (lowest <= actual) & (actual <= highest)
        wide = expected.astype(np.float64)
        span = highest.astype(np.float64) - lowest.astype(np.float64)
        near = np.abs(actual.astype(np.float64) - wide) <= _FACTOR * span
        tight = span <= LOOSE * np.abs(wide)
        return np.asarray(moved & (between | (tight & near))), moved

    def floats(self, expected: Array, actual: Array, near: Tolerance) -> tuple[Array, Array]:
        """bool arrays: the floats within reach, and those that could be anything, so that they
        prove nothing.

        A finite element may be off by a multiple of how far the runs move it. What is finite in
        some runs only may be what they give: NaN or an infinity that one of them gave, or a
        number about where they lie. An infinity that no run changes stays that infinity.
        """
        wide = self.plain.astype(np.float64)
        runs = np.stack([run.astype(np.float64) for run in self.runs])
        moves = np.abs(runs - wide)
        furthest = np.where(np.isfinite(moves), moves, 0.0).max(axis=0)
        jumps = (np.isfinite(runs) != np.isfinite(wide)).any(axis=0)
        errors = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        finite = np.isfinite(expected) & np.isfinite(actual)
        within = finite & (errors <= _FACTOR * self.further * furthest + near.allowed(expected))
        within |= jumps & _is_among(actual.astype(np.float64), np.stack([wide, *runs]))
        loose = (furthest > LOOSE * np.abs(wide)) | jumps
        return np.asarray(within), np.asarray(loose)


def _is_among(actual: Array, seen: Array) -> Array:
    """bool array: whether float64 values are about what was `seen`, which has one axis more."""
    finite = np.isfinite(seen)
    lowest = np.where(finite, seen, np.inf).min(axis=0)
    highest = np.where(finite, seen, -np.inf).max(axis=0)
    size = np.maximum(np.abs(lowest), np.abs(highest))
    slack = _FACTOR * np.maximum(highest - lowest, LOOSE * size)
    above = (actual >= lowest - slack) | (seen == -np.inf).any(axis=0)
    below = (actual <= highest + slack) | (seen == np.inf).any(axis=0)
    number = np.isfinite(actual) & finite.any(axis=0) & above & below
    same = np.isinf(actual) & (seen == actual).any(axis=0)
    return np.asarray(number | same | (np.isnan(actual) & np.isnan(seen).any(axis=0)))


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
