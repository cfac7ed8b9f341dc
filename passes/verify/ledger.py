"""Books of a verification: what each case said, added up to a verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from passes.verify.compare import NOTHING, Comparison
from passes.verify.draw import Case
from passes.verify.executor import Outcome
from passes.verify.trial import Trial
from passes.verify.verdicts import Failure, Tally, Verdict, Verification


@dataclass
class Ledger:
    """Collects trials. `doubts` are cases in which the rewritten model disagrees with another
    executor's original, and nothing else could be compared; `refined` is the first one in which
    only the rewritten model answers."""

    executors: Sequence[str]
    reduction: int
    total: Comparison = NOTHING
    reasons: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    doubts: list[Failure] = field(default_factory=list)
    failure: Failure | None = None
    refined: Failure | None = None
    executors_disagree: bool = False
    _statuses: Counter[tuple[str, str]] = field(default_factory=Counter)
    _examples: dict[str, str] = field(default_factory=dict)

    def add(self, executor: str, case: Case, trial: Trial) -> None:
        """Book what a case said in an executor."""
        self._statuses[executor, trial.status] += 1
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

    def doubt(
        self, executor: str, case: Case, sentence: str, expected: Outcome, trial: Trial
    ) -> None:
        """Book a rewritten model that disagrees with the reference executor's original."""
        self._statuses[executor, "not run"] += 1
        if case.kind == "special":  # where executors differ in NaN and extremes, op by op
            self.note(f"{executor}, rewritten, against the reference on special values", sentence)
        else:
            self.doubts.append(Failure(executor, case, sentence, expected, trial.after.outcome))

    def reason(self, sentence: str) -> None:
        """Book why a case was not compared; sentences that differ in numbers count as one."""
        key = re.sub(r"\d+", "N", sentence)
        self.reasons[self._examples.setdefault(key, sentence)] += 1

    def disagreement(self, executor: str, case: Case, sentence: str) -> None:
        """Book that an executor and the reference executor disagree on the original."""
        self.executors_disagree |= case.kind != "special"
        what = " on special values" if case.kind == "special" else ""
        self.note(f"{executor} and the reference executor disagree on the original{what}", sentence)

    def note(self, sentence: str, example: str = "") -> None:
        """Book what is odd without being a mismatch; the first example is told."""
        self.notes[sentence] += 1
        self._examples.setdefault(sentence, example)

    def tally(self, executor: str) -> Tally:
        """The counts of one executor."""
        return Tally(
            compared=self._statuses[executor, "compared"],
            crossed=self._statuses[executor, "crossed"],
            both_failed=self._statuses[executor, "both failed"],
            not_run=self._statuses[executor, "not run"] + self._statuses[executor, "refined"],
        )

    def close(self, cut: Sequence[str]) -> Verification:
        """The verification that the books add up to; `cut` are cases that time did not allow."""
        self._settle_doubts()
        if not cut and not any(self._agreed(name) for name in self.executors):
            self.failure = self.failure or self.refined  # nothing vouches for what it answers
        verdict, reason = self._verdict(bool(cut))
        return Verification(
            verdict,
            reason,
            {executor: self.tally(executor) for executor in self.executors},
            self.total.elements,
            dict(self.reasons.most_common()),
            self.total.errors,
            self.reduction,
            tuple(self._told(note, count) for note, count in self.notes.most_common()),
            bool(cut),
            tuple(cut),
            self.failure,
        )

    def _settle_doubts(self) -> None:
        """A doubt is a mismatch, unless the executors are known to disagree on the original."""
        for doubt in self.doubts:
            if self.executors_disagree:
                what = f"{doubt.executor}, rewritten, against the reference executor's original"
                self.note(what, doubt.sentence)
            elif self.failure is None:
                self.failure = doubt

    def _verdict(self, cut: bool) -> tuple[Verdict, str]:
        if self.failure is not None:
            where = f"{self.failure.executor}, {self.failure.case.label}"
            return "mismatch", f"{where}: {self.failure.sentence}"
        counts = {name: self._agreed(name) for name in self.executors}
        if sum(counts.values()) and self.total.elements:
            told = ", ".join(f"{count} in {name}" for name, count in counts.items())
            return "verified", f"before and after agree in every compared case ({told})"
        return "not-compared", self._why_not(bool(sum(counts.values())), cut)

    def _agreed(self, executor: str) -> int:
        """In how many cases the sides agree."""
        return self.tally(executor).compared + self.tally(executor).crossed

    def _why_not(self, compared: bool, cut: bool) -> str:
        if compared:
            return "every compared output was empty"
        if cut:
            return "the time budget ran out before a case could be compared"
        if self.reasons:
            return self.reasons.most_common(1)[0][0]
        return "there was no executor" if not self.executors else "there was no case"

    def _told(self, note: str, count: int) -> str:
        times = "" if count == 1 else f" ({count} times)"
        example = self._examples[note]
        return f"{note}{times}: {example}" if example else note + times
