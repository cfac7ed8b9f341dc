"""Executing a model before and after a rewrite, on drawn and on given inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onnx import ModelProto

from passes.verify import signature
from passes.verify.agenda import Item, agenda
from passes.verify.draw import CannotDraw, Case, Drawer, Hint
from passes.verify.draw_plans import ATTEMPTS
from passes.verify.executor import Executor, Feeds
from passes.verify.ledger import Ledger
from passes.verify.promise import KEPT_FROM_ANSWERING, Promise, Trier
from passes.verify.trial import AUTHORITY, Judge, OutOfTime, Ran, Side, Trial
from passes.verify.verdicts import Failure, Tally, Verdict, Verification

__all__ = ["Failure", "Tally", "Verdict", "Verification", "verify"]

#: Attempts at a case once another one found inputs on which the original runs.
_FEW = 3
#: Cases in a row on which the original never runs, before drawing is given up.
_HOPELESS = 4
_ANSWERED = {"answered", "mismatch"}


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
    accept: Callable[[Case], bool] | None = None,
    sought: Sequence[Case] = (),
    promise: Promise | None = None,
    lenient: bool = False,
) -> Verification:
    """Run both models on the same inputs in every executor, and compare.

    `executors`: the reference executor first, where it is there. `hints` say more of the
    inputs than their types. `exact`: the rewrite only moves data, so floats are bit-equal;
    otherwise they are equal on exact draws and near elsewhere, for sums of `reduction` terms.
    `budget` and `case_timeout` are in seconds. `base_dir` holds the external data of both
    models, or of `before` alone where `base_dir_after` is given. `given` inputs come first.
    `accept` tells the cases that count, where the rewrite may take something for granted.
    `sought` are cases that were looked for, which come next. `promise`: what a user promised.
    `lenient`: inputs on which the original fails do not count.

    The result depends on the models, the arguments and the executors alone; only where
    `budget_exhausted`, or a time-out is among the reasons, it depends on time too. Never
    raises for what a model does.
    """
    check = promise.check if promise else ""
    if sentence := signature.difference(before, after, check):
        return Verification("mismatch", sentence)
    deadline = time.monotonic() + budget
    sides = [
        (
            Side(executor, before, base_dir, case_timeout),
            Side(executor, after, base_dir_after or base_dir, case_timeout, check),
        )
        for executor in executors
    ]
    judge = Judge.of(before, after, exact=exact, reduction=reduction)
    judge = replace(judge, lenient=lenient)
    drawer = Drawer(tuple(signature.inputs(before.graph)), seed, hints or {}, extremes=exact)
    trier = Trier(promise, executors, base_dir, case_timeout, judge)
    trials = _Trials(sides, judge, trier, deadline, reduction, accept)
    return trials.all(agenda(before, drawer, given, sought)[:max_cases])


class _Trials:
    """The cases one after the other, in every executor, until one differs or time is out."""

    def __init__(
        self,
        sides: Sequence[tuple[Side, Side]],
        judge: Judge,
        trier: Trier,
        deadline: float,
        reduction: int,
        accept: Callable[[Case], bool] | None,
    ) -> None:
        self._sides = sides
        self._accept = accept
        self._judge = judge
        self._trier = trier
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
            statuses = self._case(item.make(attempt))
            empty_too = self._lucky is not None
            if statuses & _ANSWERED or (empty_too and "empty" in statuses):
                self._lucky, self._luckless = attempt % len(ATTEMPTS), 0
                return
            if self._lucky is not None and "both failed" not in statuses:
                return  # other inputs do not help where an executor cannot run the model
        if self._lucky is None:
            self._luckless += 1

    def _case(self, case: Case) -> set[str]:
        """Try a case in every executor: what became of it."""
        statuses: set[str] = set()
        if self._accept is not None and not self._accept(case):
            return statuses
        reference = Trial("not run")
        for before, after in self._sides:
            original = reference.before
            useful = bool(original.outcome or original.failed)
            trial = self._trier.try_case(case, before, after, self._deadline, after_alone=useful)
            if before.executor.name == AUTHORITY:
                reference = trial
            self._book(before.executor.name, case, trial, reference)
            statuses.add(_what_became(trial))
            if self._ledger.failure is not None:
                break
        return statuses

    def _book(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        """Book a trial, in the light of what the reference executor said of the case."""
        if trial.sentence == KEPT_FROM_ANSWERING:
            self._ledger.note(f"{name} {KEPT_FROM_ANSWERING}", trial.after.failed)
        if name != AUTHORITY:
            self._check_executors(name, case, trial, reference)
            trial = self._without_rounding(name, trial, reference)
            trial = self._where_the_original_fails(name, trial, reference)
            trial = self._without_its_own_fault(name, case, trial, reference)
            trial = self._without_special(name, case, trial, reference)
            self._note_failing_alone(name, trial, reference)
            if trial.before.outcome is None and trial.after.outcome is not None:
                self._book_alone(name, case, trial, reference.before)
                return
        if trial.before.outcome is not None and trial.after.unable:
            self._ledger.note(f"{name} runs the original alone", trial.after.unable)
            if trial.after.unable.startswith(_CANNOT_LOAD) and not _lacks_kernel(trial):
                sentence = f"the rewritten model is not valid there: {trial.after.unable}"
                trial = replace(trial, status="mismatch", sentence=sentence)
        if case.kind == "given" and trial.before.failed:
            self._ledger.note(f"the original fails on the {case.label}", trial.before.failed)
        self._ledger.add(name, case, trial)

    def _book_alone(self, name: str, case: Case, trial: Trial, original: Ran) -> None:
        """Book a case where only the rewritten model ran, against the reference's original."""
        if original.outcome is not None and trial.after.outcome is not None:
            sides = (f"before in the {AUTHORITY} executor", "after")
            comparison = self._judge.cross(case, original.outcome, trial.after.outcome, sides)
            if comparison.agree:
                trial = replace(trial, status="crossed", sentence="", comparison=comparison)
            else:
                sentence = comparison.differences[0].sentence
                self._ledger.doubt(name, case, sentence, original.outcome, trial)
                return
        elif original.failed and case.kind == "invalid":
            sentence = f"it answers where the original fails: {original.failed}"
            trial = replace(trial, status="mismatch", sentence=sentence)
        self._ledger.add(name, case, trial)

    def _check_executors(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        """Note where two executors disagree on the original: one of them is wrong."""
        one, other = reference.before.outcome, trial.before.outcome
        if one is None or other is None:
            return
        comparison = self._judge.cross(case, one, other, (f"in {AUTHORITY}", f"in {name}"))
        if not comparison.agree:
            self._ledger.disagreement(name, case, comparison.differences[0].sentence)

    def _without_rounding(self, name: str, trial: Trial, reference: Trial) -> Trial:
        """A mismatch of bits is none where the reference executor found the bits equal and
        this one only rounds differently."""
        one, other = trial.before.outcome, trial.after.outcome
        agreed = self._judge.exact and reference.status == "compared"
        if trial.status != "mismatch" or not agreed or one is None or other is None:
            return trial
        comparison = self._judge.but_for_rounding(one, other)
        if not comparison.agree:
            return trial
        self._ledger.note(f"{name} rounds differently before and after", trial.sentence)
        return replace(trial, status="compared", sentence="", comparison=comparison)

    def _where_the_original_fails(self, name: str, trial: Trial, reference: Trial) -> Trial:
        """A mismatch is none where both sides fail in the reference executor: another one may
        leave out a node that nothing reads, in one of the two forms of a model."""
        if trial.status != "mismatch" or reference.status != "both failed":
            return trial
        self._ledger.note(f"{name} answers where the original fails", reference.sentence)
        return replace(trial, status="not run", sentence=reference.sentence)

    def _without_its_own_fault(
        self, name: str, case: Case, trial: Trial, reference: Trial
    ) -> Trial:
        """A mismatch is none where this executor alone is wrong, and only on the original:
        onnxruntime answers uninitialised memory for some bodies and for a time of 0."""
        right, after = reference.before.outcome, trial.after.outcome
        wrong = trial.before.outcome
        settled = trial.status == "mismatch" and reference.status == "compared"
        if not settled or right is None or wrong is None or after is None:
            return trial
        sides = (f"in {AUTHORITY}", f"in {name}")
        if self._judge.cross(case, right, wrong, sides).agree:
            return trial
        comparison = self._judge.cross(case, right, after, sides)
        if not comparison.agree:
            return trial
        self._ledger.note(f"{name} is wrong on the original, right after", trial.sentence)
        return replace(trial, status="crossed", sentence="", comparison=comparison)

    def _without_special(self, name: str, case: Case, trial: Trial, reference: Trial) -> Trial:
        """On NaN, infinities and extremes the reference executor's word counts: the kernels of
        another one may treat them differently in the two forms of a model."""
        if trial.status != "mismatch" or case.kind != "special" or reference.status != "compared":
            return trial
        self._ledger.note(f"{name} differs before and after on special values", trial.sentence)
        return replace(trial, status="not run")

    def _note_failing_alone(self, name: str, trial: Trial, reference: Trial) -> None:
        """A rewritten model that fails here, where the reference executor ran both sides."""
        if trial.after.failed and reference.status == "compared":
            self._ledger.note(f"{name} fails on the rewritten model", trial.after.failed)


_CANNOT_LOAD = "cannot load"


def _lacks_kernel(trial: Trial) -> bool:
    """Whether an executor only lacks a kernel for a newer op, or knows no such opset."""
    signs = ("NOT_IMPLEMENTED", "Could not find an implementation", "opset", "IR version")
    return any(sign in trial.after.unable for sign in signs)


def _what_became(trial: Trial) -> str:
    """The status of a trial, as it decides whether to draw again: outputs without elements
    prove so little that other inputs are tried first."""
    if trial.status == "compared" and not trial.comparison.elements:
        return "empty"
    return trial.status if trial.before.outcome is None else "answered"
