"""Executing a model before and after a rewrite, on drawn and on given inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from onnx import ModelProto

from passes.engine.full_check import as_computed
from passes.ir import scope
from passes.ir.model import Model
from passes.types import signature
from passes.types.value_types import dims_of
from passes.verify.compare.arithmetic import cancels, recurs
from passes.verify.compare.compare import NOTHING, compare
from passes.verify.compare.coverage import unreached
from passes.verify.compare.error_bounds import ErrorBounds
from passes.verify.compare.evidence import Evidence, Question, Rules, Ruling
from passes.verify.compare.ledger import EMPTY, Ledger
from passes.verify.compare.table import KEPT_FROM_ANSWERING, first_verdict, ruling
from passes.verify.compare.trial import AUTHORITY, OutOfTime, Ran, Side, Trial
from passes.verify.compare.uninitialised import REPAIRED, repaired_pair
from passes.verify.compare.verdicts import Verification
from passes.verify.executor import Event, Executor, Outcome
from passes.verify.inputs.agenda import Item, agenda
from passes.verify.inputs.dims import Needs
from passes.verify.inputs.drawer import CannotDraw, Case, Drawer
from passes.verify.inputs.goals import (
    endless_but_for_conditions,
    what_is_mentioned,
    whatever_is_new,
)
from passes.verify.inputs.lessons import Lessons
from passes.verify.inputs.mentioned import Mentioned
from passes.verify.inputs.plans import ATTEMPTS
from passes.verify.inputs.search import Enough, Events, Search
from passes.verify.inputs.uses import Uses, uses_of
from passes.verify.requirements import Models, Requirements
from passes.verify.run_cost import RunCost

#: Attempts at a case once another one found inputs on which the original runs.
_FEW = 3
#: Cases in a row on which the original never runs, before drawing is given up.
_HOPELESS = 4
#: Seconds that the original may take at least, and as a multiple of where it took longest: once it
#: ended on some inputs, and once it did not on others.
_ONCE_ENDED, _ONCE_ENDLESS = (4.0, 50.0), (1.0, 2.0)
#: The limits that are set, a few, so that reports hardly depend on the machine.
_LIMITS = (1.0, 2.0, 4.0, 8.0)
#: The time of a search for more cases: a share of what was taken before, and seconds at least.
_SEARCH, _SHORT = 0.25, 0.5
_ANSWERED = {"answered", "mismatch"}


def verify(models: Models, required: Requirements) -> Verification:
    """Run both models on the same inputs in every executor, and compare.

    The result depends on the models and the requirements alone; only where cases are `cut`, or a
    time-out is among the reasons, it depends on time too. Never raises for what a model does.
    """
    before, after = models.before, models.after
    executors, inputs, limits = required.executors, required.inputs, required.limits
    check = required.promise.check if required.promise else ""
    if sentence := signature.difference(before, after, check):
        computed = as_computed(Model(before))
        if computed is None or signature.difference(computed[0].proto, after, check):
            return Verification("mismatch", sentence)
        before = computed[0].proto
    deadline = time.monotonic() + limits.budget
    ledger = Ledger([executor.name for executor in executors])
    cost = RunCost.of(before)
    if cost.hopeless:
        ledger.reason(cost.hopeless)
        return ledger.close([])
    rules = Rules.of(before, after, required)
    answered = repaired_pair(before, after) if executors else None
    if answered is not None:
        ledger.note(REPAIRED)

    def sides_of(executor: Executor) -> tuple[Side, Side]:
        first, second = (before, after) if executor.name == AUTHORITY or not answered else answered
        base_dir_after = models.base_dir_after or models.base_dir
        return (
            Side(executor, first, models.base_dir, limits.case_timeout),
            Side(executor, second, base_dir_after, limits.case_timeout, check),
        )

    sides = [sides_of(executor) for executor in executors]
    mentioned = Mentioned.of(before, after)
    drawn = tuple(signature.inputs(before.graph))
    uses, steady = uses_of(before), not (recurs(before) or recurs(after))
    drawer = Drawer(drawn, inputs.seed, inputs.hints, required.exact, mentioned, uses, steady)
    asked = any(executor.name == AUTHORITY for executor in executors)

    def counts(case: Case) -> bool:
        affordable = case.kind == "given" or cost.is_affordable(case.feeds)
        return affordable and (inputs.accept is None or inputs.accept(case))

    witness = None if asked or not executors else sides_of(_reference())
    originals = [original for original, _ in (*sides, *([witness] if witness else []))]
    bounds = ErrorBounds(
        {side.executor.name: side for side in originals},
        deadline,
        required.further,
        cancels(before),
    )
    lessons = inputs.lessons
    if lessons is None and executors:
        runner = executors[0] if asked else _reference()
        lessons = Lessons(before, drawer, runner, models.base_dir, limits.case_timeout)
    promised = required.promise.models if required.promise and executors else ()
    trials = _Trials(
        rules,
        sides,
        witness,
        [Side(executors[0], one, models.base_dir, limits.case_timeout) for one in promised],
        bounds,
        ledger,
        counts,
        deadline,
        lessons,
    )
    found = trials.all(
        lambda needs: agenda(before, replace(drawer, needs=needs), inputs.given, inputs.sought)[
            : inputs.most
        ]
    )
    if found.verdict == "verified" and asked:
        trials.search(before, mentioned, uses)
        found = trials.close(before, found.cut)
    if found.reason == EMPTY and _is_always_empty(before):
        reason = "its outputs are always empty: dtypes and shapes agree in every compared case"
        return replace(found, verdict="verified", reason=reason)
    return found


def _is_always_empty(model: ModelProto) -> bool:
    """Return whether every output has an axis whose inferred size is 0."""
    main = next(scope.scopes(model))
    types = Model(model).types
    known = (dims_of(types.of(main, name)) for name in scope.output_names(model.graph))
    return all(dims is not None and 0 in dims for dims in known)


def _reference() -> Executor:
    from passes.verify.reference import ReferenceExecutor

    return ReferenceExecutor(keep=2)


@dataclass
class _Trials:
    """The cases one after the other, in every executor, until one differs or time is out.

    `witness` is the reference executor where it runs no case unasked; `promised` are originals that
    fail where a promise is broken; `budget_end` is of `time.monotonic`.
    """

    rules: Rules
    sides: Sequence[tuple[Side, Side]]
    witness: tuple[Side, Side] | None
    promised: Sequence[Side]
    bounds: ErrorBounds
    ledger: Ledger
    accept: Callable[[Case], bool]
    budget_end: float
    lessons: Lessons | None
    _done: set[str] = field(default_factory=set)
    _lucky: int | None = None  # the attempt that last found inputs the original takes
    _luckless: int = 0
    _began: float = field(default_factory=time.monotonic)
    _base: Case | None = None  # the first one that was compared
    _reached: set[Event] = field(default_factory=set)
    _longest: dict[str, float] = field(default_factory=dict)  # seconds of originals that ended
    _endless: bool = False  # whether one did not

    def all(self, agenda: Callable[[Needs | None], list[Item]]) -> Verification:
        """Try the cases; where none that is drawn fits, those that fit what was learned."""
        items = agenda(None)
        while items:
            item = items.pop(0)
            try:
                again = self._item(item)
            except OutOfTime:
                return self.ledger.close([item.label, *(left.label for left in items)])
            except CannotDraw as error:
                self.ledger.reason(str(error))
                self._luckless = _HOPELESS
            else:
                if again is not None:
                    items = [item for item in agenda(again) if item.label not in self._done]
                    continue
            self._done.add(item.label)
            if self.ledger.failure is not None:
                break
        return self.ledger.close([])

    def search(self, model: ModelProto, mentioned: Mentioned, uses: Uses) -> None:
        """Try cases beside one that was compared: with what the rewritten model mentions, and as
        far as the original, `model`, does in them what it did in none before."""
        if self._base is None:
            return
        now = time.monotonic()
        end = min(self.budget_end, now + max(_SHORT, _SEARCH * (now - self._began)))
        original, _ = self.sides[0]
        goals = [what_is_mentioned(mentioned), endless_but_for_conditions(uses)]
        if unreached(model, self._reached):
            goals.insert(1, whatever_is_new(mentioned))

        def run(case: Case) -> Outcome | None:
            return original.run(case.feeds, end).outcome if self.accept(case) else None

        def take(case: Case, events: Events) -> None:
            self._case(case)
            if self.ledger.failure is not None:
                raise Enough

        for goal in goals:
            try:
                Search(goal, run, self._reached, take).change([self._base])
            except OutOfTime:
                return
            except Enough:
                if self.ledger.failure is not None:
                    return

    def close(self, model: ModelProto, cut: Sequence[str]) -> Verification:
        """The verification, with what the original, `model`, did in compared cases."""
        left = unreached(model, self._reached)
        reached = frozenset(self._reached)
        return replace(self.ledger.close(cut), reached=reached, unreached=left)

    def _item(self, item: Item) -> Needs | None:
        """Try a case; draw it again, in other ways, while the original fails on it. What the
        inputs need, if that was learned from it and the case is to be tried once more."""
        if not item.again:
            self._case(item.make(self._lucky or 0))
            return None
        if self._luckless >= _HOPELESS:
            return None
        first = self._lucky or 0
        count = len(ATTEMPTS) if self._lucky is None else _FEW
        for attempt in range(first, first + count):
            statuses = self._case(item.make(attempt))
            empty_too = self._lucky is not None
            if statuses & _ANSWERED or (empty_too and "empty" in statuses):
                self._lucky, self._luckless = attempt % len(ATTEMPTS), 0
                return None
            if self._lucky is not None and statuses and "both failed" not in statuses:
                return None  # other inputs do not help where an executor cannot run the model
            if self._lucky is None and "both failed" in statuses:
                needs = self._learned()
                if needs is not None:
                    return needs
        if self._lucky is None:
            self._luckless += 1
        return None

    @property
    def _deadline(self) -> float:
        """When to stop, of `time.monotonic`; later where no case was compared yet."""
        patience = 0.0 if self.ledger.total.elements else self.rules.required.limits.patience
        return self.budget_end + patience

    def _learned(self) -> Needs | None:
        """Return what the original's failures teach about its inputs; computed once."""
        lessons, self.lessons = self.lessons, None
        if lessons is None:
            return None
        try:
            return lessons.learn(self._deadline)
        except TimeoutError as error:
            raise OutOfTime from error

    def _case(self, case: Case) -> set[str]:
        """Try a case in every executor: what became of it."""
        statuses: set[str] = set()
        if not self.accept(case):
            return statuses
        reference = Trial("not run")
        self.bounds.deadline = self._deadline
        for sides in self.sides:
            before, name = sides[0], sides[0].executor.name
            original = reference.before
            before.timeout = self._limit(name, endless=original.endless)
            trial = self._tried(
                case,
                sides,
                after_alone=bool(original.outcome or original.failed),
                like=_likeness(case, original),
            )
            self._endless |= trial.before.endless
            if trial.before.outcome is not None:
                self._longest[name] = max(self._longest.get(name, 0.0), trial.before.seconds)
            if name == AUTHORITY:
                reference = trial
            elif self.witness is not None and trial.status == "mismatch":
                reference = self._witnessed(case)
            found = self._ruling(name, case, trial, reference)
            self.ledger.enter(name, case, found, reference.before.outcome)
            trial = found.trial
            if name == AUTHORITY:
                reference = trial
            if trial.status == "compared" and trial.before.outcome is not None:
                self._reached |= trial.before.outcome.reached
                if self._base is None and case.kind in ("given", "natural", "ordinary"):
                    self._base = case
            statuses.add(_what_became(trial))
            if self.ledger.failure is not None:
                break
        return statuses

    def _tried(
        self,
        case: Case,
        sides: tuple[Side, Side],
        *,
        after_alone: bool = False,
        like: str = "",
    ) -> Trial:
        """Run a case on both sides. Raises OutOfTime.

        Where the promise is broken the original may run forever: there it runs only if the
        rewritten model answers. Where the executor cannot run the original, it runs the rewritten
        model only if that is of use (`after_alone`). A side that crashes on inputs `like` these is
        spared, the rewritten model only where the original does not run. A mismatch counts only
        where the original agrees with itself when it runs again.
        """
        before, after = sides
        deadline = self._deadline
        if any(side.run(case.feeds, deadline).failed for side in self.promised):
            ran, promise = after.run(case.feeds, deadline), self.rules.required.promise
            if ran.failed or (promise and promise.silent):
                return Trial("both failed", KEPT_FROM_ANSWERING, after=ran)
        original = before.run(case.feeds, deadline, like)
        if original.unable and not after_alone:
            return Trial("not run", f"the original: {original.unable}", before=original)
        rewritten = after.run(case.feeds, deadline, "" if original.outcome is not None else like)
        question = Question(self.rules, before.executor.name, case, original, rewritten)
        trial = first_verdict(question)
        if trial.status == "mismatch" and original.outcome is not None and rewritten.outcome:
            again = before.run(case.feeds, deadline)
            if again.outcome is None or not compare(original.outcome, again.outcome).agree:
                why = "the original gives different answers on the same inputs"
                return replace(trial, status="not run", sentence=why, comparison=NOTHING)
        return trial

    def _ruling(self, executor: str, case: Case, trial: Trial, reference: Trial) -> Ruling:
        return ruling(Evidence(self.rules, executor, case, trial, reference, self.bounds))

    def _limit(self, executor: str, *, endless: bool) -> float:
        """Seconds that the original may take, in the light of how long it took where it ended, and
        of whether it is `endless` in another executor."""
        full = self.rules.required.limits.case_timeout
        longest = self._longest.get(executor)
        if longest is None:
            return full
        least, times = _ONCE_ENDLESS if self._endless or endless else _ONCE_ENDED
        wanted = max(least, times * longest)
        return min(full, next((limit for limit in _LIMITS if limit >= wanted), full))

    def _witnessed(self, case: Case) -> Trial:
        """Return the reference executor's result of a case that only another executor was to run,
        and in which that one found a mismatch: it decides which side is at fault. Empty if time
        runs out."""
        assert self.witness is not None
        try:
            trial = self._tried(case, self.witness, after_alone=True)
            return self._ruling(AUTHORITY, case, trial, trial).trial
        except OutOfTime:
            return Trial("not run")


def _likeness(case: Case, original: Ran) -> str:
    """Return a key for inputs that are alike in the reference executor's run of the original:
    executors crash on some that are empty, or on which it fails, and not on others."""
    idle = original.outcome is not None and original.outcome.idle
    empty = any(getattr(value, "size", 1) == 0 for value in case.feeds.values())
    return "odd" if idle or empty or original.failed else "ordinary"


def _what_became(trial: Trial) -> str:
    """The status of a trial, as it decides whether to draw again: outputs without elements
    prove so little that other inputs are tried first, and those on which the original fails
    prove nothing."""
    if trial.status == "compared" and not trial.comparison.elements:
        return "empty"
    if trial.status == "refined":
        return "both failed"
    return trial.status if trial.before.outcome is None else "answered"
