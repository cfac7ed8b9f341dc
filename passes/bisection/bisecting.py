"""`bisect`: the first value in which two models differ, in the reference executor or another one,
and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from onnx import ModelProto, ValueInfoProto

from passes.bisection.because import reasons
from passes.bisection.cutting import CannotCutOut, as_model, part_of
from passes.bisection.pairing import NoCommonSignature, Pair, Pairing, aligned
from passes.bisection.result import Bisection, Cut, First, Spot
from passes.bisection.trace import Instance, Run, Trace, trace
from passes.bisection.values import Sieve
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.protos import copied
from passes.session import Source, loaded
from passes.verify.compare.compare import Comparison, compare
from passes.verify.compare.tolerance import NEAR, NEAR_ELSEWHERE, ulp_errors
from passes.verify.compare.trial import AUTHORITY
from passes.verify.compare.verdicts import Failure
from passes.verify.executor import Ended, Executor, Feeds, Outcome, Value
from passes.verify.inputs.arrays import is_float
from passes.verify.inputs.hints import model_hints
from passes.verify.installed import executors
from passes.verify.reference.value_types import type_of
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.verification import verify

#: Bytes of values that are held, by default.
MEMORY = 1 << 30
#: Seconds for the verification of one pair.
_PER_PAIR = 10.0
#: The kinds of cases in which few values are equal by chance.
_TELLING = ("given", "ordinary")


@dataclass(frozen=True)
class Search:
    """The terms of a search: the inputs to try, `given` ones first, the number of `cases`, the
    executor, the time (seconds) and memory (bytes) that it may take, and whether floats must be
    `exact`."""

    given: Sequence[Feeds] = ()
    seed: int = 0
    cases: int | None = None
    executor: str = "both"
    budget: float = 60.0
    memory: int = MEMORY
    exact: bool = False


def bisect(
    before: Source,
    after: Source,
    *,
    inputs: Feeds | None = None,
    seed: int = 0,
    cases: int | None = None,
    executor: str = "both",
    budget: float = 60.0,
    memory: int = MEMORY,
    exact: bool = False,
) -> Bisection:
    """Find the first value in which two models differ that should be equal, and why.

    Both are run on `inputs` (arrays by name), if given, and on drawn ones, at most on so many
    `cases`, until their outputs differ by more than verification allows. Then every value of both
    runs is compared, in every iteration of every loop. `executor`: `reference`, `onnxruntime` or
    `both`. `budget` is in seconds, for finding inputs; `memory` in bytes, for the values that are
    held. `exact`: floats must be equal to the bit.

    Raises:
        BadModel: one of them is no valid model.
        NoExecutor: onnxruntime is asked for, and not installed.
    """
    given = () if inputs is None else (inputs,)
    search = Search(given, seed, cases, executor, budget, memory, exact)
    return bisect_models(loaded(before)[0], loaded(after)[0], search)


def bisect_models(before: Model, after: Model, search: Search) -> Bisection:
    """The same for two models that are loaded."""
    try:
        other = aligned(before.proto, after.proto)
    except NoCommonSignature as error:
        return Bisection("unknown", f"the models have no common signature: {error}")
    with executors(search.executor) as chosen:
        sides = Models(before.proto, other, before.base_dir, after.base_dir)
        inputs = Inputs(search.seed, model_hints(before), search.given, most=search.cases)
        terms = Requirements(
            chosen,
            exact=search.exact,
            inputs=inputs,
            limits=Limits(search.budget),
            portable=search.executor == "both",
        )
        if (plain := _plain_failure(sides, terms)) is not None:
            made = _Bisector(sides, search, chosen, plain).result()
            if made.first is not None:
                return made
        found = verify(sides, terms)
        if found.verdict == "verified":
            return Bisection("agree", f"the models agree: {found.reason}", notes=found.notes)
        if found.failure is None:
            return Bisection("unknown", f"no case could be compared: {found.reason}")
        return _Bisector(sides, search, chosen, found.failure).result()


def _plain_failure(sides: Models, terms: Requirements) -> Failure | None:
    """A case in which the outputs differ by far more than roundings carry, and few values are equal
    by chance; that needs no look at the arithmetic, which takes long."""
    telling = replace(terms.inputs, accept=lambda one: not one.exact and one.kind in _TELLING)
    limits = Limits(min(terms.limits.budget, _PER_PAIR))
    alone = replace(terms, executors=terms.executors[:1], inputs=telling, limits=limits, exact=True)
    failure = verify(sides, alone).failure
    if failure is None or failure.expected is None or failure.actual is None:
        return None
    return None if compare(failure.expected, failure.actual, _GROSS).agree else failure


#: A pair that differs, both sides cut to it, and whether nothing else differs.
_Found = tuple[Pair, Cut | None, bool]


class _Bisector:
    """Two models, and a case in which they differ."""

    def __init__(
        self, sides: Models, search: Search, chosen: Sequence[Executor], failure: Failure
    ) -> None:
        self.sides, self.search, self.chosen = sides, search, chosen
        self.failure = failure
        self.feeds = failure.case.feeds
        self.before = self._traced(sides.before, sides.base_dir)
        self.after = self._traced(sides.after, sides.base_dir_after)
        self.notes: list[str] = []

    def _traced(self, model: ModelProto, base_dir: Path | None) -> Trace:
        return trace(model, self.feeds, base_dir, self.search.memory // 2)

    def result(self) -> Bisection:
        """The result of the search."""
        failure = self.failure
        made = Bisection("differ", failure.sentence, failure.executor, failure.case.label)
        for which, one in (("the original", self.before), ("the other model", self.after)):
            if one.left_out:
                self.notes.append(
                    f"{one.left_out} iterations of {which} were not recorded; --memory is for more"
                )
        if self.before.outcome is None:
            note = f"the original fails in the reference executor: {self.before.why}"
            return replace(made, notes=(note,))
        pairing = Pairing(self.before, self.after, Sieve(self.search.exact))
        found = self._first(pairing) if failure.executor == AUTHORITY else self._elsewhere(pairing)
        if found is None and (failed := self.after.failed) is not None:
            spot = _spot_of(failed)
            first = First(spot, spot, f"it fails: {self.after.why}", None, None, (), False, None)
            return replace(made, first=first, notes=tuple(self.notes))
        if found is None:
            return replace(made, notes=tuple(self.notes))
        pair, cut, alone = found
        if cut is not None:
            cut = self._shown(cut, self.chosen)
        first = First(
            _spot(pair.before),
            _spot(pair.after),
            *_how_far(pair),
            reasons(pair, pairing),
            alone,
            cut,
        )
        last = None if pair.last is None else _spot_of(pair.last)
        return replace(made, last=last, first=first, notes=tuple(self.notes))

    def _first(self, pairing: Pairing) -> _Found | None:
        """The first pair that differs, where its nodes are given the same."""
        doubtful: _Found | None = None
        fed: _Found | None = None
        for pair in pairing.pairs():
            try:
                cut = self._cut(pair, pairing)
            except CannotCutOut:
                if pair.how != "output":
                    continue
                return fed or doubtful or (pair, None, False)
            if not cut.shown:
                if not pair.fed and not pair.weak:
                    pairing.accept(pair)
                continue
            better, alone = self._patched(pair)
            if pair.fed:
                fed = fed or ((pair, cut, alone) if better else None)
            elif better or pair.how in ("operator", "output"):
                return (pair, cut, alone) if fed is None or _is_inside(pair, pairing) else fed
            elif not pair.weak:
                doubtful = doubtful or (pair, cut, alone)
        return fed or doubtful

    def _elsewhere(self, pairing: Pairing) -> _Found | None:
        """The first pair that differs in another executor than the reference executor."""
        name = self.failure.executor
        self.chosen = [one for one in self.chosen if one.name == name]
        self.notes.append(f"the models agree in the reference executor, not in {name}")
        pair = first_elsewhere(self.chosen[0], self.sides, pairing, self.feeds)
        if pair is None:
            self.notes.append(
                f"no value of the main graph is seen to differ in {name} as an output"
            )
            return None
        try:
            return pair, self._cut(pair, pairing), False
        except CannotCutOut:
            return pair, None, False

    def _cut(self, pair: Pair, pairing: Pairing) -> Cut:
        """Both sides of a pair as models that are given what agrees."""
        if pair.before.run is None or pair.after.run is None:
            raise CannotCutOut("it is an input or a constant")
        old = part_of(
            pair.before.run, lambda one: one.digest if pairing.agrees_before(one) else None
        )
        new = part_of(pair.after.run, pairing.key)
        bodies = [
            graph for run in (*old.runs, *new.runs) for _, graph in scoping.subgraphs(run.node)
        ]
        names, inputs = Names({pair.after.name, *scoping.all_names(bodies)}), []
        for key in dict.fromkeys(key for key, _ in (*old.given, *new.given)):
            value = pairing.value_before(key)
            inputs.append((names.fresh(value.name), key, value.value))
        before = as_model(self.before, old, pair.before, inputs, pair.after.name)
        after = as_model(self.after, new, pair.after, inputs, pair.after.name)
        feeds = {name: value for name, _, value in inputs}
        return self._shown(Cut(before, after, feeds, ()), self._wanted())

    def _wanted(self) -> list[Executor]:
        """The executors in which a part is to show the difference, the reference executor first."""
        own = [one for one in self.chosen if one.name == AUTHORITY]
        return own or list(self.chosen)

    def _shown(self, cut: Cut, chosen: Sequence[Executor]) -> Cut:
        """A cut with the executors in which its sides differ by more than verification allows."""
        shown, failure = [], None
        for executor in chosen:
            inputs = Inputs(given=[cut.feeds], most=1)
            terms = Requirements(
                [executor], exact=self.search.exact, inputs=inputs, limits=Limits(_PER_PAIR)
            )
            found = verify(Models(cut.before, cut.after), terms)
            if found.verdict == "mismatch":
                shown.append(executor.name)
                failure = failure or found.failure
            elif len(chosen) > 1:
                how = "cannot be compared" if found.verdict == "not-compared" else "do not differ"
                self.notes.append(f"the parts {how} in {executor.name}: {found.reason}")
        return replace(cut, shown=shown, failure=failure)

    def _patches(self, pair: Pair) -> Iterator[tuple[int, Value]]:
        """Yield the values to put in place of those of the pair's node, in every iteration, by
        serial number."""
        old, new = pair.before.run, pair.after.run
        yield pair.after.serial, pair.before.value
        if old is None or new is None:
            return
        known = {run.at.iterations: run for run in self.before.runs if run.node is old.node}
        for run in self.after.runs:
            against = known.get(run.at.iterations) if run.node is new.node else None
            for one, other in zip(run.makes, against.makes if against else (), strict=False):
                if one is not None and other is not None and other.held:
                    yield one.serial, other.value

    def _patched(self, pair: Pair) -> tuple[bool, bool]:
        """Return whether the models differ less, and whether their outputs agree, where the second
        one computes on with the original's value."""
        assert self.before.outcome is not None
        patches = dict(self._patches(pair))
        patched = trace(
            self.sides.after,
            self.feeds,
            self.sides.base_dir_after,
            self.search.memory // 2,
            patches=patches,
        )
        if patched.outcome is None:
            return False, False
        now = compare(self.before.outcome, patched.outcome, _LOOSE)
        if self.after.outcome is None or now.agree:
            return True, now.agree
        then = compare(self.before.outcome, self.after.outcome, _LOOSE)
        known = {one.digest for one in self.before.instances}
        alike = [
            sum(one.digest in known for one in side.instances if not one.is_trivial)
            for side in (self.after, patched)
        ]
        # what was put in place is one of them
        return _wrong(now) < _wrong(then) or alike[0] + len(patches) < alike[1], False


