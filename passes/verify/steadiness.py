"""What an original's answer is worth where its own roundings decide it.

A rewrite that adds up in another order rounds otherwise, and some models make anything of that: a
recurrence whose weights are large doubles an error in every step, and after a hundred steps two
correct programs agree in nothing. So where the sides differ, the original runs again, on inputs
nudged by what their floats are rounded by. As far as a line of an output comes out differently
then, it says nothing of the rewrite: a line, along the last axis, since what decides one of its
elements decides the others, too. All else, and the lines of the first steps with it, must agree as
ever.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np

from passes.verify.draw import Case
from passes.verify.draw_arrays import is_float
from passes.verify.executor import Array, Feeds, Outcome, Value
from passes.verify.tolerance import Tolerance, unequal
from passes.verify.trial import OutOfTime, Side

#: How often the original runs on nudged inputs: where a sign is up to rounding, half of the runs
#: still agree in it.
_RUNS = 8
#: A rewrite rounds in every step, a nudge only in front of the first one.
_FACTOR = 32.0


@dataclass(frozen=True)
class Settled:
    """An outcome in which what rounding decides is as expected; `count` elements were not so."""

    outcome: Outcome
    count: int


@dataclass
class Steadiness:
    """Runs originals on nudged inputs, in the executors of `sides`, once a case.

    What is `near` to what is expected need not be settled. `coarsest` is the epsilon of the
    coarsest type that values are rounded to on the way. `deadline` is of `time.monotonic`.
    """

    sides: Mapping[str, Side]
    deadline: float
    near: Tolerance
    coarsest: float = 0.0
    _last: tuple[Case, dict[str, list[Outcome]]] | None = field(default=None, init=False)

    def settled(self, executor: str, case: Case, expected: Outcome, actual: Outcome) -> Settled:
        """What a rewritten model gave, but what rounding decides as the original gave it.

        `expected` is what the original gave in the executor.
        """
        nudged = self._nudged(executor, case)
        outputs: dict[str, Value] = {}
        count = 0
        for name, value in actual.outputs.items():
            others = [one.outputs.get(name) for one in nudged]
            outputs[name], excused = _settled(expected.outputs.get(name), value, others, self.near)
            count += excused
        return Settled(replace(actual, outputs=outputs), count)

    def _nudged(self, executor: str, case: Case) -> list[Outcome]:
        """What the original gives on nudged inputs; nothing where it then fails."""
        if self._last is None or self._last[0] is not case:
            self._last = (case, {})
        known = self._last[1]
        if executor not in known:
            rng = np.random.default_rng(zlib.crc32(case.label.encode()))
            feeds = [nudged(case.feeds, rng, self.coarsest) for _ in range(_RUNS)]
            known[executor] = self._outcomes(self.sides[executor], feeds)
        return known[executor]

    def _outcomes(self, side: Side, feeds: Sequence[Feeds]) -> list[Outcome]:
        """What a side gives; nothing where time runs out, so that a mismatch is never lost."""
        try:
            ran = [side.run(one, self.deadline) for one in feeds]
        except OutOfTime:
            return []
        return [one.outcome for one in ran if one.outcome is not None]


def nudged(feeds: Feeds, rng: np.random.Generator, coarsest: float = 0.0) -> Feeds:
    """Inputs with every float made larger or smaller by about its rounding.

    `coarsest`: at least by this part of it. Zeros, infinities and NaN stay as they are.
    """
    return {name: _nudged_value(value, rng, coarsest) for name, value in feeds.items()}


def _nudged_value(value: Value, rng: np.random.Generator, coarsest: float) -> Value:
    if isinstance(value, list):
        return [_nudged_value(one, rng, coarsest) for one in value]
    if value is None or not is_float(np.asarray(value).dtype):
        return value
    array = np.asarray(value)
    part = max(float(ml_dtypes.finfo(array.dtype).eps), coarsest)
    with np.errstate(all="ignore"):
        factors = 1.0 + part * rng.choice((-1.0, 1.0), array.shape)
        moved = np.asarray(array.astype(np.float64) * factors).astype(array.dtype)
        return np.where(np.isfinite(moved), moved, array)


def _settled(
    expected: Value, actual: Value, nudged: list[Value], near: Tolerance
) -> tuple[Value, int]:
    """A value with what rounding decides as expected, and how many elements that are."""
    if isinstance(expected, list) and isinstance(actual, list):
        lists = [one for one in nudged if isinstance(one, list) and len(one) == len(expected)]
        if len(expected) != len(actual):
            return actual, 0
        items = [
            _settled(one, actual[at], [other[at] for other in lists], near)
            for at, one in enumerate(expected)
        ]
        return [item for item, _ in items], sum(count for _, count in items)
    if isinstance(expected, list) or isinstance(actual, list) or expected is None or actual is None:
        return actual, 0
    if expected.dtype.kind == "c":
        return actual, 0  # how far they move is not measured
    like = [one for one in nudged if isinstance(one, np.ndarray) and one.shape == expected.shape]
    if (
        actual.shape != expected.shape
        or actual.dtype != expected.dtype
        or not (like and actual.size)
    ):
        return actual, 0
    excused = _differs(expected, actual, near) & _is_unsteady(expected, actual, like)
    return np.where(excused, expected, actual), int(np.count_nonzero(excused))


def _is_unsteady(expected: Array, actual: Array, nudged: list[Array]) -> Array:
    """bool array: where a line moves so far with the inputs that rounding may decide it."""
    if not is_float(expected.dtype):
        return _of_line(np.stack([np.asarray(one != expected) for one in nudged])) > 0
    wide = expected.astype(np.float64)
    with np.errstate(all="ignore"):
        moves = np.abs(np.stack([one.astype(np.float64) for one in nudged]) - wide)
        errors = np.abs(actual.astype(np.float64) - wide)
    jumps = np.stack([np.isfinite(one) != np.isfinite(expected) for one in nudged])
    furthest = _of_line(np.where(np.isfinite(moves), moves, 0.0))
    return np.asarray((errors <= _FACTOR * furthest) | (_of_line(jumps) > 0))


def _of_line(runs: Array) -> Array:
    """The largest of all runs (the first axis) and of the line, the last axis, which is kept."""
    largest = runs.max(axis=0)
    return np.asarray(largest.max(axis=-1, keepdims=True) if largest.ndim else largest)


def _differs(expected: Array, actual: Array, near: Tolerance) -> Array:
    """bool array: where two arrays of one shape and dtype are not even near."""
    if not is_float(expected.dtype):
        return np.asarray(expected != actual)
    with np.errstate(all="ignore"):
        return unequal(expected, actual, near)
