"""The excuses for a mismatch, in order: each names its case, and what it never excuses.

The first verdict on a case is that of the table (`table.py`). It is excused where it rests on a
fault of the executor, or on what roundings decide, and not on the rewrite. Excuses are asked in
the order of `EXCUSES`; each gets what the ones before it left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from passes.verify.compare.compare import Comparison, Difference, compare, with_nan
from passes.verify.compare.error_bounds import ErrorBounds, NotMeasured
from passes.verify.compare.promise import KEPT_FROM_ANSWERING
from passes.verify.compare.strictness import NEAR_ACROSS, NEAR_ELSEWHERE
from passes.verify.compare.table import Rules
from passes.verify.compare.tolerance import Tolerance
from passes.verify.compare.trial import AUTHORITY, End, Ran, Status, Trial
from passes.verify.executor import Outcome, Value
from passes.verify.inputs.draw import Case

_NOTHING_TO_RUN = "fails on a Scan over nothing; on the original's it gives no certain answer"
_MADE_OF_NOTHING = "is not certain of what no iteration made"


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
    def tolerance(self) -> Tolerance:
        """The difference allowed between the two outcomes in this executor."""
        assert self.trial.before.outcome is not None
        return self.rules.strictness.tolerance(self.executor, self.case, self.trial.before.outcome)

    def agreement(
        self,
        expected: Outcome,
        actual: Outcome,
        near: Tolerance,
        sides: tuple[str, str] = ("before", "after"),
        *,
        measured_in: str = "",
    ) -> Agreement:
        """Compare two outcomes; what roundings explain counts as equal. Raises NotMeasured."""
        comparison = compare(expected, actual, near, sides=sides)
        if comparison.agree:
            return Agreement(comparison)
        executor = measured_in or self.executor
        settled = self.bounds.settled(executor, self.case, expected, actual, near)
        after = compare(expected, settled.outcome, near, sides=sides)
        return Agreement(replace(after, errors=comparison.errors), settled.count)

    def but_for(self, status: Status, found: Agreement) -> Ruling | None:
        """The ruling where roundings explain all differences; None where they do not."""
        if not found.comparison.agree:
            return None
        notes: tuple[Note, ...] = ()
        if found.undecided:
            rounded = f"{self.executor}: roundings alone decide some values"
            notes = (Note(rounded, self.trial.sentence),)
        elements = found.comparison.elements - found.undecided
        if found.undecided and elements <= 0:
            why = "roundings decide every element of the original's outputs"
            return Ruling(replace(self.trial, status="not run", sentence=why), notes)
        comparison = replace(found.comparison, elements=elements)
        trial = replace(self.trial, status=status, sentence="", comparison=comparison)
        return Ruling(trial, notes)


@dataclass(frozen=True)
class Agreement:
    """A comparison in which what roundings explain counts as equal; of this, `undecided`
    elements prove nothing."""

    comparison: Comparison
    undecided: int = 0


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


_ANY = frozenset(End)
_ANSWERS_OR_FAILS = frozenset({End.VALUE, End.FAILURE})


@dataclass(frozen=True)
class Excuse:
    """A named reason for which a verdict does not count: the docstring of `ask` has the case, what
    it may `Never` excuse, and the `Trap` of docs/onnxruntime.md that it rests on, if on one.

    `of`: the ends of the rewritten model's run that it is asked about. `others`: it is never asked
    about the reference executor. `final`: it is asked unless both sides agree, and is the last one.
    """

    name: str
    ask: Callable[[Evidence], Ruling | None]
    of: frozenset[End]
    others: bool
    final: bool

    def asked(self, evidence: Evidence, first: Trial) -> Ruling | None:
        """The ruling where it applies; `first` is the trial before any excuse."""
        doubtful = first.status != "compared" if self.final else evidence.trial.status == "mismatch"
        if not doubtful or first.after.end not in self.of:
            return None
        return None if self.others and evidence.executor == AUTHORITY else self.ask(evidence)


#: In the order in which they are asked, which is that of this file.
EXCUSES: list[Excuse] = []


def excuse(
    name: str,
    *,
    of: frozenset[End] = frozenset({End.VALUE}),
    others: bool = True,
    final: bool = False,
) -> Callable[[Callable[[Evidence], Ruling | None]], Callable[[Evidence], Ruling | None]]:
    """Add a function to the excuses."""

    def added(ask: Callable[[Evidence], Ruling | None]) -> Callable[[Evidence], Ruling | None]:
        EXCUSES.append(Excuse(name, ask, of, others, final))
        return ask

    return added


def _not_run(evidence: Evidence, why: str, *notes: Note) -> Ruling:
    return Ruling(replace(evidence.trial, status="not run", sentence=why), notes)


def _ruled_out(evidence: Evidence, why: str) -> Ruling:
    """A case that a promise of the user, or of the model, rules out."""
    note = Note(f"{evidence.executor} differs where {why}", evidence.trial.sentence)
    return _not_run(evidence, why, *((note,) if evidence.trial.status == "mismatch" else ()))


@excuse("nothing-scanned", of=_ANY, others=False, final=True)
def _nothing_scanned(evidence: Evidence) -> Ruling | None:
    """--assume non-empty, and a Scan of the original, maybe an inner one, has nothing to scan.

    Never: a case in which every Scan has something to scan.
    """
    original = evidence.original
    if original is None or not (evidence.rules.non_empty and original.idle_scan):
        return None
    return _ruled_out(evidence, "a Scan has nothing to scan, which was assumed not to be")


@excuse("misfed-body", of=_ANY, others=False, final=True)
def _misfed(evidence: Evidence) -> Ruling | None:
    """A loop runs no iteration, and its body declares other sizes than it is fed or gives.

    Never: a loop that runs an iteration.
    """
    if evidence.original is None or not evidence.original.misfed:
        return None
    why = "the body of a loop without iterations declares other sizes than it is fed or gives"
    return _ruled_out(evidence, why)


@excuse("undeclared-sizes", of=_ANY, others=False, final=True)
def _undeclared(evidence: Evidence) -> Ruling | None:
    """A body returns other sizes than it declares, and the rewritten model fails.

    Never: a rewritten model that answers both here and in the reference executor.
    """
    fails = evidence.trial.after.outcome is None or evidence.reference.after.failed
    if evidence.original is None or not (evidence.original.undeclared and fails):
        return None
    return _ruled_out(evidence, "a loop's body returns other sizes than it declares")


@excuse("idle-scan", of=_ANY - {End.VALUE}, final=True)
def _idle_scan(evidence: Evidence) -> Ruling | None:
    """The rewritten model fails on a Scan over nothing; the original's Scan has nothing either, or
    the models are compared for no runtime in particular, where the same holds of RNN, GRU and LSTM.

    Never: an answer, a Loop, or a side that the reference executor did not find equal.
    Trap: A Scan over nothing fails, or ends the process
    """
    original, trial, reference = evidence.original, evidence.trial, evidence.reference
    if original is None or reference.after.outcome is None or reference.status != "compared":
        return None
    new = reference.after.outcome
    its_own = evidence.rules.portable and (new.idle_scan or new.idle_cell)
    if not (original.idle_scan or its_own):
        return None
    if trial.before.outcome is None or trial.after.outcome is not None:
        return None
    declared = trial.after.failed or trial.after.unable
    why = _NOTHING_TO_RUN if original.idle_scan else "fails where nothing is to be computed"
    return _not_run(evidence, why, Note(f"{evidence.executor} {why}", declared))


@excuse("idle-cell", of=_ANSWERS_OR_FAILS, final=True)
def _idle_cell(evidence: Evidence) -> Ruling | None:
    """An RNN, GRU or LSTM of the original reads no element: the states are what memory held.

    Never: a crash, or a side that the reference executor did not find equal.
    Trap: LSTM and RNN over no time steps leave final states uninitialised
    """
    original = evidence.original
    if original is None or not original.idle_cell or evidence.reference.status != "compared":
        return None
    return _ruled_out(evidence, "a recurrent operator has no time steps or rows")


@excuse("endless-original", of=frozenset({End.NO_KERNEL, End.TIME}))
def _endless_original(evidence: Evidence) -> Ruling | None:
    """The original does not end in the reference executor: here a dead loop is left out.

    Never: an original that ends there.
    Trap: A dead node may be left out
    """
    if not evidence.reference.before.endless:
        return None
    return _not_run(evidence, f"the rewritten model: {evidence.trial.after.unable}")


@excuse("rounding", others=False)
def _rounding(evidence: Evidence) -> Ruling | None:
    """The original moves as far when its arithmetic is perturbed.

    Never: bits that must be equal, or an infinity that no perturbed run changes.
    """
    expected, actual = evidence.trial.before.outcome, evidence.trial.after.outcome
    if expected is None or actual is None:
        return None
    if not evidence.rules.strictness.may_round(evidence.case, expected):
        return None
    found = evidence.agreement(expected, actual, evidence.tolerance)
    return evidence.but_for("compared", found)


@excuse("numbers-for-nan")
def _numbers_for_nan(evidence: Evidence) -> Ruling | None:
    """An element is NaN before and after in the reference executor, and a number here.

    Never: an element that is a number in the reference executor.
    Trap: LSTM and GRU turn a NaN in their inputs into a number
    """
    right, trial = evidence.original, evidence.trial
    expected, actual = trial.before.outcome, trial.after.outcome
    settled = evidence.reference.status == "compared"
    if not settled or right is None or expected is None or actual is None:
        return None
    outcome, count = with_nan(right, expected, actual)
    if not count:
        return None
    note = Note(f"{evidence.executor} makes numbers of NaN", trial.sentence)
    comparison = compare(expected, outcome, evidence.tolerance)
    if not comparison.agree:  # the other excuses are asked about what is left
        sentence = comparison.differences[0].sentence
        left = replace(trial, sentence=sentence, comparison=comparison, after=Ran(outcome))
        return Ruling(left, (note,))
    elements = comparison.elements - count
    if elements <= 0:
        return _not_run(evidence, "every element is NaN", note)
    comparison = replace(comparison, elements=elements)
    return Ruling(replace(trial, status="compared", sentence="", comparison=comparison), (note,))


@excuse("rounds-otherwise")
def _rounds_otherwise(evidence: Evidence) -> Ruling | None:
    """Bits are equal in the reference executor, and near here.

    Never: a case in which the reference executor found no equal bits.
    """
    expected, actual = evidence.trial.before.outcome, evidence.trial.after.outcome
    agreed = evidence.rules.strictness.exact and evidence.reference.status == "compared"
    if not agreed or expected is None or actual is None:
        return None
    found = evidence.agreement(expected, actual, NEAR_ELSEWHERE)
    near = evidence.but_for("compared", found)
    if near is None or found.undecided:
        return near
    note = Note(f"{evidence.executor} rounds differently before and after", evidence.trial.sentence)
    return replace(near, notes=(*near.notes, note))


@excuse("original-fails", of=_ANSWERS_OR_FAILS)
def _original_fails(evidence: Evidence) -> Ruling | None:
    """Both sides fail in the reference executor, and one answers here.

    Never: a crash, or a model that does not load.
    Trap: A dead node may be left out, also one that fails
    """
    if evidence.reference.status != "both failed":
        return None
    why = evidence.reference.sentence
    return _not_run(
        evidence, why, Note(f"{evidence.executor} answers where the original fails", why)
    )


@excuse("own-fault")
def _own_fault(evidence: Evidence) -> Ruling | None:
    """This executor is wrong on the original, and right on the rewritten model.

    Never: an output in which it is right on the original, or wrong after (but for strings).
    Trap: its memory is uninitialised
    """
    right, trial = evidence.original, evidence.trial
    wrong, after = trial.before.outcome, trial.after.outcome
    settled = evidence.reference.status == "compared"
    if not settled or right is None or wrong is None or after is None:
        return None
    near = evidence.tolerance
    differing = _outputs(evidence.agreement(wrong, after, near).comparison, wrong)
    before = evidence.agreement(right, wrong, NEAR_ACROSS).comparison
    after, lost = with_nan(right, right, after)  # see `numbers-for-nan`
    at_fault, as_it_is = (
        _outputs(compare(right, given, NEAR_ACROSS), right) for given in (wrong, after)
    )
    if not differing <= _outputs(before, right) | at_fault - as_it_is:
        return None
    found = _outputs(evidence.agreement(right, after, NEAR_ACROSS).comparison, right)
    if any(not _holds_strings(right.outputs[name]) for name in differing & found):
        return None
    what = "after, too" if differing & found else "right after"
    note = Note(f"{evidence.executor} is wrong on the original, {what}", trial.sentence)
    kept = set(right.outputs) - found
    if not kept:
        return _not_run(evidence, "it loses strings in the original's loops, too", note)
    comparison = compare(_only(right, kept), _only(after, kept), NEAR_ACROSS)
    comparison = replace(comparison, differences=(), elements=comparison.elements - lost)
    return Ruling(replace(trial, status="crossed", sentence="", comparison=comparison), (note,))


@excuse("special-values", of=_ANSWERS_OR_FAILS)
def _special(evidence: Evidence) -> Ruling | None:
    """Inputs are NaN, infinite or extreme, and both sides agree in the reference executor.

    Never: ordinary, exact or given inputs; a crash.
    Trap: `Where` turns -0.0 of its second input into 0.0
    """
    if evidence.case.kind != "special" or evidence.reference.status != "compared":
        return None
    what = f"{evidence.executor} differs before and after on special values"
    sentence = evidence.trial.sentence
    return _not_run(evidence, sentence, Note(what, sentence))


def ruling(evidence: Evidence) -> Ruling:
    """Return the result of a case: the verdict of the table, after the excuses that apply."""
    evidence.bounds.start(evidence.case, evidence.original)
    try:
        return _ruling(evidence)
    except NotMeasured as error:
        return _not_run(evidence, f"how far roundings go could not be measured: {error}")


def _ruling(evidence: Evidence) -> Ruling:
    first = evidence.trial
    applied = Ruling(first, _remarks(evidence))
    if evidence.executor != AUTHORITY:
        applied = replace(applied, disagreements=_disagreements(evidence))
    for excuse in EXCUSES:
        found = excuse.asked(replace(evidence, trial=applied.trial), first)
        if found is not None and excuse.final:
            return replace(found, excuses=(excuse.name,))
        if found is not None:
            applied = replace(
                applied,
                trial=found.trial,
                notes=(*applied.notes, *found.notes),
                excuses=(*applied.excuses, excuse.name),
            )
    if evidence.executor == AUTHORITY:
        return applied
    if first.before.outcome is None and first.after.outcome is not None:
        return crossed(evidence, applied)
    if first.after.failed and evidence.reference.status == "compared":
        which = "both models" if first.before.failed else "the rewritten model"
        example = first.before.failed or first.after.failed
        note = Note(f"{evidence.executor} fails on {which}", example)
        return replace(applied, notes=(*applied.notes, note))
    return applied


def _remarks(evidence: Evidence) -> tuple[Note, ...]:
    """Return notes on the runs that do not depend on the verdict."""
    trial, name = evidence.trial, evidence.executor
    notes = []
    if trial.sentence == KEPT_FROM_ANSWERING:
        notes.append(Note(f"{name} {KEPT_FROM_ANSWERING}", trial.after.failed))
    if trial.before.spared:
        notes.append(Note(f"{name} is not run on inputs like those that crash the original"))
    if name == AUTHORITY and trial.before.unable:
        notes.append(
            Note(f"the {AUTHORITY} executor did not compare these inputs", trial.before.unable)
        )
    if trial.before.outcome is not None and trial.after.unable:
        notes.append(Note(f"{name} runs the original alone", trial.after.unable))
    if evidence.case.kind == "given" and trial.before.failed:
        what = f"the original fails on the {evidence.case.label}"
        notes.append(Note(what, trial.before.failed))
    return tuple(notes)


def _disagreements(evidence: Evidence) -> tuple[Difference, ...]:
    """Return the differences between this executor and the reference executor on the original: one
    of them is wrong."""
    expected, actual = evidence.original, evidence.trial.before.outcome
    if expected is None or actual is None:
        return ()
    sides = (f"in {AUTHORITY}", f"in {evidence.executor}")
    if evidence.case.kind == "special":  # nothing rests on it, so nothing is measured
        return compare(expected, actual, NEAR_ACROSS, sides=sides).differences
    return evidence.agreement(expected, actual, NEAR_ACROSS, sides).comparison.differences


def crossed(evidence: Evidence, applied: Ruling) -> Ruling:
    """A case in which only the rewritten model answers here, against the original in the reference
    executor."""
    original, trial = evidence.reference.before, applied.trial
    actual = trial.after.outcome
    if original.outcome is None or actual is None:
        fails = original.refused or (original.failed and evidence.case.kind == "invalid")
        if fails and not evidence.rules.lenient:
            sentence = f"it answers where the original fails: {original.failed}"
            applied = replace(applied, trial=replace(trial, status="mismatch", sentence=sentence))
        return applied
    sides = (f"before in the {AUTHORITY} executor", "after")
    measure = partial(evidence.agreement, original.outcome, sides=sides, measured_in=AUTHORITY)
    measured = measure(actual, NEAR_ACROSS)
    differences = measured.comparison.differences
    if differences and original.outcome.idle and evidence.reference.status == "compared":
        note = Note(f"{evidence.executor} {_MADE_OF_NOTHING}", differences[0].sentence)
        trial = replace(trial, status="not run", sentence=_MADE_OF_NOTHING)
        return replace(applied, trial=trial, notes=(*applied.notes, note))
    if differences and evidence.reference.status == "compared":
        kept, count = with_nan(original.outcome, original.outcome, actual)
        if count:  # as where the original answers here: see `lost-nan`
            applied = _noted(applied, f"{evidence.executor} makes numbers of NaN", differences)
            measured = measure(kept, NEAR_ACROSS)
            differences = measured.comparison.differences
            if not differences and measured.comparison.elements <= count:
                trial = replace(trial, status="not run", sentence="every element is NaN")
                return replace(applied, trial=trial)
    if differences:
        doubtful = replace(trial, status="not run", sentence=differences[0].sentence)
        return replace(applied, trial=doubtful, doubts=differences)
    found = replace(evidence, trial=trial).but_for("crossed", measured)
    assert found is not None
    return replace(applied, trial=found.trial, notes=(*applied.notes, *found.notes))


def _noted(applied: Ruling, what: str, differences: Sequence[Difference]) -> Ruling:
    note = Note(what, differences[0].sentence)
    return replace(applied, notes=(*applied.notes, note))


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
