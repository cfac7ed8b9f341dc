"""The result of a verification, as data."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from passes.reports.report import Checked, Status, Tried
from passes.verify.compare.compare import NO_ERRORS, Errors
from passes.verify.compare.coverage import untested
from passes.verify.executor import Event, Outcome
from passes.verify.inputs.drawer import Case

Verdict = Literal["verified", "mismatch", "not-compared"]


@dataclass(frozen=True)
class Failure:
    """The first case in which the sides differ; an outcome is None where that side failed."""

    executor: str
    case: Case
    sentence: str
    expected: Outcome | None
    actual: Outcome | None


@dataclass(frozen=True)
class Verification:
    """The verdict of executing a model before and after a rewrite.

    `reason` is one sentence. `tallies` counts cases by executor and status, `elements` the
    compared elements, `reasons` why cases were not compared, with counts. `errors` are the worst
    float errors of compared cases. `notes` are oddities that are no mismatch. `cut` names the cases
    that time did not allow; `timed_out`: a run was ended by its own limit: the only ways in which
    time changes the result.
    `excuses` counts, by name, what kept differences from being mismatches.
    `reached` is what nodes with bodies of the original did in compared cases, `unreached` what they
    may do and did not, with their paths. `cases` is what became of each case in each executor, in
    order. `seconds` is how long it took.
    """

    verdict: Verdict
    reason: str
    tallies: Mapping[str, Counter[Status]] = field(default_factory=dict)
    elements: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    errors: Errors = NO_ERRORS
    notes: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    timed_out: bool = False
    reached: frozenset[Event] = frozenset()
    unreached: Mapping[Event, str] = field(default_factory=dict)
    excuses: Mapping[str, int] = field(default_factory=dict)
    failure: Failure | None = None
    cases: tuple[Tried, ...] = ()
    seconds: float = field(default=0.0, compare=False)

    @property
    def short(self) -> Checked:
        """The short form, for a report."""
        tallies = self.tallies.items()
        return Checked(
            self.verdict,
            self.reason,
            {name: tally["compared"] for name, tally in tallies},
            {name: tally["crossed"] for name, tally in tallies if tally["crossed"]},
            _finite(self.errors.absolute),
            _finite(self.errors.relative),
            _finite(self.errors.ulp),
            self.errors.alike.name.lower(),
            self.cut,
            self.notes,
            [untested(did, path) for (_, did), path in self.unreached.items()],
            excuses=self.excuses,
            cases=self.cases,
            seconds=round(self.seconds, 3),
        )

    @property
    def compared(self) -> int:
        """The number of compared cases, over all executors."""
        return sum(tally["compared"] + tally["crossed"] for tally in self.tallies.values())


def _finite(error: float) -> float:
    """An error as JSON can hold it: the difference of doubles may be infinite."""
    return min(float(error), sys.float_info.max)
