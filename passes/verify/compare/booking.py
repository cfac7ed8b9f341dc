"""What a case in one executor counts for, in the light of the reference executor's word on it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from passes.verify.compare.compare import Comparison, compare, with_nan
from passes.verify.compare.error_bounds import ErrorBounds, NotMeasured
from passes.verify.compare.ledger import Ledger
from passes.verify.compare.promise import KEPT_FROM_ANSWERING
from passes.verify.compare.tolerance import Tolerance
from passes.verify.compare.trial import AUTHORITY, NEAR_ACROSS, NEAR_ELSEWHERE, Judge, Ran, Trial
from passes.verify.executor import CANNOT_LOAD, CRASHED, Outcome, Value
from passes.verify.inputs.draw import Case

#: A run that takes so many times as long as the original's is taken for one that does not end.
_MUCH_LONGER = 10.0
_ROUNDED_TO_ANYTHING = "roundings decide every element of the original's outputs"
_STRINGS_LOST = "it loses strings in the original's loops, too"
_NAN_ALONE = "every element is NaN"
_NOTHING_TO_RUN = "fails on a Scan over nothing; on the original's it gives no certain answer"
_SIZES_OF_NOTHING = "is not certain of the sizes of what no iteration made"
#: The sentence for an executor that loads the original, but not the rewritten model.
NOT_LOADED = "the rewritten model does not load there"
_OUT_OF_MEMORY = ("Failed to allocate memory", "bad_alloc", "Unable to allocate")
_MISSING_KERNEL = re.compile(r"implementation for \S+?\((\d+)\)")
#: Of its operators every onnxruntime in use has the kernels that it will ever have.
_COMPLETE_OPSET = 21
_NOTHING_SCANNED = "a Scan has nothing to scan, which was assumed not to be"
_MISFED = "the body of a loop without iterations declares other sizes than it is fed or gives"
_RESIZED = "a loop's body returns other sizes than it declares"


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
    to scan; inputs do not show inner ones. `newer`: the rewritten model is of a newer opset or
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
        """Record a trial, in the light of the reference executor's result on the case: its trial
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
            if original.misfed:
                self._book_broken(name, case, trial, _MISFED)
                return
            if original.undeclared and (trial.after.outcome is None or reference.after.failed):
                self._book_broken(name, case, trial, _RESIZED)
                return
            if self._is_idle(name, original, trial, reference):
                declared = trial.after.failed or trial.after.unable
                self.ledger.note(f"{name} {_NOTHING_TO_RUN}", declared)
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
                self._book_alone(name, case, trial, reference)
                return
        if trial.before.outcome is not None and trial.after.unable:
            trial = self._without_answer(name, trial, reference)
        if case.kind == "given" and trial.before.failed:
            self.ledger.note(f"the original fails on the {case.label}", trial.before.failed)
        self.ledger.add(name, case, trial)

    def _without_answer(self, name: str, trial: Trial, reference: Trial) -> Trial:
        """A trial in which only the original can be run: a mismatch, but where an executor lacks
        what is newer than itself, or the reference executor a kernel; or where the original does
        not end, and this executor leaves out a loop that nothing reads."""
        why = trial.after.unable
        longest = self.case_timeout / _MUCH_LONGER
        self.ledger.note(f"{name} runs the original alone", why)
        if reference.before.endless:
            return trial
        if why.startswith(CRASHED):
            what = "the rewritten model ends it, the original runs"
        elif trial.after.endless and trial.before.seconds < longest:
            what = "the rewritten model does not end, the original does"
        elif any(sign in why for sign in _OUT_OF_MEMORY):
            what = "the rewritten model takes more memory than there is, the original runs"
        elif why.startswith(CANNOT_LOAD) and not (self.newer and _is_behind(why)):
            what, why = NOT_LOADED, why.removeprefix(f"{CANNOT_LOAD}: ")
        else:
            return trial
        return replace(trial, status="mismatch", sentence=f"{what}: {why}")

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

    def _book_alone(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        """Book a case where only the rewritten model ran, against the reference's original."""
        original = reference.before
        if original.outcome is not None and trial.after.outcome is not None:
            sides = (f"before in the {AUTHORITY} executor", "after")
            expected, actual = original.outcome, trial.after.outcome
            found = self._agreement(AUTHORITY, case, expected, actual, NEAR_ACROSS, sides)
            differences = found.comparison.differences
            if differences and original.outcome.idle and reference.status == "compared":
                self.ledger.note(f"{name} {_SIZES_OF_NOTHING}", differences[0].sentence)
                trial = replace(trial, status="not run", sentence=_SIZES_OF_NOTHING)
                self.ledger.add(name, case, trial)
                return
            if differences:
                self.ledger.doubt(name, case, differences, expected, trial)
                return
            trial = self._but_for(name, "crossed", trial, found)
        elif not self.judge.lenient and (
            original.refused or (original.failed and case.kind == "invalid")
        ):
            sentence = f"it answers where the original fails: {original.failed}"
            trial = replace(trial, status="mismatch", sentence=sentence)
        self.ledger.add(name, case, trial)

    def _check_executors(self, name: str, case: Case, trial: Trial, reference: Trial) -> None:
        """Note where two executors disagree on the original: one of them is wrong."""
        expected, actual = reference.before.outcome, trial.before.outcome
        if expected is None or actual is None:
            return
        sides = (f"in {AUTHORITY}", f"in {name}")
        if case.kind == "special":  # where executors differ, op by op, and nothing rests on it
            comparison = compare(expected, actual, NEAR_ACROSS, sides=sides)
        else:
            comparison = self._agreement(
                name, case, expected, actual, NEAR_ACROSS, sides
            ).comparison
        if not comparison.agree:
            self.ledger.disagreement(name, case, comparison.differences)

    def _where_rounding_decides(self, name: str, case: Case, trial: Trial) -> Trial:
        """A mismatch is none where it is one of values that the original rounds to anything."""
        expected, actual = trial.before.outcome, trial.after.outcome
        if trial.status != "mismatch" or expected is None or actual is None:
            return trial
        if not self.judge.may_round(case, expected):
            return trial
        found = self._agreement(
            name, case, expected, actual, self.judge.tolerance(name, case, expected)
        )
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
        expected, actual = trial.before.outcome, trial.after.outcome
        agreed = self.judge.exact and reference.status == "compared"
        if trial.status != "mismatch" or not agreed or expected is None or actual is None:
            return trial
        found = self._agreement(name, case, expected, actual, NEAR_ELSEWHERE)
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
        """A mismatch is none in outputs of which this executor alone is wrong on the original, and
        right after: onnxruntime answers uninitialised memory for some bodies and for a time of 0.
        Strings need not be right after, as its loops lose some of them in either form."""
        right, after = reference.before.outcome, trial.after.outcome
        wrong = trial.before.outcome
        settled = trial.status == "mismatch" and reference.status == "compared"
        if not settled or right is None or wrong is None or after is None:
            return trial
        near = self.judge.tolerance(name, case, wrong)
        differing = _outputs(self._agreement(name, case, wrong, after, near).comparison, wrong)
        before = self._agreement(name, case, right, wrong, NEAR_ACROSS).comparison
        if not differing <= _outputs(before, right):
            return trial
        found = _outputs(self._agreement(name, case, right, after, NEAR_ACROSS).comparison, right)
        if any(not _holds_strings(right.outputs[name]) for name in differing & found):
            return trial
        what = "after, too" if differing & found else "right after"
        self.ledger.note(f"{name} is wrong on the original, {what}", trial.sentence)
        kept = set(right.outputs) - found
        if not kept:
            return replace(trial, status="not run", sentence=_STRINGS_LOST)
        comparison = compare(_only(right, kept), _only(after, kept), NEAR_ACROSS)
        comparison = replace(comparison, differences=())
        return replace(trial, status="crossed", sentence="", comparison=comparison)

    def _without_numbers_for_nan(
        self, name: str, case: Case, trial: Trial, reference: Trial
    ) -> Trial:
        """A mismatch is none in elements that are NaN in the reference executor, before and after,
        and a number on one side or both in this one: its LSTM and GRU take a NaN that they read for
        a number, and ordinary numbers make NaN, too."""
        right, expected, actual = (
            reference.before.outcome,
            trial.before.outcome,
            trial.after.outcome,
        )
        settled = trial.status == "mismatch" and reference.status == "compared"
        if not settled or right is None or expected is None or actual is None:
            return trial
        outcome, count = with_nan(right, expected, actual)
        if not count:
            return trial
        self.ledger.note(f"{name} makes numbers of NaN", trial.sentence)
        comparison = compare(expected, outcome, self.judge.tolerance(name, case, expected))
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
            which = "both models" if trial.before.failed else "the rewritten model"
            self.ledger.note(f"{name} fails on {which}", trial.before.failed or trial.after.failed)


def _is_behind(why: str) -> bool:
    """Whether an executor only lacks a kernel for a newer operator, or knows no such opset."""
    lacking = _MISSING_KERNEL.search(why)
    if lacking and int(lacking[1]) <= _COMPLETE_OPSET:
        return False
    signs = ("NOT_IMPLEMENTED", "Could not find an implementation", "opset", "IR version")
    return any(sign in why for sign in signs)


def _outputs(comparison: Comparison, of: Outcome) -> set[str]:
    """The outputs in which a comparison found a difference."""
    named = {difference.output for difference in comparison.differences}
    return {
        name
        for name in of.outputs
        if any(position == name or position.startswith(f"{name}[") for position in named)
    }


def _only(outcome: Outcome, names: Collection[str]) -> Outcome:
    """An outcome with some of its outputs."""
    kept = {name: value for name, value in outcome.outputs.items() if name in names}
    return replace(outcome, outputs=kept)


def _holds_strings(value: Value) -> bool:
    if isinstance(value, list):
        return any(_holds_strings(item) for item in value)
    return value is not None and np.asarray(value).dtype.kind in "OUST"
