"""The widest proof of a pair that is found: for all inputs, else for stated sizes, else at drawn
ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import monotonic

from passes.choices import PROOF_BUDGET, Executors, ProofScope
from passes.ir.model import Model
from passes.proving.clues import NO_CLUES, Numbers, Unknown, cases_of, written
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

#: The shares of the budget for the proof for all sizes, for stated ones, and for more than the
#: first of their ranges; what is left is for drawn sizes.
_FOR_ALL, _STATED, _WIDENED = 0.6, 0.2, 0.1
#: Codes of what no size changes.
_AT_ANY_SIZE = frozenset({"function", "input", "opset", "random", "sparse"})
#: The value at which a size is fixed to see whether that helps, and how many are at most.
_TRIED, _MOST_FIXED = 2, 3
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
    end = monotonic() + left
    drawn = prove_at_sizes(pair, left) if pair.is_static else None
    if drawn is None or drawn.kind != ProofScope.all:
        stated = _at_stated_sizes(pair, found, budget)
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


def _at_stated_sizes(pair: Pair, found: Attempt, budget: float) -> Proof | None:
    """The proof for ranges of the sizes on which an obstacle depends; None if there is none."""
    begin, clues, fixed = monotonic(), found.clues, dict[Unknown, int]()
    proofs = _Proofs(pair, begin + budget * _STATED)
    free = [] if found.proof.code in _AT_ANY_SIZE else pair.unknowns()
    while len(fixed) < min(len(free), _MOST_FIXED):
        asked = clues.unknowns()
        ends: dict[Unknown, Attempt] = {}
        for one in sorted(free, key=lambda one: (one not in asked, free.index(one))):
            if one in fixed:
                continue
            if monotonic() > proofs.end:
                return None
            ends[one] = proofs.at({**fixed, one: _TRIED})
            if ends[one].proof.is_proven:
                stated = proofs.widest([*fixed, one], budget * _WIDENED)
                if stated is not None:
                    return stated
        first = next(iter(ends))
        fixed[first], clues = _TRIED, ends[first].clues
    return None


@dataclass
class _Proofs:
    """Proofs of a pair at fixed sizes, each for all others, until `end`."""

    pair: Pair
    end: float

    def at(self, fixed: Numbers) -> Attempt:
        """What is found for these sizes."""
        return attempt(replace(self.pair, fixed=fixed), self.end - monotonic())

    def widest(self, names: Sequence[Unknown], seconds: float) -> Proof | None:
        """The proof for the widest range of values of these that is found; beyond the first one it
        is sought for so long."""
        tried = dict.fromkeys(names, _TRIED)
        begins = [
            int(one[0] == "dim" and not self.at({**tried, one: 0}).proof.is_proven) for one in names
        ]
        found, widest = dict[tuple[int, ...], Attempt](), None
        for last in _LAST:
            ranges = {
                name: range(begin, last + 1) for name, begin in zip(names, begins, strict=True)
            }
            wider = self.within(ranges, found)
            if wider is None:
                break
            if widest is None:
                self.end = min(self.end, monotonic() + seconds)
            widest = wider
        return widest

    def within(
        self, ranges: Mapping[Unknown, range], found: dict[tuple[int, ...], Attempt]
    ) -> Proof | None:
        """The proof for all values in these ranges, some of which are `found`; None if one of them
        is not proven, or the original is not known to answer at any of them."""
        for values in product(*ranges.values()):
            if values not in found:
                tried = self.at(dict(zip(ranges, values, strict=True)))
                found[values] = replace(tried, clues=NO_CLUES, choices=None)
            if not found[values].proof.is_proven:
                return None
        if not any(one.answers for one in found.values()):
            return None
        proofs = [one.proof for one in found.values()]
        regrouped = any(one.scope.regrouped for one in proofs)
        stated = [Stated(written(name), one[0], one[-1]) for name, one in ranges.items()]
        return Proof(
            "proven",
            assumed=tuple(dict.fromkeys(line for one in proofs for line in one.assumed)),
            paths=sum(one.paths for one in proofs),
            scope=Scope(regrouped=regrouped, stated=tuple(stated)),
        )


def prove_stated(pair: Pair, stated: Sequence[Stated], budget: float) -> Proof | None:
    """The proof for these ranges of sizes; None if there is none, or no search states such ones."""
    free = {written(one): one for one in pair.unknowns()}
    ranges = {free[one.name]: one.values for one in stated if one.name in free}
    if len(ranges) < len(stated) or not all(one.last in _LAST and one.first >= 0 for one in stated):
        return None
    return _Proofs(pair, monotonic() + budget).within(ranges, {})
