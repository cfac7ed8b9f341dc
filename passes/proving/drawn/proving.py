"""Proves two models equal at drawn sizes: as terms, else up to the order of summation, else up to
rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from time import monotonic

import numpy as np

from passes.choices import PROOF_BUDGET as BUDGET
from passes.proving.assumptions import AT_SIZES, REORDERED, ROUNDED
from passes.proving.drawn.comparing import MOST_DECISIONS, Found, PairAtSizes, Unequal
from passes.proving.drawn.reals import Reals
from passes.proving.drawn.rounding import USUAL, Rounding
from passes.proving.drawn.symbols import name_of
from passes.proving.families import is_number
from passes.proving.pair import Pair
from passes.proving.terms.arrays import NotProvable
from passes.proving.terms.field import Field, operator
from passes.proving.terms.term import difference, subterms
from passes.reports.proof import Proof, Scope
from passes.verify.compare.tolerance import absolute_errors
from passes.verify.executor import Ended
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
    try:
        compared = PairAtSizes(pair.before, pair.after, end, pair.promises.keeping(pair.before))
        found = compared.run()
        decisions = MOST_DECISIONS if found.is_cut else 0
        stated = compared.covered()
        scope = Scope(
            "terms", tuple(found.draws), decisions, static=stated == (), stated=stated or ()
        )
        assumed = *AT_SIZES, *sorted(found.over_nothing)
        same = Proof("proven", assumed=assumed, paths=found.runs, scope=scope)
        if not found.differing:
            return same
        proof = _regrouped(pair, found, same, end)
    except Unequal as error:
        return Proof("unproven", error.code, error.detail)
    except NotProvable as error:
        return Proof("not-provable", error.code, error.detail)
    return proof if proof.is_proven else _over_reals(pair, found, same, proof, end)


def _regrouped(pair: Pair, found: Found, same: Proof, end: float) -> Proof:
    """The proof up to the order of sums, which executed cases must not contradict, where all but
    the elements is the `same`. Raises NotProvable if the time is used up."""
    field = Field(found.terms.algebra)
    unlike = field.differing([*chain(*found.differing.values())])
    if unlike is not None:
        one, other, _ = difference(*unlike)
        return Proof("unproven", "element", f"{one} before, {other} after")
    before = pair.before
    accept = pair.promises.keeping(before)
    executed = verify(
        Models(before.proto, pair.after.proto, before.base_dir, pair.after.base_dir),
        Requirements(
            [ReferenceExecutor(keep=2)],
            exact=False,
            inputs=Inputs(0, model_hints(before), accept=accept, most=_EXECUTED),
            limits=Limits(max(end - monotonic(), 0.0)),
        ),
    )
    cases = sum(tally["compared"] for tally in executed.tallies.values())
    if executed.verdict != "verified" or not cases:
        return Proof("unproven", "executed", executed.reason or executed.verdict)
    scope = replace(same.scope, method="field", bits=field.bits(found.elements), executed=cases)
    return replace(same, assumed=(*same.assumed, REORDERED), scope=scope)


def _over_reals(pair: Pair, found: Found, same: Proof, narrower: Proof, end: float) -> Proof:
    """The proof up to rounding, with a bound for each output, which no executed case may exceed; if
    there is no identity, the `narrower` one."""
    ranges = pair.promises.ranges
    free = {one.parts[1] for one in found.terms.all if one.op == "elem" and one.parts[0] == "input"}
    if not ranges.keys() <= free:
        other = min(ranges.keys() - free)
        return Proof("not-provable", "input", f"--range: no free input is named {other!r}")
    pairs = [*chain(*found.differing.values())]
    below = [{*subterms(*side)} for side in zip(*pairs, strict=True)]
    values = {one: found.terms.algebra.value(one) for one in below[0] & below[1]}
    shared = frozenset(one for one, value in values.items() if value is None and one.op != "mono")
    whole = frozenset(one for one in shared if "float" not in operator(one)[2])
    for atoms in (shared, whole):  # what both compute alike has no error of its own
        try:
            reals = Reals(found.terms.algebra, atoms)
            if reals.differing(pairs) is not None:
                continue
            rounding = Rounding(found.terms.algebra, reals, ranges, atoms)
            bounds = {name: rounding.error(some) for name, some in found.differing.items()}
        except NotProvable as error:
            narrower = Proof("unproven", error.code, error.detail)
            continue
        exceeding = _exceeding(pair, found, bounds)
        if exceeding:
            return Proof("unproven", "executed", exceeding)
        scope = replace(
            same.scope,
            method="reals",
            bits=reals.bits(found.elements),
            executed=len(found.draws),
            bounds=tuple(bounds.items()),
            ranges=tuple((name, *ends) for name, ends in ranges.items()),
        )
        return replace(same, assumed=(*same.assumed, *ROUNDED), scope=scope)
    return narrower


def _exceeding(pair: Pair, found: Found, bounds: Mapping[str, float]) -> str:
    """An output that differs by more than its bound for some inputs within the ranges; empty if
    none does."""
    executor, source, ranges = (
        ReferenceExecutor(keep=2),
        np.random.default_rng(0),
        pair.promises.ranges,
    )
    for feeds in found.draws.values():
        fed = dict(feeds)
        for name, one in feeds.items():
            if isinstance(one, np.ndarray) and is_number(name_of(one.dtype)):
                drawn = source.uniform(*ranges.get(name, USUAL), one.shape)
                fed[name] = drawn.astype(one.dtype)
        try:
            before = executor.run(pair.before.proto, fed, base_dir=pair.before.base_dir).outputs
            after = executor.run(pair.after.proto, fed, base_dir=pair.after.base_dir).outputs
        except Ended:
            continue
        for name, bound in bounds.items():
            one, other = before[name], after[name]
            if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
                error = absolute_errors(one, other).max(initial=0.0)
                if error > bound:
                    return f"{name!r} differs by {error:.1e}, more than the bound of {bound:.1e}"
    return ""
