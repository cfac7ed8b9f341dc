"""The excuses for a mismatch: each names its case, and what it never excuses.

A verdict is excused where it rests on a fault of the executor, or on what roundings decide, and not
on the rewrite. `table.EXCUSES` lists them, in the order in which they are asked, with what has to
hold for each.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from passes.verify.compare.compare import Comparison, compare, with_nan
from passes.verify.compare.evidence import Evidence, Note, Ruling
from passes.verify.compare.tolerance import NEAR_ACROSS, NEAR_ELSEWHERE
from passes.verify.compare.trial import Ran
from passes.verify.executor import Outcome, Value

_NOTHING_TO_RUN = "fails on a Scan over nothing; on the original's it gives no certain answer"


def _ruled_out(evidence: Evidence, why: str) -> Ruling:
    """A case that a promise of the user, or of the model, rules out."""
    note = Note(f"{evidence.executor} differs where {why}", evidence.trial.sentence)
    return evidence.not_run(why, *((note,) if evidence.trial.status == "mismatch" else ()))


def nothing_scanned(evidence: Evidence) -> Ruling | None:
    """--assume non-empty, and a Scan of the original, maybe an inner one, has nothing to scan.

    Never: a case in which every Scan has something to scan.
    """
    original = evidence.original
    if original is None or not (evidence.rules.required.non_empty and original.idle_scan):
        return None
    return _ruled_out(evidence, "a Scan has nothing to scan, which was assumed not to be")


def misfed_body(evidence: Evidence) -> Ruling | None:
    """A loop runs no iteration, and its body declares other sizes than it is fed or gives.

    Never: a loop that runs an iteration.
    """
    if evidence.original is None or not evidence.original.misfed:
        return None
    why = "the body of a loop without iterations declares other sizes than it is fed or gives"
    return _ruled_out(evidence, why)


def undeclared_sizes(evidence: Evidence) -> Ruling | None:
    """A body returns other sizes than it declares, and the rewritten model fails.

    Never: a rewritten model that answers both here and in the reference executor.
    """
    fails = evidence.trial.after.outcome is None or evidence.reference.after.failed
    if evidence.original is None or not (evidence.original.undeclared and fails):
        return None
    return _ruled_out(evidence, "a loop's body returns other sizes than it declares")


def idle_scan(evidence: Evidence) -> Ruling | None:
    """The rewritten model fails on a Scan over nothing; the original's Scan has nothing either, or
    the models are compared for no runtime in particular, where the same holds of RNN, GRU and LSTM.

    Never: an answer, a Loop, or a side that the reference executor did not find equal.
    Trap: A Scan over nothing fails, or ends the process
    """
    new, after = evidence.reference.after.outcome, evidence.trial.after
    idle = evidence.right.idle_scan
    its_own = evidence.rules.required.portable and new and (new.idle_scan or new.idle_cell)
    if not (idle or its_own):
        return None
    why = _NOTHING_TO_RUN if idle else "fails where nothing is to be computed"
    return evidence.not_run(why, Note(f"{evidence.executor} {why}", after.failed or after.unable))


def idle_cell(evidence: Evidence) -> Ruling | None:
    """An RNN, GRU or LSTM of the original reads no element: the states are what memory held.

    Never: a crash, or a side that the reference executor did not find equal.
    Trap: LSTM and RNN over no time steps leave final states uninitialised
    """
    if not evidence.right.idle_cell:
        return None
    return _ruled_out(evidence, "a recurrent operator has no time steps or rows")


def endless_original(evidence: Evidence) -> Ruling | None:
    """The original does not end in the reference executor: here a dead loop is left out.

    Never: an original that ends there.
    Trap: A dead node may be left out
    """
    if not evidence.reference.before.endless:
        return None
    return evidence.not_run(f"the rewritten model: {evidence.trial.after.unable}")


def rounding(evidence: Evidence) -> Ruling | None:
    """The original moves as far when its arithmetic is perturbed.

    Never: bits that must be equal, or an infinity that no perturbed run changes.
    """
    expected, actual = evidence.both
    if not evidence.rules.may_round(evidence.case, expected):
        return None
    found = evidence.agreement(expected, actual, evidence.tolerance)
    return evidence.but_for("compared", found)


def numbers_for_nan(evidence: Evidence) -> Ruling | None:
    """An element is NaN before and after in the reference executor, and a number here.

    Never: an element that is a number in the reference executor.
    Trap: LSTM and GRU turn a NaN in their inputs into a number
    """
    expected, actual = evidence.both
    outcome, count = with_nan(evidence.right, expected, actual)
    if not count:
        return None
    note = Note(f"{evidence.executor} makes numbers of NaN", evidence.trial.sentence)
    comparison = compare(expected, outcome, evidence.tolerance)
    if not comparison.agree:  # the other excuses are asked about what is left
        sentence = comparison.differences[0].sentence
        left = replace(evidence.trial, sentence=sentence, comparison=comparison, after=Ran(outcome))
        return Ruling(left, (note,))
    comparison = replace(comparison, undecided=count)
    return evidence.agreed("compared", comparison, "every element is NaN", note)


def rounds_otherwise(evidence: Evidence) -> Ruling | None:
    """Bits are equal in the reference executor, and near here.

    Never: a case in which the reference executor found no equal bits.
    """
    if not evidence.rules.required.exact:
        return None
    found = evidence.agreement(*evidence.both, NEAR_ELSEWHERE)
    near = evidence.but_for("compared", found)
    if near is None or found.undecided:
        return near
    note = Note(f"{evidence.executor} rounds differently before and after", evidence.trial.sentence)
    return near.noted(note)


def original_fails(evidence: Evidence) -> Ruling | None:
    """Both sides fail in the reference executor, and one answers here.

    Never: a crash, or a model that does not load.
    Trap: A dead node may be left out, also one that fails
    """
    if evidence.reference.status != "both failed":
        return None
    why = evidence.reference.sentence
    return evidence.not_run(why, Note(f"{evidence.executor} answers where the original fails", why))


def own_fault(evidence: Evidence) -> Ruling | None:
    """This executor is wrong on the original, and right on the rewritten model.

    Never: an output in which it is right on the original, or wrong after (but for strings).
    Trap: its memory is uninitialised
    """
    right, (wrong, after) = evidence.right, evidence.both
    differing = _outputs(evidence.agreement(wrong, after, evidence.tolerance), wrong)
    before = evidence.agreement(right, wrong, NEAR_ACROSS)
    after, lost = with_nan(right, right, after)  # see `numbers_for_nan`
    at_fault, as_it_is = (
        _outputs(compare(right, given, NEAR_ACROSS), right) for given in (wrong, after)
    )
    if not differing <= _outputs(before, right) | at_fault - as_it_is:
        return None
    found = _outputs(evidence.agreement(right, after, NEAR_ACROSS), right)
    if any(not _holds_strings(right.outputs[name]) for name in differing & found):
        return None
    what = "after, too" if differing & found else "right after"
    note = Note(f"{evidence.executor} is wrong on the original, {what}", evidence.trial.sentence)
    kept = set(right.outputs) - found
    if not kept:
        return evidence.not_run("it loses strings in the original's loops, too", note)
    comparison = compare(_only(right, kept), _only(after, kept), NEAR_ACROSS)
    comparison = replace(comparison, undecided=lost)
    return evidence.agreed("crossed", comparison, "every element is NaN", note)


def special_values(evidence: Evidence) -> Ruling | None:
    """Inputs are NaN, infinite or extreme, and both sides agree in the reference executor.

    Never: ordinary, exact or given inputs; a crash.
    Trap: `Where` turns -0.0 of its second input into 0.0
    """
    if evidence.case.kind != "special":
        return None
    what = f"{evidence.executor} differs before and after on special values"
    sentence = evidence.trial.sentence
    return evidence.not_run(sentence, Note(what, sentence))


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
