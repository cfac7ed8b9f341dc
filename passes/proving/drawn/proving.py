"""Proves two models equal at drawn sizes: as terms, else up to the order of summation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic

from passes.choices import PROOF_BUDGET as BUDGET
from passes.proving.assumptions import AT_SIZES, REORDERED
from passes.proving.drawn.comparing import MOST_DECISIONS, Found, PairAtSizes, Unequal
from passes.proving.drawn.field import Field
from passes.proving.pair import Pair
from passes.proving.terms.arrays import NotProvable
from passes.proving.terms.term import difference
from passes.reports.proof import Proof, Scope
from passes.verify.inputs.drawer import Case
from passes.verify.inputs.hints import model_hints
from passes.verify.reference import ReferenceExecutor
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.verification import verify

#: Cases that are executed where sums are in another order.
_EXECUTED = 14


def prove_at_sizes(pair: Pair, budget: float = BUDGET) -> Proof:
    """Prove that a pair answers alike at drawn sizes, for all floats, wherever the promises are
    kept.

    The `budget` is in seconds.
    """
    end = monotonic() + budget
    keep = pair.promises.keeping(pair.before)
    try:
        compared = PairAtSizes(pair.before, pair.after, end, keep)
        found = compared.run()
    except Unequal as error:
        return Proof("unproven", error.code, error.detail)
    except NotProvable as error:
        return Proof("not-provable", error.code, error.detail)
    decisions = MOST_DECISIONS if found.is_cut else 0
    stated = compared.covered()
    scope = Scope("terms", tuple(found.draws), decisions, static=stated == (), stated=stated or ())
    if not found.differing:
        return Proof("proven", assumed=_assumed(found), paths=found.runs, scope=scope)
    return _regrouped(pair, found, scope, end, keep)


def _assumed(found: Found) -> tuple[str, ...]:
    return (*AT_SIZES, *sorted(found.over_nothing))


def _regrouped(
    pair: Pair,
    found: Found,
    scope: Scope,
    end: float,
    keep: Callable[[Case], bool] | None,
) -> Proof:
    """The proof up to the order of sums, which executed cases must not contradict."""
    field = Field(found.terms)
    unlike = field.differing(found.differing)
    if unlike is not None:
        one, other, _ = difference(*unlike)
        return Proof("unproven", "element", f"{one} before, {other} after")
    before = pair.before
    executed = verify(
        Models(before.proto, pair.after.proto, before.base_dir, pair.after.base_dir),
        Requirements(
            [ReferenceExecutor(keep=2)],
            exact=False,
            inputs=Inputs(0, model_hints(before), accept=keep, most=_EXECUTED),
            limits=Limits(max(end - monotonic(), 0.0)),
        ),
    )
    cases = sum(tally["compared"] for tally in executed.tallies.values())
    if executed.verdict != "verified" or not cases:
        return Proof("unproven", "executed", executed.reason or executed.verdict)
    scope = replace(scope, method="field", bits=field.bits(found.elements), executed=cases)
    return Proof("proven", assumed=(*_assumed(found), REORDERED), paths=found.runs, scope=scope)
