"""What a case in one executor counts for, in the light of the reference executor's word on it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from passes.verify.compare import Comparison, compare, with_nan
from passes.verify.draw import Case
from passes.verify.error_bounds import ErrorBounds, NotMeasured
from passes.verify.executor import CANNOT_LOAD, CRASHED, Outcome
from passes.verify.ledger import Ledger
from passes.verify.promise import KEPT_FROM_ANSWERING
from passes.verify.tolerance import Tolerance
from passes.verify.trial import AUTHORITY, NEAR_ACROSS, NEAR_ELSEWHERE, Judge, Ran, Trial

#: A run that takes so many times as long as the original's is taken for one that does not end.
_MUCH_LONGER = 10.0
_ROUNDED_TO_ANYTHING = "roundings decide every element of the original's outputs"
_NAN_ALONE = "every element is NaN"
_NOTHING_TO_RUN = "fails on a Scan over nothing; on the original's it gives no certain answer"
_NOTHING_SCANNED = "a Scan has nothing to scan, which was assumed not to be"
_MISFED = "a loop is fed other sizes than its body declares"


@dataclass(frozen=True)
class _Agreement:
    """A comparison in which what roundings explain counts as equal; of this, `undecided`
    elements prove nothing."""

    comparison: Comparison
    undecided: int = 0


@dataclass(frozen=True)
class Booking:
    """Books trials: those of the reference executor as they are, those of another one where it
    is not known to be at fault itself. `non_empty`: the user promised that Scans have something
    to scan; inputs do not tell of inner ones. `newer`: the rewritten model is of a newer opset or
    IR version, which an executor need not know. `case_timeout`: seconds that one run may take."""

    judge: Judge
    ledger: Ledger
    bounds: ErrorBounds
    case_timeout: float
    non_empty: bool = False
    newer: bool = False

    def settled(self, case: Case, trial: Trial) -> Trial:
        """A trial of the reference executor, what roundings explain counting as equal."""
        self.bounds.start(case, trial.before.outcome)
        try:
            return self._where_rounding_decides(AUTHORITY, case, trial)
        except NotMeasured:
            return trial

    def book(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        """Book a trial, in the light of what the reference executor said of the case: its trial
        is one that is settled."""
        self.bounds.start(case, reference.before.outcome)
        try:
            self._book(name, case, trial, reference)
        except NotMeasured as error:
            sentence = f"how far roundings go could not be measured: {error}"
            self.ledger.add(name, case, replace(trial, status="not run", sentence=sentence))

    def _book(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        original = reference.before.outcome
        if original is not None and trial.status != "compared":
            if self.non_empty and original.idle_scan:
                self._book_broken(name, case, trial, _NOTHING_SCANNED)
                return
            if original.misfed or (original.undeclared and trial.after.outcome is None):
                self._book_broken(name, case, trial, _MISFED)
                return
            if self._is_idle(name, original, trial, reference):
                said = trial.after.failed or trial.after.unable
                self.ledger.note(f"{name} {_NOTHING_TO_RUN}", said)
                trial = replace(trial, status="not run", sentence=_NOTHING_TO_RUN)
                self.ledger.add(name, case, trial)
                return
        if trial.sentence == KEPT_FROM_ANSWERING:
            self.ledger.note(f"{name} {KEPT_FROM_ANSWERING}", trial.after.failed)
        if trial.before.spared:
            self.ledger.note(f"{name} is not run on inputs like those that crash the original")
        trial = self._where_rounding_decides(name, case, trial)
        if name == AUTHORITY and trial.before.unable:
            self.ledger.note(f"the {AUTHORITY} executor makes no claim", trial.before.unable)
        if name != AUTHORITY:
            self._check_executors(name, case, trial, reference)
            trial = self._without_numbers_for_nan(name, case, trial, reference)
            trial = self._without_rounding(name, case, trial, reference)
            trial = self._where_the_original_fails(name, trial, reference)
            trial = self._without_its_own_fault(name, case, trial, reference)
            trial = self._without_special(name, case, trial, reference)
            self._note_failing_alone(name, trial, reference)
            if trial.before.outcome is None and trial.after.outcome is not None:
                self._book_alone(name, case, trial, reference.before)
                return
        if trial.before.outcome is not None and trial.after.unable:
            self.ledger.note(f"{name} runs the original alone", trial.after.unable)
            if trial.after.unable.startswith(CRASHED):
                sentence = f"the rewritten model ends it, the original runs: {trial.after.unable}"
                trial = replace(trial, status="mismatch", sentence=sentence)
            if trial.after.endless and trial.before.seconds * _MUCH_LONGER < self.case_timeout:
                sentence = (
                    f"the rewritten model does not end, the original does: {trial.after.unable}"
                )
                trial = replace(trial, status="mismatch", sentence=sentence)
            excused = self.newer and _is_behind(trial)
            if trial.after.unable.startswith(CANNOT_LOAD) and not excused:
                why = trial.after.unable.removeprefix(f"{CANNOT_LOAD}: ")
                sentence = f"the rewritten model does not load there: {why}"
                trial = replace(trial, status="mismatch", sentence=sentence)
        if case.kind == "given" and trial.before.failed:
            self.ledger.note(f"the original fails on the {case.label}", trial.before.failed)
        self.ledger.add(name, case, trial)

    @staticmethod
    def _is_idle(name: str, original: Outcome, trial: Trial, reference: Trial) -> bool:
        """Whether the rewritten model alone fails, where the original has a Scan with nothing to
        scan, and is right by the reference executor.

        No runtime has to run that: onnxruntime's Scan-8 leaves final states uninitialised there,
        and its later ones fail.
        """
        settled = original.idle_scan and reference.status == "compared"
        alone = trial.before.outcome is not None and trial.after.outcome is None
        return name != AUTHORITY and settled and alone

    def _book_broken(self, name: str, case: Case, trial: Trial, why: str) -> None:
        """Book a case that a promise of the user, or of the model, rules out, and that shows
        nothing."""
        if trial.status == "mismatch":
            self.ledger.note(f"{name} differs where {why}", trial.sentence)
        self.ledger.add(name, case, replace(trial, status="not run", sentence=why))

    def _book_alone(self, name: str, case: Case, trial: Trial, original: Ran) -> None:
        """Book a case where only the rewritten model ran, against the reference's original."""
        if original.outcome is not None and trial.after.outcome is not None:
            sides = (f"before in the {AUTHORITY} executor", "after")
            expected, actual = original.outcome, trial.after.outcome
            found = self._agreement(AUTHORITY, case, expected, actual, NEAR_ACROSS, sides)
            if not found.comparison.agree:
                sentence = found.comparison.differences[0].sentence
                self.ledger.doubt(name, case, sentence, expected, trial)
                return
            trial = self._but_for(name, "crossed", trial, found)
        elif original.refused or (original.failed and case.kind == "invalid"):
            sentence = f"it answers where the original fails: {original.failed}"
            trial = replace(trial, status="mismatch", sentence=sentence)
        self.ledger.add(name, case, trial)

    def _check_executors(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        """Note where two executors disagree on the original: one of them is wrong."""
        one, other = reference.before.outcome, trial.before.outcome
        if one is None or other is None:
            return
        sides = (f"in {AUTHORITY}", f"in {name}")
        if case.kind == "special":  # where executors differ, op by op, and nothing rests on it
            comparison = compare(one, other, NEAR_ACROSS, sides=sides)
        else:
            comparison = self._agreement(name, case, one, other, NEAR_ACROSS, sides).comparison
        if not comparison.agree:
            self.ledger.disagreement(name, case, comparison.differences[0].sentence)

    def _where_rounding_decides(self, name: str, case: Case, trial: Trial) -> Trial:
        """A mismatch is none where it is one of values that the original rounds to anything."""
        one, other = trial.before.outcome, trial.after.outcome
        if trial.status != "mismatch" or one is None or other is None:
            return trial
        if not self.judge.may_round(case, one):
            return trial
        found = self._agreement(name, case, one, other, self.judge.tolerance(name, case, one))
        return self._but_for(name, "compared", trial, found)

    def _agreement(
        self,
        name: str,
        case: Case,
        expected: Outcome,
        actual: Outcome,
        near: Tolerance,
        sides: tuple[str, str] = ("before", "after"),
    ) -> _Agreement:
        """Compare two outcomes, what roundings explain counting as equal."""
        comparison = compare(expected, actual, near, sides=sides)
        if comparison.agree:
            return _Agreement(comparison)
        settled = self.bounds.settled(name, case, expected, actual, near)
        after = compare(expected, settled.outcome, near, sides=sides)
        if not after.agree:
            return _Agreement(comparison)
        return _Agreement(replace(after, errors=comparison.errors), settled.count)

    def _but_for(
        self, name: str, status: Literal["compared", "crossed"], trial: Trial, found: _Agreement
    ) -> Trial:
        """A trial of sides that differ, or what it is worth where roundings explain that."""
        if not found.comparison.agree:
            return trial
        if found.undecided:
            self.ledger.note(f"{name}: roundings alone decide some values", trial.sentence)
        elements = found.comparison.elements - found.undecided
        if found.undecided and elements <= 0:
            return replace(trial, status="not run", sentence=_ROUNDED_TO_ANYTHING)
        comparison = replace(found.comparison, elements=elements)
        return replace(trial, status=status, sentence="", comparison=comparison)

    def _without_rounding(self, name: str, case: Case, trial: Trial, reference: Trial) -> Trial:
        """A mismatch of bits is none where the reference executor found the bits equal and
        this one only rounds differently."""
        one, other = trial.before.outcome, trial.after.outcome
        agreed = self.judge.exact and reference.status == "compared"
        if trial.status != "mismatch" or not agreed or one is None or other is None:
            return trial
        found = self._agreement(name, case, one, other, NEAR_ELSEWHERE)
        if found.comparison.agree and not found.undecided:
            self.ledger.note(f"{name} rounds differently before and after", trial.sentence)
        return self._but_for(name, "compared", trial, found)

    def _where_the_original_fails(self, name: str, trial: Trial, reference: Trial) -> Trial:
        """A mismatch is none where both sides fail in the reference executor: another one may
        leave out a node that nothing reads, in one of the two forms of a model."""
        if trial.status != "mismatch" or reference.status != "both failed":
            return trial
        self.ledger.note(f"{name} answers where the original fails", reference.sentence)
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
        if self._agreement(name, case, right, wrong, NEAR_ACROSS, sides).comparison.agree:
            return trial
        comparison = self._agreement(name, case, right, after, NEAR_ACROSS, sides).comparison
        if not comparison.agree:
            return trial
        self.ledger.note(f"{name} is wrong on the original, right after", trial.sentence)
        return replace(trial, status="crossed", sentence="", comparison=comparison)

    def _without_numbers_for_nan(
        self, name: str, case: Case, trial: Trial, reference: Trial
    ) -> Trial:
        """A mismatch is none in elements that are NaN in the reference executor, before and after,
        and a number on one side or both in this one: its LSTM and GRU take a NaN that they read for
        a number, and ordinary numbers make NaN, too."""
        right, one, other = reference.before.outcome, trial.before.outcome, trial.after.outcome
        settled = trial.status == "mismatch" and reference.status == "compared"
        if not settled or right is None or one is None or other is None:
            return trial
        outcome, count = with_nan(right, one, other)
        if not count:
            return trial
        self.ledger.note(f"{name} makes numbers of NaN", trial.sentence)
        comparison = compare(one, outcome, self.judge.tolerance(name, case, one))
        if not comparison.agree:
            sentence = comparison.differences[0].sentence
            return replace(trial, sentence=sentence, comparison=comparison, after=Ran(outcome))
        elements = comparison.elements - count
        if elements <= 0:
            return replace(trial, status="not run", sentence=_NAN_ALONE)
        comparison = replace(comparison, elements=elements)
        return replace(trial, status="compared", sentence="", comparison=comparison)

    def _without_special(self, name: str, case: Case, trial: Trial, reference: Trial) -> Trial:
        """On NaN, infinities and extremes the reference executor's word counts: the kernels of
        another one may treat them differently in the two forms of a model."""
        if trial.status != "mismatch" or case.kind != "special" or reference.status != "compared":
            return trial
        self.ledger.note(f"{name} differs before and after on special values", trial.sentence)
        return replace(trial, status="not run")

    def _note_failing_alone(self, name: str, trial: Trial, reference: Trial) -> None:
        """A rewritten model that fails here, where the reference executor ran both sides."""
        if trial.after.failed and reference.status == "compared":
            self.ledger.note(f"{name} fails on the rewritten model", trial.after.failed)


def _is_behind(trial: Trial) -> bool:
    """Whether an executor only lacks a kernel for a newer op, or knows no such opset."""
    signs = ("NOT_IMPLEMENTED", "Could not find an implementation", "opset", "IR version")
    return any(sign in trial.after.unable for sign in signs)
