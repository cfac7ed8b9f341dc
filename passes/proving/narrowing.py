"""The widest proof of a pair that is found: for all inputs, else for stated sizes, else at drawn
ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, product, takewhile
from time import monotonic

from passes.choices import PROOF_BUDGET, Executors, ProofScope
from passes.ir.model import Model
from passes.proving.clues import Numbers, Unknown, cases_of, written
from passes.proving.drawn.proving import prove_at_sizes
from passes.proving.pair import NoPair, Pair
from passes.proving.promises import NO_PROMISES, Promises
from passes.proving.prover import Attempt, attempt
from passes.reports.proof import Proof, Scope, Stated
from passes.verify.compare.ledger import in_short
from passes.verify.executor import Feeds
from passes.verify.inputs.hints import model_hints
from passes.verify.installed import executors
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.verification import verify

#: The shares of the budget for the proof for all sizes and for stated ones; what is left is for
#: drawn ones.
_FOR_ALL, _STATED = 0.5, 0.15
#: The value at which sizes are fixed to see whether that helps.
_TRIED = 2
#: The last values of the ranges that are proven, one after the other.
_LAST = (4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Executing:
    """The way to execute models that are not proven equal: `budget` in seconds, `given` inputs come
    first."""

    executor: str = Executors.both
    budget: float = 60.0
    seed: int = 0
    given: Sequence[Feeds] = ()


def prove(
    before: Model,
    after: Model,
    budget: float = PROOF_BUDGET,
    promises: Promises = NO_PROMISES,
    executing: Executing | None = None,
) -> Attempt:
    """Prove within `budget` seconds that `after` answers as `before` wherever that answers and the
    promises are kept.

    Where there is no proof for all sizes, both are executed, if it is known how: on inputs on which
    what was not proven depends, and on drawn ones. Only if no difference is found, narrower proofs
    are tried.

    Raises:
        NoExecutor: only onnxruntime was requested, and it is not installed.
    """
    try:
        found = _narrowed(Pair.of(before, after, promises), budget, executing)
    except NoPair as error:
        found = Attempt(error.proof)
    return replace(found, proof=replace(found.proof, promised=tuple(promises.sentences())))


def _narrowed(pair: Pair, budget: float, executing: Executing | None) -> Attempt:
    """The widest proof of a pair, or the obstacle to one for all sizes."""
    begin = monotonic()
    found = attempt(pair, budget * _FOR_ALL)
    if found.proof.is_proven or found.proof.code == "promise":
        return found
    left = budget - (monotonic() - begin)
    if executing is not None:
        found = executed(pair, found, executing)
        if found.failure is not None:
            return found
    if found.narrower is not None:
        return replace(found, proof=found.narrower)
    end = monotonic() + left
    drawn = prove_at_sizes(pair, left) if pair.is_static else None
    if drawn is None or drawn.kind != ProofScope.all:
        stated = _at_stated_sizes(pair, found, monotonic() + budget * _STATED)
        if stated is not None:
            return replace(found, proof=stated)
        drawn = drawn or prove_at_sizes(pair, end - monotonic())
    if drawn.is_proven:
        return replace(found, proof=drawn)
    return replace(found, proof=replace(found.proof, at_sizes=f"{drawn.code}: {drawn.detail}"))


def executed(pair: Pair, found: Attempt, executing: Executing) -> Attempt:
    """What was found, or that inputs on which it depends disprove it.

    Raises:
        NoExecutor: only onnxruntime was requested, and it is not installed.
    """
    before, after, promises = pair.before, pair.after, pair.promises
    sought = cases_of(before.proto, found.clues, executing.seed)
    hints = model_hints(before)
    with executors(executing.executor) as chosen:
        executed = verify(
            Models(before.proto, after.proto, before.base_dir, after.base_dir),
            Requirements(
                chosen,
                exact=False,
                lenient=True,
                non_empty=promises.non_empty,
                inputs=Inputs(
                    executing.seed, hints, executing.given, sought, promises.keeping(before)
                ),
                limits=Limits(executing.budget),
                portable=executing.executor == "both",
            ),
        )
    if executed.verdict != "mismatch" or executed.failure is None:
        return found
    feeds = executed.failure.case.feeds
    proof = replace(
        found.proof,
        verdict="disproven",
        code="mismatch",
        detail=executed.reason,
        inputs=tuple(in_short(*one) for one in feeds.items()),
    )
    return replace(found, proof=proof, failure=executed.failure)


# -- stated sizes


def _at_stated_sizes(pair: Pair, found: Attempt, end: float) -> Proof | None:
    """The proof for ranges of sizes, first of those on which the obstacle depends; None if none is
    found by `end`."""
    proofs, asked = _Proofs(pair, end), found.clues.unknowns()
    free = sorted(pair.unknowns(), key=lambda one: one not in asked)
    for names in chain(combinations(free, 1), combinations(free, 2)):
        if monotonic() > end:
            break
        helps = proofs.at(dict.fromkeys(names, _TRIED)).proof.is_proven
        if helps and (widest := proofs.widest(names)) is not None:
            return widest
    return None


@dataclass
class _Proofs:
    """Proofs of a pair at fixed sizes, each for all others, until `end`."""

    pair: Pair
    end: float
    found: dict[frozenset[tuple[Unknown, int]], Attempt] = field(default_factory=dict)

    def at(self, fixed: Numbers) -> Attempt:
        """What is found for these sizes."""
        key = frozenset(fixed.items())
        if key not in self.found:
            self.found[key] = attempt(replace(self.pair, fixed=fixed), self.end - monotonic())
        return self.found[key]

    def widest(self, names: Sequence[Unknown]) -> Proof | None:
        """The proof for the widest range of these that is found; only one of sizes may begin at
        1."""
        for begin in range(1 + all(kind == "dim" for kind, _ in names)):
            ranges = (dict.fromkeys(names, range(begin, last + 1)) for last in _LAST)
            wider = [*takewhile(lambda one: one is not None, map(self.within, ranges))]
            if wider:
                return wider[-1]
        return None

    def within(self, ranges: Mapping[Unknown, range]) -> Proof | None:
        """The proof for all values in these ranges; None if one of them is not proven, or the
        original is not known to answer at any of them."""
        proofs, answers = list[Proof](), False
        for values in product(*ranges.values()):
            tried = self.at(dict(zip(ranges, values, strict=True)))
            if not tried.proof.is_proven:
                return None
            proofs.append(tried.proof)
            answers |= tried.answers
        stated = [Stated(written(name), one.start, one.stop - 1) for name, one in ranges.items()]
        proof = Proof(
            "proven",
            assumed=tuple(dict.fromkeys(line for one in proofs for line in one.assumed)),
            paths=sum(one.paths for one in proofs),
            scope=Scope(regrouped=any(one.scope.regrouped for one in proofs), stated=tuple(stated)),
        )
        return proof if answers else None


def prove_stated(pair: Pair, stated: Sequence[Stated], budget: float) -> Proof | None:
    """The proof for these ranges of sizes; None if there is none, or no search states such ones."""
    free = {written(one): one for one in pair.unknowns()}
    ranges = {free[one.name]: one.values for one in stated if one.name in free}
    if len(ranges) < len(stated) or not all(one.last in _LAST and one.first >= 0 for one in stated):
        return None
    return _Proofs(pair, monotonic() + budget).within(ranges)
