"""One case in one executor: run before, run after, and what that says of the rewrite."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
from onnx import ModelProto

from passes.verify.compare.compare import NOTHING, Comparison, compare
from passes.verify.compare.exactness import rounds, small_enough
from passes.verify.compare.tolerance import BITS, Tolerance
from passes.verify.executor import (
    CANNOT_LOAD,
    CRASHED,
    GUESSED,
    CannotRun,
    Executor,
    Feeds,
    InputsRefused,
    ModelFailed,
    Outcome,
    Perturbing,
    TookTooLong,
)
from passes.verify.inputs.draw import Case

#: The executor whose word counts on whether a model fails; others refuse what is allowed.
AUTHORITY = "reference"
#: Equal consecutive reasons why a side cannot run, after which it is not tried again.
_GIVE_UP = 3
#: Crashes on inputs alike, after which a side is not run on such inputs again: each costs a start.
_MOST_CRASHES = 3


class OutOfTime(Exception):
    """The budget ran out during a run."""


@dataclass(frozen=True)
class Ran:
    """One run: an outcome, or why there is none and whose fault that is. `refused`: it failed,
    as a Scan does not take such sizes or lengths. `spared`: it was not run, since it crashed on
    inputs like these. `endless`: its time-out ended it. `seconds` is how long it took."""

    outcome: Outcome | None = None
    failed: str = ""
    refused: bool = False
    unable: str = ""
    spared: bool = False
    endless: bool = False
    seconds: float = field(default=0.0, compare=False)


NOT_RUN = Ran()


@dataclass(frozen=True)
class Trial:
    """What one case says in one executor. `refined`: the rewritten model answers where the
    original fails, as it may."""

    status: Literal["compared", "crossed", "both failed", "refined", "not run", "mismatch"]
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
    _endless: bool = False
    _crashes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def perturbs(self) -> bool:
        """Whether the executor can run with other roundings."""
        return isinstance(self.executor, Perturbing)

    def run(
        self, feeds: Feeds, deadline: float, like: str = "", *, perturbed: int | None = None
    ) -> Ran:
        """Run once. Raises OutOfTime where the deadline (of `time.monotonic`) cuts the run.

        `like` says what inputs these are, where crashes on some of them are enough. `perturbed`
        is the seed of other roundings.
        """
        if self._times >= _GIVE_UP:
            return Ran(unable=self._reason, endless=self._endless)
        if len(self._crashes[like]) >= _MOST_CRASHES:
            return Ran(unable=self._crashes[like][-1], spared=True)
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        started = time.monotonic()
        try:
            seconds = min(self.timeout, left)
            if perturbed is not None and isinstance(self.executor, Perturbing):
                outcome = self.executor.perturbed(
                    self.model, feeds, perturbed, base_dir=self.base_dir, timeout=seconds
                )
            else:
                outcome = self.executor.run(
                    self.model, feeds, base_dir=self.base_dir, timeout=seconds
                )
        except ModelFailed as error:
            self._times = 0
            return Ran(failed=str(error), refused=isinstance(error, InputsRefused))
        except CannotRun as error:
            if time.monotonic() >= deadline:
                raise OutOfTime from error
            self._remember(str(error), like)
            self._endless = isinstance(error, TookTooLong)
            return Ran(unable=str(error), endless=self._endless)
        self._times = 0
        return replace(self._checked(outcome), seconds=time.monotonic() - started)

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
        if reason.startswith(GUESSED):  # other inputs may leave nothing to guess
            return
        self._times = self._times + 1 if reason == self._reason else 1
        self._reason = reason
        if reason.startswith(CANNOT_LOAD):
            self._times = _GIVE_UP


#: What two runs of the reference executor may differ by without a look at the arithmetic.
NEAR = Tolerance("near")
#: The same for another executor, whose kernels approximate functions to some absolute error.
NEAR_ELSEWHERE = Tolerance("near", units=16.0, floor=1.0)
#: The same for two executors.
NEAR_ACROSS = Tolerance("near", units=256.0, floor=1.0)


@dataclass(frozen=True)
class Judge:
    """Decides which tolerance a case calls for, and what a pair of runs means.

    `exact`: floats must be bit-equal. Otherwise they must be equal numbers on exact draws
    where the arithmetic is exact, and near elsewhere. `lenient`: inputs on which the original
    fails are taken not to occur.
    """

    exact: bool
    rounding: bool
    lenient: bool = False

    @staticmethod
    def of(before: ModelProto, after: ModelProto, *, exact: bool) -> Judge:
        """The judge for a pair of models."""
        return Judge(exact, not exact and (rounds(before) or rounds(after)))

    def may_round(self, case: Case, expected: Outcome) -> bool:
        """Whether the outcomes of one executor need only be near."""
        rounds = not case.exact or self.rounding or not small_enough(expected)
        return rounds and not self.exact

    def tolerance(self, executor: str, case: Case, expected: Outcome) -> Tolerance:
        """What the outcomes of one executor may differ by."""
        if self.exact:
            return BITS
        if not self.may_round(case, expected):
            return Tolerance("values")
        return NEAR if executor == AUTHORITY else NEAR_ELSEWHERE

    def judge(self, executor: str, case: Case, before: Ran, after: Ran) -> Trial:
        """What two runs in one executor say; failures in the reference executor are the model's."""
        if before.unable or after.unable:
            side = "the original" if before.unable else "the rewritten model"
            return Trial("not run", f"{side}: {before.unable or after.unable}")
        if before.outcome is not None and after.outcome is not None:
            tolerance = self.tolerance(executor, case, before.outcome)
            comparison = compare(before.outcome, after.outcome, tolerance)
            if comparison.agree:
                return Trial("compared", "", comparison)
            return Trial("mismatch", comparison.differences[0].sentence, comparison)
        if before.outcome is not None:
            return Trial("mismatch", f"the rewritten model fails: {after.failed}")
        if after.outcome is None:
            return Trial("both failed", before.failed)
        if executor == AUTHORITY and not self.lenient:
            sentence = f"it answers where the original fails: {before.failed}"
            guarded = case.kind == "invalid" or before.refused
            return Trial("mismatch" if guarded else "refined", sentence)
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
    original = before.run(case.feeds, deadline, like)
    if original.unable and not after_alone:
        return Trial("not run", f"the original: {original.unable}", before=original)
    rewritten = after.run(case.feeds, deadline, "" if original.outcome is not None else like)
    trial = judge.judge(before.executor.name, case, original, rewritten)
    trial = replace(trial, before=original, after=rewritten)
    if (
        trial.status == "mismatch"
        and original.outcome is not None
        and rewritten.outcome is not None
    ):
        again = before.run(case.feeds, deadline)
        if again.outcome is None or not compare(original.outcome, again.outcome).agree:
            why = "the original gives different answers on the same inputs"
            return replace(trial, status="not run", sentence=why, comparison=NOTHING)
    return trial
