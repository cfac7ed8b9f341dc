"""Verifies what a session did: each rewritten region, equal ones once, then the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from onnx import ModelProto, NodeProto

from passes.choices import Verifying
from passes.engine.full_check import Blamed, blamed
from passes.engine.region import CannotCut, Region, cut
from passes.engine.rounds import Rewritten, Round
from passes.errors import Disagreement
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.reports.report import Checked
from passes.rule import Limit
from passes.types.signature import inputs as signature_inputs
from passes.verify.compare.table import NOT_LOADED
from passes.verify.compare.verdicts import Verification
from passes.verify.executor import CANNOT_LOAD, CRASHED, CannotRun, Event, Executor, Feeds
from passes.verify.inputs.drawer import Case, Drawer
from passes.verify.inputs.hints import hints_for, model_hints
from passes.verify.inputs.lessons import Lessons
from passes.verify.installed import executors, is_runtime
from passes.verify.reference import ReferenceExecutor
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.rewrites.assumptions import NON_EMPTY, VALID_INPUTS, accepting
from passes.verify.rewrites.observe import Seen, key_of, observe
from passes.verify.rewrites.promises import (
    Seeker,
    is_promised,
    position_in_region,
    promise_of,
    promise_of_model,
    promised_in,
    with_check,
)
from passes.verify.rewrites.uses import Uses
from passes.verify.rewrites.weight_file import WeightFile
from passes.verify.runtimes.comparing import Compared, compared
from passes.verify.verification import verify

#: The part of the budget that regions may take; the whole model gets the rest.
_FOR_REGIONS = 0.5
#: The part that one run of a case may take.
_FOR_ONE_RUN = 1 / 6
#: Seconds that one run may take to see what the sites of a round get; two runs' worth is spent.
_OBSERVING = 5.0
#: Seconds that loading the outcome may take, if no budget is left.
_LOADING = 10.0
#: The whole model runs about this many nodes on each side and executor, in a few cases at least.
_MOST_NODES = 20_000
_FEWEST_CASES = 6
#: What a region counts for beside its nodes, where time is shared.
_OWN_WEIGHT = 8


#: What was found on regions, by their identity.
KnownVerifications = dict[tuple[object, ...], Verification]


@dataclass
class Verdicts:
    """The results of verification: a verdict per rewrite, in order, and one for the whole model.

    `mismatch` is the first one; `unverified` the rewrites that nothing vouches for, None for the
    model as a whole; `hurried`: that may be for lack of time; `unloadable` the version of an
    executor that loads the original but not the outcome, why, and after which rewrites; `stopped`
    is whether verification ended there; `there`: how the outcome did in another runtime.
    """

    rewrites: list[Checked] = field(default_factory=list)
    whole: Checked | None = None
    unverified: list[tuple[Rewritten | None, Checked]] = field(default_factory=list)
    hurried: bool = False
    mismatch: Disagreement | None = None
    unloadable: tuple[str, str, Sequence[Blamed]] | None = None
    stopped: bool = False
    there: Compared | None = None


def verify_rounds(
    model: Model,
    rounds: Sequence[Round],
    proto: ModelProto,
    verifying: Verifying,
    say: Callable[[str], None],
    check: str = "",
    *,
    known: KnownVerifications,
    sought: Sequence[Case] = (),
) -> Verdicts:
    """Execute every rewrite before and after, then the model as it was read and as it is now.

    `check` is an output that was added, `known` what was found on regions before, by identity;
    `sought` are cases for the whole model.
    """
    given = _given(verifying, model)
    weights = WeightFile(model.proto, model.base_dir)
    with weights, executors(verifying.executor) as chosen:
        uses = [Uses.of(round_) for round_ in rounds]
        shown = [one for use in uses for one in use.shown]
        task = _Task(model, verifying, chosen, weights, given, shown, known, sought)
        regions = [
            outcome
            for round_, used in zip(rounds, uses, strict=True)
            for outcome in task.regions(round_, used, say)
        ]
        verdicts = Verdicts(_short_forms(regions))
        for rewritten, verification, region in regions:
            if region is not None:
                verdicts.mismatch = Disagreement(
                    rewritten.place.path,
                    verification.reason,
                    (region.before, region.after),
                    verification.failure,
                    (rewritten.rule.name,),
                    rewritten.edit.exact,
                )
                return task.excusing_what_does_not_load(verdicts, rounds, proto)
        say("verifying the whole model")
        whole = task.whole(rounds, proto, check)
        untouched = [use for use in rounds if use.model.proto is rounds[0].model.proto]
        first = regions[: sum(len(use.rewritten) for use in untouched)]
        reached = {event for one, found, _ in first for event in _in_model(one, found.reached)}
        left = {event: path for event, path in whole.unreached.items() if event not in reached}
        verdicts.whole = replace(whole, unreached=left).short
        if whole.verdict == "mismatch":
            names = dict.fromkeys(rewrite.rule.name for use in rounds for rewrite in use.rewritten)
            sides = (model.proto, proto)
            verdicts.mismatch = Disagreement(
                "main", whole.reason, sides, whole.failure, tuple(names), exact=False
            )
            return task.excusing_what_does_not_load(verdicts, rounds, proto)
        if whole.verdict != "verified":
            pairs = zip(regions, verdicts.rewrites, strict=True)
            open_ = [(one, short) for one, short in pairs if short.verdict == "not-compared"]
            verdicts.unverified += [(one[0], short) for one, short in open_]
            verdicts.hurried = any(
                one.cut or one.timed_out for one in (whole, *(use[1] for use, _ in open_))
            )
            converted = Model(proto).opset() != model.opset()
            converted |= proto.ir_version != model.proto.ir_version
            if converted and not any(one.compared for _, one, _ in regions):
                verdicts.unverified.append((None, verdicts.whole))
        verdicts.unloadable = task.unloadable(rounds, proto)
        if is_runtime(verifying.executor):
            say(f"running on {verifying.executor}")
            verdicts.there = task.there(rounds, proto, check)
            if verdicts.there.agrees:
                crossed = {**verdicts.whole.crossed, verifying.executor: verdicts.there.cases}
                verdicts.whole = replace(verdicts.whole, crossed=crossed)
    return verdicts


def _in_model(rewritten: Rewritten, reached: Iterable[Event]) -> Iterator[Event]:
    """Yield what a site and the nodes inside it did in its region, by their keys in the model."""
    own = (0, position_in_region(rewritten))
    for key, did in reached:
        if key[:2] == own:
            yield (*key_of(rewritten), *key[2:]), did


def _given(verifying: Verifying, model: Model) -> list[Feeds]:
    if verifying.inputs is None:
        return []
    from passes.verify.inputs.given import load

    return [load(Path(verifying.inputs), model.proto)]


#: A rewrite, the verdict on it, and its region if that is a mismatch found on it.
_Outcome = tuple[Rewritten, Verification, Region | None]


def _short_forms(regions: Sequence[_Outcome]) -> list[Checked]:
    """Return the verdicts in short; one that covers several rewrites names the site that was
    run."""
    first: dict[int, str] = {}
    known = []
    for rewritten, verification, _ in regions:
        path = rewritten.place.path
        found = first.setdefault(id(verification), path)
        same_as = found if found != path else ""
        short = replace(verification.short, unreached=(), same_as=same_as)
        known.append(replace(short, cases=()) if same_as else short)
    return known


@dataclass
class _Task:
    """Verifies the regions, which are `shown`, and the whole. Time is shared by their sizes."""

    model: Model
    verifying: Verifying
    executors: Sequence[Executor]
    weights: WeightFile
    given: Sequence[Feeds]
    shown: Sequence[Rewritten]
    known: KnownVerifications
    sought: Sequence[Case] = ()

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self._waiting = sum(map(_weight, self.shown))
        self.hints = model_hints(self.model)
        signature = tuple(signature_inputs(self.model.proto.graph))
        self.lessons = Lessons(
            self.weights.model(self.model.proto),
            Drawer(signature, self.verifying.seed, self.hints),
            ReferenceExecutor(keep=1),
            self.weights.base_dir,
            _OBSERVING,
        )

    @property
    def case_timeout(self) -> float:
        """Seconds that one run of a case may take."""
        return self.verifying.budget * _FOR_ONE_RUN

    def left(self, share: float = 1.0) -> float:
        """Seconds left of a share of the budget."""
        return max(0.0, self.verifying.budget * share - (time.monotonic() - self.started))

    def regions(self, round_: Round, uses: Uses, say: Callable[[str], None]) -> Iterator[_Outcome]:
        """The verdict on each rewrite of a round."""
        seen = self._observed(round_, uses.shown)
        promised = list(filter(is_promised, round_.rewritten))
        outcomes: list[_Outcome] = []
        for number, rewritten in enumerate(uses.shown):
            say(f"verifying rewrite {number + 1} of {len(uses.shown)}")
            share = self.left(_FOR_REGIONS) * _weight(rewritten) / self._waiting
            self._waiting -= _weight(rewritten)
            inside = promised_in(rewritten, promised)
            outcomes.append(self._region(round_, rewritten, inside, seen, share))
        for position, rewritten in zip(uses.positions, round_.rewritten, strict=True):
            if position is None:
                yield rewritten, Verification("verified", rewritten.edit.claim.proof), None
                continue
            shown, verification, region = outcomes[position]
            yield rewritten, verification, region if shown is rewritten else None

    def _observed(self, round_: Round, shown: Sequence[Rewritten]) -> Seen:
        return observe(
            self.weights.model(round_.model.proto),
            shown,
            self.hints,
            base_dir=self.weights.base_dir,
            given=self.given,
            seed=self.verifying.seed,
            timeout=min(_OBSERVING, self.left(_FOR_REGIONS) / 4),
            lessons=self.lessons,
        )

    def _region(
        self,
        round_: Round,
        rewritten: Rewritten,
        promised: Sequence[Rewritten],
        seen: Seen,
        budget: float,
    ) -> _Outcome:
        try:
            values = seen.get(key_of(rewritten), ())
            region = cut(round_, rewritten, values, self.weights.tensor)
        except CannotCut as reason:
            return rewritten, Verification("not-compared", str(reason)), None
        entered = rewritten.edit.claim.entered
        key = _identity(region, rewritten, promised)
        if key not in self.known:
            place, ends = rewritten.place, region.before.graph.input
            hints = hints_for(place.node, round_.model.opset_at(place.scope), ends, values)
            base_dir, assume = self.weights.base_dir, self.verifying.assume
            seed = self.verifying.seed
            most = self.left(_FOR_REGIONS)
            started = time.monotonic()
            found = verify(
                Models(region.before, with_check(region, rewritten), base_dir),
                Requirements(
                    self.executors,
                    exact=rewritten.edit.exact,
                    further=rewritten.edit.claim.further,
                    promise=promise_of(region, rewritten, promised, assume),
                    lenient=region.guessed or VALID_INPUTS in assume,
                    non_empty=NON_EMPTY in assume,
                    inputs=Inputs(
                        seed,
                        hints,
                        sought=Seeker(hints, seed, budget, base_dir).in_region(region, rewritten),
                        accept=accepting((*assume, NON_EMPTY) if entered else assume, hints),
                    ),
                    limits=Limits(budget, max(0.0, most - budget), self.case_timeout),
                ),
            )
            self.known[key] = replace(found, seconds=time.monotonic() - started)
        verification = self.known[key]
        mismatch = verification.verdict == "mismatch"
        return rewritten, verification, cut(round_, rewritten, values) if mismatch else None

    def there(self, rounds: Sequence[Round], proto: ModelProto, check: str) -> Compared:
        """Return how the outcome does in the runtime that is to execute it."""

        def judge(before: ModelProto, executors: Sequence[Executor]) -> Verification:
            left = max(self.left(), self.case_timeout)
            return self._whole(rounds, before, proto, check, executors, left)

        return compared(self.verifying.executor, self.weights.model(self.model.proto), judge)

    def whole(self, rounds: Sequence[Round], proto: ModelProto, check: str) -> Verification:
        """The verdict on the whole model."""
        before = self.weights.model(self.model.proto)
        return self._whole(rounds, before, proto, check, self.executors, self.left())

    def _whole(
        self,
        rounds: Sequence[Round],
        before: ModelProto,
        proto: ModelProto,
        check: str,
        executors: Sequence[Executor],
        budget: float,
    ) -> Verification:
        base_dir, assume, seed = self.weights.base_dir, self.verifying.assume, self.verifying.seed
        claims = [one.edit.claim for use in rounds for one in use.rewritten]
        most = self._most_cases()
        started = time.monotonic()
        found = verify(
            Models(before, self.weights.model(proto), base_dir),
            Requirements(
                executors,
                exact=False,
                further=max((claim.further for claim in claims), default=1.0),
                promise=promise_of_model(rounds, check, assume),
                lenient=VALID_INPUTS in assume,
                non_empty=NON_EMPTY in assume,
                inputs=Inputs(
                    seed,
                    self.hints,
                    self.given,
                    [
                        *self.sought[:most],
                        *Seeker(self.hints, seed, budget, base_dir).in_model(rounds),
                    ],
                    accepting(assume, self.hints),
                    len(self.given) + len(self.sought[:most]) + most,
                    self.lessons,
                ),
                limits=Limits(budget, case_timeout=self.case_timeout),
            ),
        )
        return replace(found, seconds=time.monotonic() - started)

    def excusing_what_does_not_load(
        self, verdicts: Verdicts, rounds: Sequence[Round], proto: ModelProto
    ) -> Verdicts:
        """The verdicts of a verification that ended in a mismatch: where that is one side that an
        executor does not load, and the outcome is no better, it is no more than that."""
        assert verdicts.mismatch is not None
        failure = verdicts.mismatch.failure
        if failure is not None and failure.sentence.startswith(NOT_LOADED):
            verdicts.unloadable = self.unloadable(rounds, proto)
            if verdicts.unloadable is not None:
                verdicts.mismatch, verdicts.stopped = None, True
        return verdicts

    def unloadable(
        self, rounds: Sequence[Round], proto: ModelProto
    ) -> tuple[str, str, Sequence[Blamed]] | None:
        """The version of an executor that loads the original but not the outcome, why, and after
        which rewrites, if these only improve."""
        for executor in self.executors:
            reason = self._refusal(executor, proto)
            if reason and not self._hindrance(executor, self.model.proto):
                which = f"{executor.name} {executor.version}"
                what = reason.removeprefix(f"{CANNOT_LOAD}: ")
                sentence = f"the installed {which} loads the original, but not the outcome: {what}"
                optional = [
                    one for one in rounds if all(done.rule.optional for done in one.rewritten)
                ]
                blame = blamed(optional, partial(self._refusal, executor))
                return executor.version, sentence, blame
        return None

    def _refusal(self, executor: Executor, proto: ModelProto) -> str:
        """Why an executor cannot load a model, other than for lack of time; empty if it can."""
        reason = self._hindrance(executor, proto)
        return reason if reason.startswith((CANNOT_LOAD, CRASHED)) else ""

    def _hindrance(self, executor: Executor, proto: ModelProto) -> str:
        """Why an executor does not load a model; empty where it does."""
        try:
            timeout = max(_LOADING, self.left())
            lean = self.weights.model(proto)
            executor.load(lean, base_dir=self.weights.base_dir, timeout=timeout)
        except CannotRun as error:
            return str(error)
        return ""

    def _most_cases(self) -> int:
        """Return the number of drawn cases for the whole model: in a large one, each takes
        seconds."""
        count = sum(1 for _ in scoping.walk_model(self.model.proto))
        return max(_FEWEST_CASES, _MOST_NODES // max(1, count))


def _identity(
    region: Region, rewritten: Rewritten, promised: Sequence[Rewritten]
) -> tuple[object, ...]:
    """Equal for rewrites of which one verification speaks for all: both sides are equal up to
    names, and are compared in the same way, on inputs that are promised alike."""
    edit = rewritten.edit
    limits = [one.limit for one in (rewritten, *promised) if one.limit is not None]
    claim = edit.claim
    how = (edit.exact, claim.further, claim.entered, region.guessed)
    return (region.identity(), *how, *map(_promise, limits))


def _promise(limit: Limit) -> tuple[object, ...]:
    broken = b"" if limit.promised is None else limit.promised.SerializeToString()
    return (limit.most, broken, limit.check)


def _weight(rewritten: Rewritten) -> int:
    """Return the number of nodes of a region on both sides, and a constant for the region
    itself."""
    nodes = [*rewritten.context, *rewritten.replaced, *rewritten.edit.nodes]
    return _OWN_WEIGHT + sum(map(_count, nodes))


def _count(node: NodeProto) -> int:
    return 1 + sum(map(_count, scoping.inner_nodes(node)))