#: What counts as an agreement of outputs that are computed of the original's values.
_LOOSE = replace(NEAR, units=64.0, floor=1.0)
#: The same for what differs by no more than roundings may carry, perhaps.
_GROSS = replace(NEAR, units=2.0**16, floor=1.0)


def _is_inside(pair: Pair, pairing: Pairing) -> bool:
    """Return whether a pair differs in a body by itself, not by what the loop hands to the body."""
    old, new = pair.before.run, pair.after.run
    if old is None or new is None or new.at.holder is None:
        return False
    known = {one.digest for one in old.reads.values()}
    return not any(one.entry and pairing.key(one) not in known for one in new.reads.values())


def _wrong(comparison: Comparison) -> tuple[int, int]:
    return len(comparison.differences), comparison.wrong


def _spot(one: Instance) -> Spot:
    assert one.run is not None
    return Spot(one.run.path, one.run.at.iterations, one.name)


def _spot_of(run: Run) -> Spot:
    return Spot(run.path, run.at.iterations, next(filter(None, run.node.output), ""))


def _how_far(pair: Pair) -> tuple[str, float | None, float | None]:
    """Return a sentence on the difference of two values, its size in representable numbers, and the
    size allowed."""
    name = pair.after.name
    old, new = pair.before.value, pair.after.value
    found = compare(Outcome({name: old}), Outcome({name: new}), NEAR, sides=("before", "after"))
    if not found.differences:
        return f"{name} differs", None, None
    worst = found.differences[0]
    if worst.index is None or not isinstance(old, np.ndarray) or not is_float(old.dtype):
        return worst.sentence, None, None
    expected, actual = np.asarray(worst.expected), np.asarray(worst.actual)
    if not (np.isfinite(expected) and np.isfinite(actual)):
        return worst.sentence, None, None
    expected = expected.astype(old.dtype)
    allowed = expected + NEAR.allowed(expected).astype(old.dtype)
    return (
        worst.sentence,
        float(ulp_errors(expected, actual.astype(old.dtype)).max()),
        float(ulp_errors(expected, allowed.astype(old.dtype)).max()),
    )


