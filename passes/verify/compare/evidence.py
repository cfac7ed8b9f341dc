"""The evidence about a case: two runs in an executor, what is required of them, and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from onnx import ModelProto

from passes.ir import scope
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.places import all_imports
from passes.reports.report import Status
from passes.verify.compare.arithmetic import rounds, small_enough
from passes.verify.compare.compare import Comparison, Difference, compare
from passes.verify.compare.error_bounds import ErrorBounds
from passes.verify.compare.tolerance import BITS, NEAR, NEAR_ELSEWHERE, VALUES, Tolerance
from passes.verify.compare.trial import AUTHORITY, End, Ran, Trial
from passes.verify.executor import Outcome
from passes.verify.inputs.drawer import Case
from passes.verify.requirements import Requirements


@dataclass(frozen=True)
class Rules:
    """What holds for all cases of a verification.

    `rounding`: the arithmetic of a model is not exact. `newer`: the rewritten model is of another
    opset or IR version, which an executor need not know; `older`: of an older opset, for which it
    need not have kernels. `ends`: it has no Loop, so that it ends, however long it takes.
    """

    required: Requirements
    rounding: bool = False
    newer: bool = False
    older: bool = False
    ends: bool = False

    @staticmethod
    def of(before: ModelProto, after: ModelProto, required: Requirements) -> Rules:
        """The rules for a pair of models."""
        return Rules(
            required,
            rounding=not required.exact and (rounds(before) or rounds(after)),
            newer=_versions(after) != _versions(before),
            older=max(_versions(after)[1], default=0) < max(_versions(before)[1], default=0),
            ends=all(op_of(place.node) != "Loop" for place in scope.walk_model(after)),
        )

    def may_round(self, case: Case, expected: Outcome) -> bool:
        """Return whether the outcomes of one executor may differ by rounding."""
        rounds = self.required.tolerance is not None or not case.exact or self.rounding
        return not self.required.exact and (rounds or not small_enough(expected))

    def tolerance(self, executor: str, case: Case, expected: Outcome) -> Tolerance:
        """Return the difference allowed between the outcomes of one executor."""
        if not self.may_round(case, expected):
            return BITS if self.required.exact else VALUES
        absolute, relative = self.required.tolerance or (0.0, 0.0)
        near = NEAR if executor == AUTHORITY else NEAR_ELSEWHERE
        return replace(near, absolute=absolute, relative=relative)


def _versions(model: ModelProto) -> tuple[int, set[int]]:
    """Return the IR version, and the opsets of the standard domain, that a model needs."""
    imports = all_imports(model)
    return model.ir_version, {entry.version for entry in imports if is_onnx_domain(entry.domain)}


@dataclass(frozen=True)
class Question:
    """Two runs of one case in one executor."""

    rules: Rules
    executor: str
    case: Case
    before: Ran
    after: Ran


@dataclass(frozen=True)
class Evidence:
    """One case in one executor: its `trial`, and the `reference` executor's, after its excuses.
    In the reference executor both are the same. `bounds` measure what roundings explain."""

    rules: Rules
    executor: str
    case: Case
    trial: Trial
    reference: Trial
    bounds: ErrorBounds

    @property
    def original(self) -> Outcome | None:
        """The outcome of the original in the reference executor."""
        return self.reference.before.outcome

    @property
    def both(self) -> tuple[Outcome, Outcome]:
        """The outcomes of both sides, where both answer."""
        before, after = self.trial.before.outcome, self.trial.after.outcome
        assert before is not None
        assert after is not None
        return before, after

    @property
    def right(self) -> Outcome:
        """The outcome of the original in the reference executor, where it answers."""
        assert self.original is not None
        return self.original

    @property
    def tolerance(self) -> Tolerance:
        """The difference allowed between the two outcomes in this executor."""
        return self.rules.tolerance(self.executor, self.case, self.both[0])

    def agreement(
        self,
        expected: Outcome,
        actual: Outcome,
        near: Tolerance,
        sides: tuple[str, str] = ("before", "after"),
        *,
        measured_in: str = "",
    ) -> Comparison:
        """Compare two outcomes; what roundings explain counts as equal. Raises NotMeasured."""
        comparison = compare(expected, actual, near, sides=sides)
        if comparison.agree:
            return comparison
        executor = measured_in or self.executor
        settled, undecided = self.bounds.settled(executor, self.case, expected, actual, near)
        after = compare(expected, settled, near, sides=sides)
        return replace(after, errors=comparison.errors, undecided=undecided)

    def but_for(self, status: Status, found: Comparison) -> Ruling | None:
        """The ruling where roundings explain all differences; None where they do not."""
        if not found.agree:
            return None
        rounded = Note(f"{self.executor}: roundings alone decide some values", self.trial.sentence)
        why = "roundings decide every element of the original's outputs"
        notes = (rounded,) if found.undecided else ()
        return self.agreed(status, found, why, *notes)

    def agreed(self, status: Status, comparison: Comparison, why: str, *notes: Note) -> Ruling:
        """The ruling where both sides agree, but for elements that prove nothing; the case is not
        compared, and that is `why`, where no other element is left."""
        left = comparison.elements - comparison.undecided
        if comparison.undecided and left <= 0:
            return self.not_run(why, *notes)
        comparison = replace(comparison, differences=(), elements=left, undecided=0)
        return Ruling(replace(self.trial, status=status, sentence="", comparison=comparison), notes)

    def not_run(self, why: str, *notes: Note) -> Ruling:
        """The ruling that a case does not count."""
        return Ruling(replace(self.trial, status="not run", sentence=why), notes)


@dataclass(frozen=True)
class Note:
    """An oddity that is no mismatch, and an example of it."""

    sentence: str
    example: str = ""


@dataclass(frozen=True)
class Ruling:
    """The result of a case: its trial after excuses, and the notes on it.

    `disagreements`: where this executor and the reference executor differ on the original.
    `doubts`: where the rewritten model, which alone answers here, differs from the original in the
    reference executor. `excuses` are the names of those that applied.
    """

    trial: Trial
    notes: tuple[Note, ...] = ()
    disagreements: tuple[Difference, ...] = ()
    doubts: tuple[Difference, ...] = ()
    excuses: tuple[str, ...] = ()

    def noted(self, *notes: Note) -> Ruling:
        """The same with more notes."""
        return replace(self, notes=(*self.notes, *notes))


ANY = frozenset(End)
ANSWERS = frozenset({End.VALUE})
ANSWERS_OR_FAILS = frozenset({End.VALUE, End.FAILURE})


@dataclass(frozen=True)
class Excuse:
    """A named reason for which a verdict does not count: the docstring of `ask` has the case, what
    it may `Never` excuse, and the `Trap` of docs/onnxruntime.md that it rests on, if on one.

    `before` and `after`: the ends of the two runs that it is asked about. `settled`: only where the
    reference executor found both sides equal. `anywhere`: about the reference executor, too.
    `final`: it is asked unless both sides agree, and is the last one.
    """

    name: str
    ask: Callable[[Evidence], Ruling | None]
    before: frozenset[End] = ANY
    after: frozenset[End] = ANY
    settled: bool = False
    anywhere: bool = False
    final: bool = False

    def asked(self, evidence: Evidence, first: Trial) -> Ruling | None:
        """The ruling where it applies; `first` is the trial before any excuse."""
        doubtful = first.status != "compared" if self.final else evidence.trial.status == "mismatch"
        asked = (
            doubtful
            and first.before.end in self.before
            and first.after.end in self.after
            and (self.anywhere or evidence.executor != AUTHORITY)
            and (not self.settled or evidence.reference.status == "compared")
        )
        return self.ask(evidence) if asked else None
