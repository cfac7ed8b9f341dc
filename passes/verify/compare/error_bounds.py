"""Bounds how far rounding may move each element of an answer, by running the original perturbed.

A rewrite that adds up in another order rounds otherwise. What that may change is measured, not
guessed: the original runs again, its arithmetic perturbed in every operator, and each element may
differ by what it then moves, and no further. So a coarse dtype or a large number elsewhere allows
nothing here, and where a recurrence makes anything of its roundings, its elements prove nothing.
Whole numbers, bools and strings must agree but where a perturbed run gives them another value, and
there only within what such runs give.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from passes.types.dtypes import is_float
from passes.verify.compare.compare import Chosen, as_expected, compare
from passes.verify.compare.tolerance import Reach, Tolerance, unequal
from passes.verify.compare.trial import AUTHORITY, Side
from passes.verify.executor import Array, Feeds, Outcome, Value
from passes.verify.inputs.drawer import Case
from passes.verify.reference.roundings import Roundings

#: How often the original runs, perturbed: more often where only few elements remain to explain,
#: as one at the border of a comparison changes sides in some runs only.
_RUNS = (1, 4, 16, 64)
#: The part of the elements that counts as few, by the number of runs.
_FEW = {1: 1.0, 4: 0.25, 16: 0.05, 64: 0.0}
#: How much longer than any other run one that is perturbed may take.
_PATIENCE = 4.0
#: Among elements that prove nothing, one in so many may lie further off than any run was seen.
_OUTLIERS = 0.02
#: From so many runs on, what one of them changes tells what others may; the factor allows for that
#: it is an estimate.
_MEASURED, _FACTOR = 16, 4.0


class NotMeasured(Exception):
    """The original takes too long where its arithmetic is perturbed."""


@dataclass
class ErrorBounds:
    """Explains differences by roundings; `sides` are the originals, by executor.

    `cancels`: numbers of both signs may meet in them although no input is negative.

    `deadline` is of `time.monotonic`: where time runs out the case is cut, by OutOfTime, as it
    would show neither a mismatch nor that there is none.
    """

    sides: Mapping[str, Side]
    deadline: float
    further: float = 1.0
    cancels: bool = True
    _case: Case | None = field(default=None, init=False)
    _plain: Outcome | None = field(default=None, init=False)
    _known: dict[str, _Runs] = field(default_factory=dict, init=False)

    def start(self, case: Case, plain: Outcome | None) -> None:
        """Begin with a case; `plain` is what the reference executor answers, if it does."""
        if self._case is not case:
            self._known.clear()
        self._case = case
        self._plain = plain if AUTHORITY in self.sides else None

    def settled(
        self,
        executor: str,
        case: Case,
        expected: Outcome,
        actual: Outcome,
        near: Tolerance,
    ) -> tuple[Outcome, int]:
        """`actual`, which differs from `expected`, with what rounding explains as expected; and how
        many of these elements prove nothing: whole numbers, and floats that could be anything.

        `near`: what is equal anyway. `executor` ran the original, if the reference executor
        cannot. Raises OutOfTime and NotMeasured.
        """
        overflowed = loose = 0
        if _overflows(case, expected, cancels=self.cancels):
            actual, overflowed = as_expected(expected, actual, (), _overflowed)
            if compare(expected, actual, near).agree:
                return actual, overflowed
        runs = self._runs(executor, case)
        settled = actual
        for count in _RUNS:
            runs.extend_to(count, self.deadline)
            others = (runs.plain, *runs.perturbed)
            settled, loose = as_expected(expected, actual, others, _explained(near, self.further))
            left = compare(expected, settled, near)
            total = sum(array.size for array in _arrays(list(expected.outputs.values())))
            if left.agree or left.wrong > max(1, _FEW[count] * total):
                break
        return settled, overflowed + loose

    def _runs(self, executor: str, case: Case) -> _Runs:
        """The perturbed runs of a case: of the reference executor where it runs the original."""
        assert self._case is case
        name = executor if self._plain is None else AUTHORITY
        if name not in self._known:
            side = self.sides[name]
            side = Side(side.executor, side.model, side.base_dir, side.timeout * _PATIENCE)
            self._known[name] = _Runs(side, case, self._plain)
        return self._known[name]


@dataclass
class _Runs:
    """The answers of one original, plain and perturbed."""

    side: Side
    case: Case
    plain: Outcome | None
    perturbed: list[Outcome] = field(default_factory=list)
    _tried: int = 0

    def extend_to(self, count: int, deadline: float) -> None:
        """Run until there were `count` perturbed runs, those that fail included."""
        feeds, seed = self.case.feeds, zlib.crc32(self.case.label.encode())
        if self.plain is None and not self._tried:
            self.plain = self._run(feeds, deadline)
        while self.plain is not None and self._tried < count:
            self._tried += 1
            if self.side.perturbs:
                outcome = self._run(feeds, deadline, seed + self._tried)
            else:  # the executor can perturb nothing but what a model is fed
                moved = Roundings(seed + self._tried)
                with np.errstate(all="ignore"):
                    fed = {name: moved.moved(value) for name, value in feeds.items()}
                outcome = self._run(fed, deadline)
            if outcome is not None:
                self.perturbed.append(outcome)

    def _run(self, feeds: Feeds, deadline: float, perturbed: int | None = None) -> Outcome | None:
        ran = self.side.run(feeds, deadline, perturbed=perturbed)
        if ran.endless:
            raise NotMeasured(ran.unable)
        return ran.outcome


def _overflows(case: Case, expected: Outcome, *, cancels: bool) -> bool:
    """Return whether values that are not finite may result from numbers that are too large: where
    sums are regrouped, their infinities meet in another order. Numbers that are drawn small are not
    too large, unless they grow until the product of two of them is infinite, or inputs are not
    finite; and sums of positive numbers overflow in every order or in none."""
    fed = _floats(case.feeds)
    if not all(np.isfinite(array).all() for array in fed):
        return False
    if not cancels and not any((array < 0).any() for array in fed):
        return False
    return case.kind == "special" or any(
        bool((_is_large(array) & np.isfinite(array)).any()) for array in _floats(expected.outputs)
    )


def _is_large(array: Array) -> Array:
    """bool array: what is not finite, or may be in another sum: the product of two such is."""
    return np.asarray(~(np.abs(array) <= np.sqrt(ml_dtypes.finfo(array.dtype).max)))


def _floats(values: Mapping[str, Value]) -> list[Array]:
    return [array for array in _arrays(list(values.values())) if is_float(array.dtype)]


def _overflowed(
    expected: Array, actual: Array, others: Sequence[Array | None]
) -> tuple[Array, int]:
    """The elements in which the two differ and either is not finite or too large to compare; they
    prove nothing."""
    if not is_float(expected.dtype):
        return np.zeros(expected.shape, bool), 0
    where = _is_large(expected) & _is_large(actual) & ~(np.isnan(expected) & np.isnan(actual))
    where &= ~np.isfinite(expected) | ~np.isfinite(actual)
    where &= expected != actual
    return where, int(np.count_nonzero(where))


def _explained(near: Tolerance, further: float) -> Chosen:
    """What rounding explains, beside the plain run and the perturbed ones."""

    def explained(
        expected: Array, actual: Array, others: Sequence[Array | None]
    ) -> tuple[Array, int]:
        plain, *perturbed = others
        like = [run for run in perturbed if run is not None]
        if plain is None or not like or not actual.size or expected.dtype.kind == "c":
            return np.zeros(expected.shape, bool), 0  # how far complex numbers move is unknown
        reach = Reach(plain, like, further)
        with np.errstate(all="ignore"):
            if is_float(expected.dtype):
                wrong = unequal(expected, actual, near)
                within, loose = reach.floats(expected, actual, near)
            else:
                wrong = np.asarray(expected != actual)
                within, loose = reach.values(expected, actual)
            left = wrong & ~within & _is_finite(expected) & _is_finite(actual)
            if np.count_nonzero(left & loose) <= _OUTLIERS * np.count_nonzero(loose):
                within = within | (left & loose)
            strange = np.count_nonzero(left & ~loose)
            if strange and strange <= _unseen(reach, len(like)):
                within, loose = within | (left & ~loose), loose | left
        return wrong & within, int(np.count_nonzero(wrong & within & loose))

    return explained


def _unseen(reach: Reach, runs: int) -> float:
    """How many elements may differ that no run changed.

    One run more changes about as many as exactly one run changed, by the number of runs (Good and
    Turing). Both answers are such runs, and elements change together: in a chaotic recurrence with
    saturated states, 1 becomes -1, and stays so for some steps.
    """
    singles = int(np.count_nonzero(reach.times_loose() == 1))
    return _FACTOR * singles / runs if runs >= _MEASURED else 0.0


def _is_finite(values: Array) -> Array:
    """bool array; what is no float is not among the numbers that may lie further off."""
    return np.isfinite(values) if is_float(values.dtype) else np.zeros(values.shape, bool)


def _arrays(values: Sequence[Value]) -> list[np.ndarray[Any, Any]]:
    found: list[np.ndarray[Any, Any]] = []
    for value in values:
        if isinstance(value, list):
            found += _arrays(value)
        elif value is not None:
            found.append(np.asarray(value))
    return found
