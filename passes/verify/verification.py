"""Executing a model before and after a rewrite, on drawn and on given inputs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onnx import ModelProto

from passes.verify import signature
from passes.verify.agenda import Item, agenda
from passes.verify.draw import CannotDraw, Case, Drawer, Hint
from passes.verify.draw_plans import ATTEMPTS
from passes.verify.executor import Executor, Feeds
from passes.verify.ledger import Ledger
from passes.verify.trial import AUTHORITY, Judge, OutOfTime, Side, Trial, try_case
from passes.verify.verdicts import Failure, Tally, Verdict, Verification

__all__ = ["Failure", "Tally", "Verdict", "Verification", "verify"]

#: Attempts at a case once another one found inputs on which the original runs.
_FEW = 3
#: Cases in a row on which the original never runs, before drawing is given up.
_HOPELESS = 4


def verify(
    before: ModelProto,
    after: ModelProto,
    *,
    executors: Sequence[Executor],
    seed: int = 0,
    hints: Mapping[str, Hint] | None = None,
    exact: bool = True,
    reduction: int = 1,
    budget: float = 60.0,
    case_timeout: float = 10.0,
    base_dir: Path | None = None,
    base_dir_after: Path | None = None,
    given: Sequence[Feeds] = (),
    max_cases: int | None = None,
) -> Verification:
    """Run both models on the same inputs in every executor, and compare.

    `executors`: the reference executor first, where it is there. `hints` say more of the
    inputs than their types. `exact`: the rewrite only moves data, so floats are bit-equal;
    otherwise they are equal on exact draws and near elsewhere, for sums of `reduction` terms.
    `budget` and `case_timeout` are in seconds. `base_dir` holds the external data of both
    models, or of `before` alone where `base_dir_after` is given. `given` inputs come first.

    The result depends on the models, the arguments and the executors alone; only where
    `budget_exhausted`, or a time-out is among the reasons, it depends on time too. Never
    raises for what a model does.
    """
    if sentence := signature.difference(before, after):
        return Verification("mismatch", sentence)
    deadline = time.monotonic() + budget
    sides = [
        (
            Side(executor, before, base_dir, case_timeout),
            Side(executor, after, base_dir_after or base_dir, case_timeout),
        )
        for executor in executors
    ]
    judge = Judge.of(before, after, exact=exact, reduction=reduction)
    drawer = Drawer(tuple(signature.inputs(before.graph)), seed, hints or {}, extremes=exact)
    trials = _Trials(sides, judge, deadline, reduction)
    return trials.all(agenda(before, drawer, given)[:max_cases])


class _Trials:
    """The cases one after the other, in every executor, until one differs or time is out."""

    def __init__(
        self, sides: Sequence[tuple[Side, Side]], judge: Judge, deadline: float, reduction: int
    ) -> None:
        self._sides = sides
        self._judge = judge
        self._deadline = deadline
        self._ledger = Ledger([before.executor.name for before, _ in sides], reduction)
        self._lucky: int | None = None  # the attempt that last found inputs the original takes
        self._luckless = 0

    def all(self, items: Sequence[Item]) -> Verification:
        for index, item in enumerate(items):
            try:
                self._item(item)
            except OutOfTime:
                return self._ledger.close([left.label for left in items[index:]])
            except CannotDraw as error:
                self._ledger.reason(str(error))
                self._luckless = _HOPELESS
            if self._ledger.failure is not None:
                break
        return self._ledger.close([])

    def _item(self, item: Item) -> None:
        """Try a case; draw it again, in other ways, while the original fails on it."""
        if not item.again:
            self._case(item.make(self._lucky or 0))
            return
        if self._luckless >= _HOPELESS:
            return
        first = self._lucky or 0
        count = len(ATTEMPTS) if self._lucky is None else _FEW
        for attempt in range(first, first + count):
            if self._case(item.make(attempt)):
                self._lucky, self._luckless = attempt % len(ATTEMPTS), 0
                return
        if self._lucky is None:
            self._luckless += 1

    def _case(self, case: Case) -> bool:
        """Try a case in every executor; whether any of them ran the original."""
        trials: dict[str, Trial] = {}
        for before, after in self._sides:
            trial = try_case(case, before, after, self._judge, self._deadline)
            name = before.executor.name
            trials[name] = trial
            self._book(name, case, trial, trials.get(AUTHORITY, Trial("not run")))
            if trial.status == "mismatch":
                break
        return any(trial.before.outcome or trial.status == "mismatch" for trial in trials.values())

    def _book(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        """Book a trial; where only the rewritten model ran, against the reference executor."""
        original = reference.before
        alone = trial.before.outcome is None and trial.after.outcome is not None
        if name != AUTHORITY and original.outcome is not None and trial.before.outcome is not None:
            self._check_executors(name, case, trial, reference)
        if name == AUTHORITY or not alone or not (original.outcome or original.failed):
            self._ledger.add(name, case, trial)
        elif original.outcome is not None and trial.after.outcome is not None:
            sides = ("before in the reference executor", "after")
            comparison = self._judge.cross(case, original.outcome, trial.after.outcome, sides)
            if comparison.agree:
                crossed = replace(trial, status="crossed", sentence="", comparison=comparison)
                self._ledger.add(name, case, crossed)
            else:
                sentence = comparison.differences[0].sentence
                self._ledger.doubt(name, case, sentence, original.outcome, trial)
        elif case.kind == "invalid":
            sentence = f"it answers where the original fails: {original.failed}"
            self._ledger.add(name, case, replace(trial, status="mismatch", sentence=sentence))
        else:
            self._ledger.add(name, case, trial)

    def _check_executors(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        """Note where two executors disagree on the original: one of them is wrong."""
        if reference.before.outcome is None or trial.before.outcome is None:
            return
        one, other = reference.before.outcome, trial.before.outcome
        comparison = self._judge.cross(case, one, other, (f"in {AUTHORITY}", f"in {name}"))
        if not comparison.agree:
            self._ledger.disagreement(name, case, comparison.differences[0].sentence)
