"""One case in one executor: run before, run after, and what that says of the rewrite."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from onnx import ModelProto

from passes.verify.compare import NOTHING, Comparison, compare
from passes.verify.draw import Case
from passes.verify.exactness import coarsest_epsilon, rounded_outputs, rounds, small_enough
from passes.verify.executor import (
    CANNOT_LOAD,
    CRASHED,
    CannotRun,
    Executor,
    Feeds,
    ModelFailed,
    Outcome,
)
from passes.verify.tolerance import BITS, Tolerance

#: The executor whose word counts on whether a model fails; others refuse what is allowed.
AUTHORITY = "reference"
#: Equal consecutive reasons why a side cannot run, after which it is not tried again.
_GIVE_UP = 3
#: Crashes on inputs alike, after which a side is not run on such inputs again: each costs a start.
_MOST_CRASHES = 3
#: Executors round differently, op by op.
_CROSS_SLACK = 16.0


class OutOfTime(Exception):
    """The budget ran out during a run."""


@dataclass(frozen=True)
class Ran:
    """One run: an outcome, or why there is none and whose fault that is. `spared`: it was not
    run, since it crashed on inputs like these."""

    outcome: Outcome | None = None
    failed: str = ""
    unable: str = ""
    spared: bool = False


NOT_RUN = Ran()


@dataclass(frozen=True)
class Trial:
    """What one case says in one executor."""

    status: Literal["compared", "crossed", "both failed", "not run", "mismatch"]
    sentence: str = ""
    comparison: Comparison = NOTHING
    before: Ran = NOT_RUN
    after: Ran = NOT_RUN


@dataclass
class Side:
    """One model on one executor. It stops trying where the executor never can, or keeps crashing.

    `check` is an output, a bool, by which the model says that it must not be believed: the run
    then counts as failed.
    """

    executor: Executor
    model: ModelProto
    base_dir: Path | None
    timeout: float
    check: str = ""
    _reason: str = ""
    _times: int = 0
    _crashes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def run(self, feeds: Feeds, deadline: float, like: str = "") -> Ran:
        """Run once. Raises OutOfTime where the deadline (of `time.monotonic`) cuts the run.

        `like` says what inputs these are, where crashes on some of them are enough.
        """
        if self._times >= _GIVE_UP:
            return Ran(unable=self._reason)
        if len(self._crashes[like]) >= _MOST_CRASHES:
            return Ran(unable=self._crashes[like][-1], spared=True)
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        try:
            outcome = self.executor.run(
                self.model, feeds, base_dir=self.base_dir, timeout=min(self.timeout, left)
            )
        except ModelFailed as error:
            self._times = 0
            return Ran(failed=str(error))
        except CannotRun as error:
            if time.monotonic() >= deadline:
                raise OutOfTime from error
            self._remember(str(error), like)
            return Ran(unable=str(error))
        self._times = 0
        return self._checked(outcome)

    def _checked(self, outcome: Outcome) -> Ran:
        """The outcome without the check, where that holds."""
        if not self.check:
            return Ran(outcome)
        outputs = dict(outcome.outputs)
        if not np.all(np.asarray(outputs.pop(self.check))):
            return Ran(failed=f"its output {self.check!r} is false")
        return Ran(replace(outcome, outputs=outputs))

    def _remember(self, reason: str, like: str) -> None:
        if like and reason.startswith(CRASHED):
            self._crashes[like].append(reason)
            return
        self._times = self._times + 1 if reason == self._reason else 1
        self._reason = reason
        if reason.startswith(CANNOT_LOAD):
            self._times = _GIVE_UP


@dataclass(frozen=True)
class Judge:
    """Decides which tolerance a case calls for, and what a pair of runs means.

    `exact`: floats must be bit-equal. Otherwise they must be equal numbers on exact draws
    where the arithmetic is exact, and near elsewhere. `lenient`: inputs on which the original
    fails are taken not to occur.
    """

    exact: bool
    reduction: int
    rounding: bool
    rounded: frozenset[str] = field(default_factory=frozenset)
    coarsest: float = 0.0
    lenient: bool = False

    @staticmethod
    def of(before: ModelProto, after: ModelProto, *, exact: bool, reduction: int) -> Judge:
        """The judge for a pair of models."""
        coarsest = coarsest_epsilon(before)
        if exact:
            return Judge(True, reduction, False, coarsest=coarsest)
        rounding = rounds(before) or rounds(after)
        return Judge(False, reduction, rounding, rounded_outputs(before), coarsest)

    @property
    def near(self) -> Tolerance:
        """How far floats may lie apart where they may be rounded otherwise."""
        return Tolerance("near", self.reduction)

    def may_round(self, case: Case, expected: Outcome) -> bool:
        """Whether the outcomes of one executor need only be near."""
        rounds = not case.exact or self.rounding or not small_enough(expected)
        return rounds and not self.exact

    def compare(self, case: Case, expected: Outcome, actual: Outcome) -> Comparison:
        """Compare the outcomes of one executor."""
        if self.exact:
            return compare(expected, actual, BITS)
        if not self.may_round(case, expected):
            return compare(expected, actual, Tolerance("values"))
        rounded = frozenset() if case.exact else self.rounded
        return compare(expected, actual, replace(self.near, rounded=rounded))

    def but_for_rounding(self, expected: Outcome, actual: Outcome) -> Comparison:
        """Compare the outcomes of an executor that may round the same sum in two ways, as
        onnxruntime does where it fuses or packs: for cases that the authority found equal."""
        return compare(expected, actual, replace(self.near, coarsest=self.coarsest))

    def cross(
        self, case: Case, expected: Outcome, actual: Outcome, sides: tuple[str, str]
    ) -> Comparison:
        """Compare the outcomes of two executors, called `sides`."""
        rounded = frozenset() if case.exact else self.rounded
        near = Tolerance("near", self.reduction, _CROSS_SLACK, self.coarsest, rounded)
        return compare(expected, actual, near, sides=sides)

    def judge(self, case: Case, before: Ran, after: Ran, *, authority: bool) -> Trial:
        """What two runs in one executor say. `authority`: its failures are the model's."""
        if before.unable or after.unable:
            side = "the original" if before.unable else "the rewritten model"
            return Trial("not run", f"{side}: {before.unable or after.unable}")
        if before.outcome is not None and after.outcome is not None:
            comparison = self.compare(case, before.outcome, after.outcome)
            if comparison.agree:
                return Trial("compared", "", comparison)
            return Trial("mismatch", comparison.differences[0].sentence, comparison)
        if before.outcome is not None:
            return Trial("mismatch", f"the rewritten model fails: {after.failed}")
        if after.outcome is None:
            return Trial("both failed", before.failed)
        if authority and not self.lenient:
            return Trial("mismatch", f"it answers where the original fails: {before.failed}")
        return Trial("not run", f"the original: {before.failed}")


def try_case(
    case: Case,
    before: Side,
    after: Side,
    judge: Judge,
    deadline: float,
    *,
    after_alone: bool = False,
    like: str = "",
) -> Trial:
    """Run a case on both sides. Raises OutOfTime.

    Where the executor cannot run the original, it runs the rewritten model only if that is of
    use (`after_alone`). A side that crashes on inputs `like` these is spared, the rewritten model
    only where the original does not run. A mismatch counts only where the original agrees with
    itself when it runs again.
    """
    authority = before.executor.name == AUTHORITY
    one = before.run(case.feeds, deadline, like)
    if one.unable and not after_alone:
        return Trial("not run", f"the original: {one.unable}", before=one)
    other = after.run(case.feeds, deadline, like if one.unable else "")
    trial = judge.judge(case, one, other, authority=authority)
    trial = replace(trial, before=one, after=other)
    if trial.status == "mismatch" and one.outcome is not None and other.outcome is not None:
        again = before.run(case.feeds, deadline)
        if again.outcome is None or not compare(one.outcome, again.outcome).agree:
            why = "the original gives different answers on the same inputs"
            return replace(trial, status="not run", sentence=why, comparison=NOTHING)
    return trial
