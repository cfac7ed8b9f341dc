"""The values of one run, to be found by what they hold: exactly, nearly, or stacked."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from passes.bisection.trace import REPEATS, Instance, Trace, digest, instance
from passes.ir.operators import op_of
from passes.types.dtypes import is_float
from passes.verify.compare.tolerance import NEAR, Tolerance, unequal
from passes.verify.executor import Array, Value

#: Epsilons of its largest element by which a value may be off that was computed otherwise.
_DRIFT = 64.0
#: Values of about the right mean that are looked at, at most.
_MOST_LOOKED_AT = 32


@dataclass(frozen=True)
class Sieve:
    """Lets values through that are the same but for roundings; what it does not is verified.
    `exact`: there are no roundings."""

    exact: bool

    def passes(self, expected: Value, actual: Value, *, drift: bool = False) -> bool:
        """Return whether two values are the same but for roundings: of one operator, or of a few,
        which is `drift`."""
        if self.exact:
            return digest(expected) == digest(actual)
        return _near(expected, actual, drift)


def _near(expected: Value, actual: Value, drift: bool) -> bool:
    if not isinstance(expected, np.ndarray) or not isinstance(actual, np.ndarray):
        return digest(expected) == digest(actual)
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return False
    if not is_float(expected.dtype):
        return bool(np.array_equal(expected, actual))
    with np.errstate(all="ignore"):
        return not unequal(expected, actual, _tolerance(expected, drift)).any()


def _tolerance(expected: Array, drift: bool) -> Tolerance:
    if not drift or not expected.size:
        return NEAR
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    return replace(NEAR, units=_DRIFT, floor=float(finite.max(initial=0.0)))


class Values:
    """The values of a run by digest, and by dtype, shape and mean."""

    def __init__(self, trace: Trace, sieve: Sieve) -> None:
        self.sieve = sieve
        self.stacks = list(_stacks(trace))
        self.by_digest: dict[bytes, Instance] = {}
        for one in (*trace.instances, *(stack for stack, _ in self.stacks)):
            self.by_digest.setdefault(one.digest, one)
        self._by_kind: dict[Any, list[tuple[float, int, Instance]]] = defaultdict(list)
        for number, one in enumerate(self.by_digest.values()):
            if _is_telling(one):
                self._by_kind[one.kind].append((_mean(one.stored), number, one))
        for entries in self._by_kind.values():
            entries.sort()

    def nearly(self, one: Instance) -> Instance | None:
        """A value that is the same but for roundings; None where others may be so by chance."""
        if not _is_telling(one):
            return None
        entries, mean = self._by_kind.get(one.kind, []), _mean(one.stored)
        first = bisect_left(entries, (mean - _slack(one.stored), -1))
        for other_mean, _, other in entries[first : first + _MOST_LOOKED_AT]:
            if other_mean > mean + _slack(one.stored):
                return None
            if self.sieve.passes(other.value, one.value, drift=True):
                return other
        return None


def _is_telling(one: Instance) -> bool:
    """Return whether others hardly hold about the same by chance."""
    value = one.stored
    return isinstance(value, np.ndarray) and is_float(value.dtype) and not one.is_trivial


def _mean(value: Any) -> float:
    wide = value.astype(np.float64)
    return float(np.where(np.isfinite(wide), wide, 0.0).mean())


def _slack(value: Any) -> float:
    wide = np.abs(value.astype(np.float64))
    largest = float(np.where(np.isfinite(wide), wide, 0.0).max(initial=0.0))
    return _DRIFT * float(ml_dtypes.finfo(value.dtype).eps) * largest


def _stacks(trace: Trace) -> Iterator[tuple[Instance, list[Instance]]]:
    """Yield each value of a loop's body in all iterations at once, and its parts: along the first
    axis or the second, forwards."""
    found: dict[tuple[int, str], list[Instance]] = {}
    seen: set[int] = set()
    for run in trace.runs:
        at = run.at
        if id(at) in seen or at.holder is None or op_of(at.holder.node) not in REPEATS:
            continue
        seen.add(id(at))
        for name, one in at.values.items():
            found.setdefault((id(at.holder), name), []).append(one)
    for (_, name), parts in found.items():
        yield from _stacked(name, parts)


def _stacked(name: str, parts: list[Instance]) -> Iterator[tuple[Instance, list[Instance]]]:
    arrays = [one.stored for one in parts if isinstance(one.stored, np.ndarray)]
    kinds = {(array.dtype, array.shape) for array in arrays}
    if len(arrays) != len(parts) or len(kinds) != 1:
        return
    for axis in range(min(2, arrays[0].ndim + 1)):
        value = np.stack(arrays, axis)
        yield instance(name, value, -1, parts[0].trace), parts
