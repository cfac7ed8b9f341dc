"""When a case counts as equal, as excused, or as a mismatch: all on one page.

1. The first verdict follows from how the two runs ended (`TABLE`):

| original | rewritten: value | failure | no kernel | time |
|---|---|---|---|---|
| value | compared, or mismatch | mismatch | not run, or mismatch | not run, or mismatch |
| failure | refined, or mismatch | both failed | not run | not run |
| no kernel | not run (crossed) | not run | not run | not run |
| time | not run (crossed) | not run | not run | not run |

A rewritten model that crashes, does not load, does not end or takes all memory is a mismatch.
Where only the rewritten model answers, other executors are compared with the original in the
reference executor (`crossed`).

2. Two answers are compared to a tolerance (`Rules.tolerance`, `tolerance.py`):

| the rewrite | the case | tolerance |
|---|---|---|
| only moves data | any | `BITS` |
| computes | small dyadic numbers, on which the arithmetic is exact | `VALUES` |
| computes | any other, in the reference executor | `NEAR`, and what the user allows |
| computes | any other, in another executor | `NEAR_ELSEWHERE`, and what the user allows |
| any | two executors side by side | `NEAR_ACROSS` |

3. A mismatch is excused by the first of `EXCUSES` that applies (`excuses.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from passes.verify.compare import excuses
from passes.verify.compare.compare import Difference, compare, with_nan
from passes.verify.compare.error_bounds import NotMeasured
from passes.verify.compare.evidence import (
    ANSWERS,
    ANSWERS_OR_FAILS,
    ANY,
    Evidence,
    Excuse,
    Note,
    Question,
    Rules,
    Ruling,
)
from passes.verify.compare.tolerance import NEAR_ACROSS
from passes.verify.compare.trial import AUTHORITY, End, Trial
from passes.verify.executor import CANNOT_LOAD, CRASHED

#: In the order in which they are asked; each gets what the ones before it left.
EXCUSES = (
    Excuse("nothing-scanned", excuses.nothing_scanned, anywhere=True, final=True),
    Excuse("misfed-body", excuses.misfed_body, anywhere=True, final=True),
    Excuse("undeclared-sizes", excuses.undeclared_sizes, anywhere=True, final=True),
    Excuse("idle-scan", excuses.idle_scan, ANSWERS, ANY - ANSWERS, settled=True, final=True),
    Excuse("idle-cell", excuses.idle_cell, ANY, ANSWERS_OR_FAILS, settled=True, final=True),
    Excuse("endless-original", excuses.endless_original, ANY, ANY - ANSWERS_OR_FAILS),
    Excuse("rounding", excuses.rounding, ANSWERS, ANSWERS, anywhere=True),
    Excuse("numbers-for-nan", excuses.numbers_for_nan, ANSWERS, ANSWERS, settled=True),
    Excuse("rounds-otherwise", excuses.rounds_otherwise, ANSWERS, ANSWERS, settled=True),
    Excuse("original-fails", excuses.original_fails, ANY, ANSWERS_OR_FAILS),
    Excuse("own-fault", excuses.own_fault, ANSWERS, ANSWERS, settled=True),
    Excuse("special-values", excuses.special_values, ANY, ANSWERS_OR_FAILS, settled=True),
)

#: The sentence for an executor that loads the original, but not the rewritten model.
NOT_LOADED = "the rewritten model does not load there"
#: A run that takes so many times as long as the original's is taken for one that does not end.
_MUCH_LONGER = 10.0
_OUT_OF_MEMORY = ("Failed to allocate memory", "bad_alloc", "Unable to allocate")
_MISSING_KERNEL = re.compile(r"implementation for \S+?\((\d+)\)")
#: Of its operators every onnxruntime in use has the kernels that it will ever have.
_COMPLETE_OPSET = 21
#: The verdict on a case in which the promise is broken and the rewritten model fails.
KEPT_FROM_ANSWERING = "gives no answer where the promise is broken, or the original fails"
_MADE_OF_NOTHING = "is not certain of what no iteration made"


def first_verdict(question: Question) -> Trial:
    """The verdict of the table."""
    cell = TABLE[question.before.end][question.after.end]
    return replace(cell(question), before=question.before, after=question.after)


def _compared(question: Question) -> Trial:
    before, after = question.before.outcome, question.after.outcome
    assert before is not None
    assert after is not None
    tolerance = question.rules.tolerance(question.executor, question.case, before)
    comparison = compare(before, after, tolerance)
    if comparison.agree:
        return Trial("compared", "", comparison)
    return Trial("mismatch", comparison.differences[0].sentence, comparison)


def _fails(question: Question) -> Trial:
    return Trial("mismatch", f"the rewritten model fails: {question.after.failed}")


def _refined(question: Question) -> Trial:
    """A rewritten model may answer where the original fails, but for guards: on inputs that a Scan
    refuses, or that are drawn invalid. Only the reference executor's failures are the model's."""
    if question.executor != AUTHORITY or question.rules.required.lenient:
        return Trial("not run", f"the original: {question.before.failed}")
    guarded = question.case.kind == "invalid" or question.before.refused
    sentence = f"it answers where the original fails: {question.before.failed}"
    return Trial("mismatch" if guarded else "refined", sentence)


def _both_fail(question: Question) -> Trial:
    return Trial("both failed", question.before.failed)


def _original_alone(question: Question) -> Trial:
    """Only the original runs: a mismatch where the rewrite is to blame.

    It is not where an executor lacks what is newer than itself, or the reference executor a
    kernel.
    """
    before, after = question.before, question.after
    why = after.unable
    quick = before.seconds < question.rules.required.limits.case_timeout / _MUCH_LONGER
    what = ""
    if why.startswith(CRASHED):
        what = "the rewritten model ends it, the original runs"
    elif after.endless and quick and not question.rules.ends:
        what = "the rewritten model does not end, the original does"
    elif any(sign in why for sign in _OUT_OF_MEMORY):
        what = "the rewritten model takes more memory than there is, the original runs"
    elif why.startswith(CANNOT_LOAD) and not _may_lack(question.rules, why):
        what, why = NOT_LOADED, why.removeprefix(f"{CANNOT_LOAD}: ")
    if what:
        return Trial("mismatch", f"{what}: {why}")
    return Trial("not run", f"the rewritten model: {why}")


def _may_lack(rules: Rules, why: str) -> bool:
    """Return whether an executor may have failed only because it lacks a kernel for a newer
    operator, or for one of an older version, or does not know the opset."""
    lacking = _MISSING_KERNEL.search(why)
    complete = lacking and int(lacking[1]) <= _COMPLETE_OPSET and not rules.older
    if complete or not rules.newer:
        return False
    signs = ("NOT_IMPLEMENTED", "Could not find an implementation", "opset", "IR version")
    return any(sign in why for sign in signs)


def _not_run(question: Question) -> Trial:
    side = "the original" if question.before.unable else "the rewritten model"
    return Trial("not run", f"{side}: {question.before.unable or question.after.unable}")


TABLE: Mapping[End, Mapping[End, Callable[[Question], Trial]]] = {
    End.VALUE: {
        End.VALUE: _compared,
        End.FAILURE: _fails,
        End.NO_KERNEL: _original_alone,
        End.TIME: _original_alone,
    },
    End.FAILURE: {
        End.VALUE: _refined,
        End.FAILURE: _both_fail,
        End.NO_KERNEL: _not_run,
        End.TIME: _not_run,
    },
    **{original: dict.fromkeys(End, _not_run) for original in (End.NO_KERNEL, End.TIME)},
}


def ruling(evidence: Evidence) -> Ruling:
    """Return the result of a case: the verdict of the table, after the excuses that apply."""
    evidence.bounds.start(evidence.case, evidence.original)
    try:
        return _ruling(evidence)
    except NotMeasured as error:
        return evidence.not_run(f"how far roundings go could not be measured: {error}")


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
            names = (*applied.excuses, excuse.name)
            applied = replace(applied, trial=found.trial, excuses=names).noted(*found.notes)
    if evidence.executor == AUTHORITY:
        return applied
    if first.before.outcome is None and first.after.outcome is not None:
        return crossed(evidence, applied)
    if first.after.failed and evidence.reference.status == "compared":
        which = "both models" if first.before.failed else "the rewritten model"
        what = f"{evidence.executor} fails on {which}"
        return applied.noted(Note(what, first.before.failed or first.after.failed))
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
        what = f"the {AUTHORITY} executor did not compare these inputs"
        notes.append(Note(what, trial.before.unable))
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
    return evidence.agreement(expected, actual, NEAR_ACROSS, sides).differences


def crossed(evidence: Evidence, applied: Ruling) -> Ruling:
    """A case in which only the rewritten model answers here, against the original in the reference
    executor."""
    original, trial = evidence.reference.before, applied.trial
    actual = trial.after.outcome
    if original.outcome is None or actual is None:
        fails = original.refused or (original.failed and evidence.case.kind == "invalid")
        if fails and not evidence.rules.required.lenient:
            sentence = f"it answers where the original fails: {original.failed}"
            applied = replace(applied, trial=replace(trial, status="mismatch", sentence=sentence))
        return applied
    sides = (f"before in the {AUTHORITY} executor", "after")
    measure = partial(evidence.agreement, original.outcome, sides=sides, measured_in=AUTHORITY)
    measured = measure(actual, NEAR_ACROSS)
    differences = measured.differences
    if differences and original.outcome.idle and evidence.reference.status == "compared":
        note = Note(f"{evidence.executor} {_MADE_OF_NOTHING}", differences[0].sentence)
        trial = replace(trial, status="not run", sentence=_MADE_OF_NOTHING)
        return replace(applied, trial=trial).noted(note)
    if differences and evidence.reference.status == "compared":
        kept, count = with_nan(original.outcome, original.outcome, actual)
        if count:  # as where the original answers here: see `numbers-for-nan`
            what = f"{evidence.executor} makes numbers of NaN"
            applied = applied.noted(Note(what, differences[0].sentence))
            measured = measure(kept, NEAR_ACROSS)
            differences = measured.differences
            if not differences and measured.elements <= count:
                trial = replace(trial, status="not run", sentence="every element is NaN")
                return replace(applied, trial=trial)
    if differences:
        doubtful = replace(trial, status="not run", sentence=differences[0].sentence)
        return replace(applied, trial=doubtful, doubts=differences)
    found = replace(evidence, trial=trial).but_for("crossed", measured)
    assert found is not None
    return replace(applied, trial=found.trial).noted(*found.notes)
