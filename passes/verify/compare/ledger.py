"""The ledger of a verification: the results of its cases, added up to a verdict."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from passes.reports.report import Status, Tried
from passes.verify.compare.compare import NOTHING, Comparison
from passes.verify.compare.evidence import Ruling
from passes.verify.compare.trial import AUTHORITY, Trial
from passes.verify.compare.verdicts import Failure, Verdict, Verification
from passes.verify.executor import Outcome, Value
from passes.verify.inputs.drawer import Case

#: Elements of an input that are shown, and the most characters of the text about a case.
_FEW_ELEMENTS, _MOST_TOLD = 4, 300
#: Why nothing was compared where no output had elements.
EMPTY = "every compared output was empty"


@dataclass
class Ledger:
    """Collects trials. `doubts` are cases in which the rewritten model disagrees with another
    executor's original, and nothing else could be compared; `refined` is the first one in which
    only the rewritten model answers."""

    executors: Sequence[str]
    total: Comparison = NOTHING
    reasons: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    excuses: Counter[str] = field(default_factory=Counter)
    doubts: list[tuple[Failure, list[str]]] = field(default_factory=list)
    failure: Failure | None = None
    refined: Failure | None = None
    timed_out: bool = False
    cases: list[Tried] = field(default_factory=list)
    #: By executor and output, a case in which it disagrees with the reference on the original.
    disagreements: dict[tuple[str, str], Case] = field(default_factory=dict)
    _statuses: dict[str, Counter[Status]] = field(default_factory=lambda: defaultdict(Counter))
    _examples: dict[str, str] = field(default_factory=dict)

    def enter(self, executor: str, case: Case, ruling: Ruling, original: Outcome | None) -> None:
        """Record what a case counts for; `original` is the reference executor's outcome."""
        self.excuses.update(ruling.excuses)
        self.cases.append(_tried(executor, case, ruling))
        for note in ruling.notes:
            self.note(note.sentence, note.example)
        special = " on special values" if case.kind == "special" else ""
        if ruling.disagreements:
            what = f"{executor} and the reference executor disagree on the original{special}"
            self.note(what, ruling.disagreements[0].sentence)
        for difference in ruling.disagreements if not special else ():
            self.disagreements.setdefault((executor, difference.output), case)
        if not ruling.doubts:
            self._add(executor, case, ruling.trial)
            return
        self._statuses[executor]["not run"] += 1
        sentence = ruling.doubts[0].sentence
        if special:  # executors differ in NaN and extremes, op by op
            self.note(f"{_crossed(executor)}{special}", sentence)
        else:
            failure = Failure(executor, case, sentence, original, ruling.trial.after.outcome)
            self.doubts.append((failure, [difference.output for difference in ruling.doubts]))

    def _add(self, executor: str, case: Case, trial: Trial) -> None:
        self._statuses[executor][trial.status] += 1
        self.timed_out |= trial.before.endless or trial.after.endless
        if trial.status in ("compared", "crossed"):
            self.total |= trial.comparison
        elif trial.status == "mismatch":
            self.failure = self.failure or self.failed(executor, case, trial)
        elif trial.status == "refined":
            self.refined = self.refined or self.failed(executor, case, trial)
            self.note(
                f"{executor}: the rewritten model answers where the original fails",
                trial.before.failed,
            )
        elif trial.status == "not run" or case.kind != "invalid":
            self.reason(f"{executor}: {trial.sentence}")

    @staticmethod
    def failed(executor: str, case: Case, trial: Trial) -> Failure:
        """The failure that a trial shows."""
        return Failure(executor, case, trial.sentence, trial.before.outcome, trial.after.outcome)

    def reason(self, sentence: str) -> None:
        """Book why a case was not compared; sentences that differ in numbers count as one."""
        key = re.sub(r"\d+", "N", sentence)
        self.reasons[self._examples.setdefault(key, sentence)] += 1

    def note(self, sentence: str, example: str = "") -> None:
        """Record what is odd without being a mismatch; the first example is shown."""
        self.notes[sentence] += 1
        self._examples.setdefault(sentence, example)

    def close(self, cut: Sequence[str]) -> Verification:
        """The verification that the books add up to; `cut` are cases that time did not allow."""
        self._settle_doubts()
        if not cut and not any(self._agreed(name) for name in self.executors):
            self.failure = self.failure or self.refined  # nothing vouches for what it answers
        verdict, reason = self._verdict(bool(cut))
        return Verification(
            verdict,
            reason,
            {executor: self._statuses[executor] for executor in self.executors},
            self.total.elements,
            dict(self.reasons.most_common()),
            self.total.errors,
            tuple(self._counted(note, count) for note, count in self.notes.most_common()),
            tuple(cut),
            timed_out=self.timed_out,
            excuses=dict(self.excuses),
            failure=self.failure,
            cases=tuple(self.cases),
        )

    def _settle_doubts(self) -> None:
        """A doubt is a mismatch, unless the executors are known to disagree on all of its outputs
        in the original, too."""
        for doubt, outputs in self.doubts:
            cases = [self.disagreements.get((doubt.executor, output)) for output in outputs]
            if all(cases):
                known = ", ".join(dict.fromkeys(case.label for case in cases if case))
                what = f"{_crossed(doubt.executor)}, as the original does there ({known})"
                self.note(what, doubt.sentence)
            elif self.failure is None:
                self.failure = doubt

    def _verdict(self, cut: bool) -> tuple[Verdict, str]:
        if self.failure is not None:
            name, label = self.failure.executor, self.failure.case.label
            where = f"{name} executor" if name == AUTHORITY else name
            return "mismatch", f"{self.failure.sentence} ({where}, {label})"
        counts = {name: self._agreed(name) for name in self.executors}
        if sum(counts.values()) and self.total.elements:
            known = ", ".join(f"{count} in {name}" for name, count in counts.items())
            return "verified", f"before and after agree in every compared case ({known})"
        return "not-compared", self._why_not(bool(sum(counts.values())), cut)

    def _agreed(self, executor: str) -> int:
        """In how many cases the sides agree."""
        return self._statuses[executor]["compared"] + self._statuses[executor]["crossed"]

    def _why_not(self, compared: bool, cut: bool) -> str:
        if compared:
            return EMPTY
        if cut:
            return "the time budget ran out before a case could be compared"
        if self.reasons:
            return self.reasons.most_common(1)[0][0]
        return "there was no executor" if not self.executors else "there was no case"

    def _counted(self, note: str, count: int) -> str:
        times = "" if count == 1 else f" ({count} times)"
        example = self._examples[note]
        return f"{note}{times}: {example}" if example else note + times


def _crossed(executor: str) -> str:
    return f"the new model in {executor} differs from the original in the {AUTHORITY} executor"


def _tried(executor: str, case: Case, ruling: Ruling) -> Tried:
    """The text about a case."""
    trial = ruling.trial
    doubt = "; ".join(difference.sentence for difference in ruling.doubts)
    inputs = ", ".join(in_short(name, value) for name, value in case.feeds.items())
    errors = trial.comparison.errors
    worst = f"{errors.worst} ({errors.ulp:g} ULP)" if errors.worst else ""
    shown = (text[:_MOST_TOLD] for text in (doubt or trial.sentence, inputs, worst))
    return Tried(executor, case.label, trial.status, *shown)


def in_short(name: str, value: Value) -> str:
    """An input in short: its dtype, shape, and elements where these are few."""
    if isinstance(value, list):
        return f"{name}: {len(value)} values"
    if value is None:
        return f"{name}: none"
    array = np.asarray(value)
    few = f" = {array.tolist()}" if array.size <= _FEW_ELEMENTS else ""
    return f"{name}: {array.dtype}[{','.join(map(str, array.shape))}]{few}"
