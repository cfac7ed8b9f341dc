"""Proves two models equal at drawn sizes: as terms, else up to the order of summation, else up to
rounding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from time import monotonic

from passes.choices import PROOF_BUDGET as BUDGET
from passes.ir.model import Model
from passes.proving.assumptions import AT_SIZES, REORDERED, ROUNDED
from passes.proving.drawn.comparing import MOST_DECISIONS, Found, PairAtSizes, Unequal
from passes.proving.drawn.field import Field
from passes.proving.drawn.reals import Reals
from passes.proving.drawn.rounding import Ranges, Rounding
from passes.proving.drawn.symbols import NotShown
from passes.proving.promises import NO_PROMISES, Promises
from passes.reports.proof import Proof, Scope
from passes.verify.inputs.drawer import Case
from passes.verify.inputs.hints import model_hints
from passes.verify.reference import ReferenceExecutor
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.verification import verify

#: The codes for which drawn sizes are of no use.
SETTLED = frozenset({"signature", "model", "promise"})
#: Cases that are executed where sums are in another order.
_EXECUTED = 14


def at_sizes(
    before: Model,
    after: Model,
    proof: Proof,
    budget: float = BUDGET,
    promises: Promises = NO_PROMISES,
) -> Proof:
    """`proof` if it holds for all sizes, else that at drawn sizes; if there is none, `proof` with
    why."""
    if proof.is_proven or proof.code in SETTLED:
        return proof
    found = prove_at_sizes(before, after, budget, promises)
    if found.is_proven:
        return replace(found, promised=proof.promised)
    return replace(proof, at_sizes=f"{found.code}: {found.detail}")


def prove_at_sizes(
    before: Model, after: Model, budget: float = BUDGET, promises: Promises = NO_PROMISES
) -> Proof:
    """Prove that two models of one signature answer alike at drawn sizes, for all floats, wherever
    the promises are kept.

    The `budget` is in seconds.
    """
    before, after = promises.applied(before, after)
    keep = promises.keeping(before)
    try:
        found = PairAtSizes(before, after, monotonic() + budget, keep).run()
    except Unequal as error:
        return Proof("unproven", error.code, str(error))
    except NotShown as error:
        return Proof("not-provable", error.code, str(error))
    decisions = MOST_DECISIONS if found.is_cut else 0
    scope = Scope("terms", tuple(found.draws), decisions)
    if not found.differing:
        return Proof("proven", assumed=_assumed(found), paths=found.runs, scope=scope)
    proof = _regrouped((before, after), found, scope, budget, keep)
    end = monotonic() + budget
    return proof if proof.is_proven else _over_reals(found, scope, proof, promises.ranges, end)


def _assumed(found: Found) -> tuple[str, ...]:
    return (*AT_SIZES, *sorted(found.over_nothing))


def _regrouped(
    models: tuple[Model, Model],
    found: Found,
    scope: Scope,
    budget: float,
    keep: Callable[[Case], bool] | None,
) -> Proof:
    """The proof up to the order of sums, which executed cases must not contradict."""
    field = Field(found.terms)
    unlike = field.differing([*chain(*found.differing.values())])
    if unlike is not None:
        one, other = map(found.terms.written, unlike)
        return Proof("unproven", "element", f"{one} before, {other} after")
    before, after = models
    executed = verify(
        Models(before.proto, after.proto, before.base_dir, after.base_dir),
        Requirements(
            [ReferenceExecutor(keep=2)],
            exact=False,
            inputs=Inputs(0, model_hints(before), accept=keep, most=_EXECUTED),
            limits=Limits(budget),
        ),
    )
    cases = sum(tally["compared"] for tally in executed.tallies.values())
    if executed.verdict != "verified" or not cases:
        return Proof("unproven", "executed", executed.reason or executed.verdict)
    scope = replace(scope, method="field", bits=field.bits(found.elements), executed=cases)
    return Proof("proven", assumed=(*_assumed(found), REORDERED), paths=found.runs, scope=scope)


def _over_reals(found: Found, scope: Scope, narrower: Proof, ranges: Ranges, end: float) -> Proof:
    """The proof up to rounding, with a bound for each output; if there is no identity, the
    `narrower` one."""
    named = (one.data for one in found.terms.all if one.op == "input")
    free = {data[0] for data in named if isinstance(data, tuple)}
    if not ranges.keys() <= free:
        other = min(ranges.keys() - free)
        return Proof("not-provable", "input", f"--range: no free input is named {other!r}")
    pairs = [*chain(*found.differing.values())]
    sides = [frozenset(found.terms.below(side)) for side in zip(*pairs, strict=True)]
    shared = sides[0] & sides[1]
    whole = {one for one in shared if "float" not in found.terms.all[one].dtype}
    why = ""
    for atoms in (shared, frozenset(whole)):  # what both compute alike has no error of its own
        try:
            reals = Reals(found.terms, atoms, end)
            if reals.differing(pairs) is not None:
                continue
            rounding = Rounding(found.terms, reals, ranges, atoms)
            bounds = tuple((name, rounding.error(some)) for name, some in found.differing.items())
        except NotShown as error:
            why = str(error)
            continue
        inputs = tuple((name, *one) for name, one in ranges.items())
        bits = reals.bits(found.elements)
        scope = replace(scope, method="reals", bits=bits, bounds=bounds, ranges=inputs)
        return Proof("proven", assumed=(*_assumed(found), *ROUNDED), paths=found.runs, scope=scope)
    return Proof("unproven", "rounding", why) if why else narrower
