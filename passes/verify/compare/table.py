"""The verdict on one case in one executor, by how its two runs ended.

| original | rewritten: value | failure | no kernel | time |
|---|---|---|---|---|
| value | compared, or mismatch | mismatch | not run, or mismatch | not run, or mismatch |
| failure | refined, or mismatch | both failed | not run | not run |
| no kernel | not run (crossed) | not run | not run | not run |
| time | not run (crossed) | not run | not run | not run |

A rewritten model that crashes, does not load, does not end or takes all memory is a mismatch.
Where only the rewritten model answers, other executors are compared with the original in the
reference executor (`excuses.crossed`). What the table calls a mismatch may be excused: see
`excuses.EXCUSES`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from passes.verify.compare.compare import compare
from passes.verify.compare.strictness import Strictness
from passes.verify.compare.trial import AUTHORITY, End, Ran, Trial
from passes.verify.executor import CANNOT_LOAD, CRASHED
from passes.verify.inputs.draw import Case

#: The sentence for an executor that loads the original, but not the rewritten model.
NOT_LOADED = "the rewritten model does not load there"
#: A run that takes so many times as long as the original's is taken for one that does not end.
_MUCH_LONGER = 10.0
_OUT_OF_MEMORY = ("Failed to allocate memory", "bad_alloc", "Unable to allocate")
_MISSING_KERNEL = re.compile(r"implementation for \S+?\((\d+)\)")
#: Of its operators every onnxruntime in use has the kernels that it will ever have.
_COMPLETE_OPSET = 21


@dataclass(frozen=True)
class Rules:
    """The terms that hold for all cases of a verification.

    `case_timeout`: seconds that one run may take. `lenient`: inputs on which the original fails
    are taken not to occur. `non_empty`: the user promised that Scans have something to scan.
    `newer`: the rewritten model is of another opset or IR version, which an executor need not know;
    `older`: of an older opset, for which it need not have kernels. `ends`: it has no Loop, so that
    it ends, however long it takes. `portable`: it is for no executor in particular.
    """

    strictness: Strictness
    case_timeout: float
    lenient: bool = False
    non_empty: bool = False
    newer: bool = False
    older: bool = False
    ends: bool = False
    portable: bool = False


@dataclass(frozen=True)
class Question:
    """Two runs of one case in one executor."""

    rules: Rules
    executor: str
    case: Case
    before: Ran
    after: Ran


def first_verdict(question: Question) -> Trial:
    """The verdict of the table."""
    cell = TABLE[question.before.end][question.after.end]
    return replace(cell(question), before=question.before, after=question.after)


def _compared(question: Question) -> Trial:
    before, after = question.before.outcome, question.after.outcome
    assert before is not None
    assert after is not None
    strictness = question.rules.strictness
    tolerance = strictness.tolerance(question.executor, question.case, before)
    comparison = compare(before, after, tolerance)
    if comparison.agree:
        return Trial("compared", "", comparison)
    return Trial("mismatch", comparison.differences[0].sentence, comparison)


def _fails(question: Question) -> Trial:
    return Trial("mismatch", f"the rewritten model fails: {question.after.failed}")


def _refined(question: Question) -> Trial:
    """A rewritten model may answer where the original fails, but for guards: on inputs that a Scan
    refuses, or that are drawn invalid. Only the reference executor's failures are the model's."""
    if question.executor != AUTHORITY or question.rules.lenient:
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
    quick = before.seconds < question.rules.case_timeout / _MUCH_LONGER
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