def first_elsewhere(
    executor: Executor, sides: Models, pairing: Pairing, feeds: Feeds
) -> Pair | None:
    """The first values of both main graphs that agree in the reference executor and differ in
    another one, with what they are there; None where that is not seen.

    Each is looked at as one more output: all before the first one are taken to agree.
    """
    pairs = _agreeing(pairing)

    def seen(pair: Pair) -> tuple[Value, Value]:
        return (
            _value(executor, sides.before, sides.base_dir, pair.before, feeds),
            _value(executor, sides.after, sides.base_dir_after, pair.after, feeds),
        )

    def differs(pair: Pair) -> bool:
        old, new = seen(pair)
        return not compare(Outcome({"": old}), Outcome({"": new}), NEAR_ELSEWHERE).agree

    low, high = 0, len(pairs)
    try:
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if differs(pairs[middle]) else (middle + 1, high)
        if low == len(pairs):
            return None
        found = pairs[low]
        for one, value in zip((found.before, found.after), seen(found), strict=True):
            one.stored, one.held = value, True
    except Ended:
        return None
    return found


def _agreeing(pairing: Pairing) -> Sequence[Pair]:
    """The values of the main graphs that agree in the reference executor, in order."""
    for pair in pairing.pairs():
        pairing.accept(pair)
    mains = {one.digest: one for one in pairing.before.instances if _is_main(one)}
    found, last = [], None
    for run in pairing.after.runs:
        for made in run.makes:
            if made is not None and _is_main(made) and made.agreed in mains:
                found.append(Pair(mains[made.agreed], made, "operator", last))
        last = run if run.at.holder is None else last
    return found


def _is_main(one: Instance) -> bool:
    run: Run | None = one.run
    return run is not None and run.at.holder is None and not one.constant


def _value(
    executor: Executor, model: ModelProto, base_dir: Path | None, one: Instance, feeds: Feeds
) -> Value:
    """Return a value of the main graph in an executor."""
    if one.name not in scoping.output_names(model.graph):
        model = copied(model)
        kind = type_of(one.value, shaped=False)
        model.graph.output.append(ValueInfoProto(name=one.name, type=kind))
    return executor.run(model, feeds, base_dir=base_dir).outputs[one.name]
