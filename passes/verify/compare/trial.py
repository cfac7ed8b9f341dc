"""One case in one executor: the run of the original, and that of the rewritten model."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path

import numpy as np
from onnx import ModelProto

from passes.reports.report import Status
from passes.verify.compare.compare import NOTHING, Comparison
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

#: The executor whose word counts on whether a model fails; others refuse what is allowed.
AUTHORITY = "reference"
#: Equal consecutive reasons why a side cannot run, after which it is not tried again.
_GIVE_UP = 3
#: Crashes on inputs alike, after which a side is not run on such inputs again: each costs a start.
_MOST_CRASHES = 3


class OutOfTime(Exception):
    """The budget ran out during a run."""


class End(Enum):
    """The end of a run."""

    VALUE = "value"
    FAILURE = "failure"
    NO_KERNEL = "no kernel"
    TIME = "time"


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

    @property
    def end(self) -> End:
        """The end of the run; a side without a run counts as one that the executor is unable to
        run."""
        if self.outcome is not None:
            return End.VALUE
        if self.failed:
            return End.FAILURE
        return End.TIME if self.endless else End.NO_KERNEL


NOT_RUN = Ran()


@dataclass(frozen=True)
class Trial:
    """The result of one case in one executor, with one sentence unless both sides agree."""

    status: Status
    sentence: str = ""
    comparison: Comparison = NOTHING
    before: Ran = NOT_RUN
    after: Ran = NOT_RUN


@dataclass
class Side:
    """One model on one executor. It stops trying once the executor is unable to run it, or keeps
    crashing.

    `check` is an output, a bool, by which the model reports that its answer is invalid: the run
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
        """True if the executor can perturb its roundings."""
        return isinstance(self.executor, Perturbing)

    def run(
        self, feeds: Feeds, deadline: float, like: str = "", *, perturbed: int | None = None
    ) -> Ran:
        """Run once. Raises OutOfTime if the deadline (of `time.monotonic`) cuts the run.

        `like` is the kind of inputs: after crashes on some of a kind, the rest is skipped.
        `perturbed` is the seed of other roundings.
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
