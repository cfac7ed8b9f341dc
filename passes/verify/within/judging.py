"""The verdict on a model whose floats may be of another type: within an error, or not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from onnx import ModelProto

from passes.ir.model import Model
from passes.ir.operators import HOLDERS, op_of
from passes.ir.places import Key, Place, Scope, is_loop, scopes
from passes.reports.precision import Differing, OutputError, ValueRange, Within, at
from passes.types.signature import difference
from passes.verify.executor import Ended, Feeds, ModelFailed, Outcome
from passes.verify.installed import executors
from passes.verify.within.cases import SHORTEST, Case, Cases
from passes.verify.within.errors import SHAPE, decisions, growing, off, sums_of, worst_of
from passes.verify.within.rounded import EXECUTOR, Rounding, Seen

#: Seconds for a run in onnxruntime.
_LOADING = 60.0
_NOR_THE_ORIGINAL = "; nor does it run the original"
#: Values that are reported, at most.
_MOST_RANGES = 16


@dataclass(frozen=True)
class Terms:
    """What is asked of a judgement: the largest error allowed, None if any is reported; what
    executes the outcome besides; the seed of drawn inputs, or `given` ones in their place; the
    seconds that it may take."""

    bound: float | None = None
    executor: str = "both"
    seed: int = 0
    given: Sequence[Feeds] = ()
    budget: float = 60.0


@dataclass
class Judgement:
    """How far an outcome is off in the cases of the original.

    `seen` are its values of half precision, by the keys of their nodes, and `places` the nodes of
    the original by these keys. `ran` are the cases in which both ran. `failure`: how it fails.
    """

    before: Model
    after: Model
    deadline: float
    errors: list[OutputError] = field(default_factory=list)
    differing: list[Differing] = field(default_factory=list)
    failure: str = ""
    not_run: list[str] = field(default_factory=list)
    ran: list[Case] = field(default_factory=list)

    def __post_init__(self) -> None:
        rounding = Rounding()
        self.seen, self._executor = rounding.seen, rounding.executor()
        self.places = places_before(self.before.proto, self.after.proto)

    def of(self, cases: Iterable[Case]) -> Judgement:
        """Run the outcome in cases, until it fails in one."""
        found: list[OutputError | Differing] = []
        for case in cases:
            try:
                new = self._executor.run(
                    self.after.proto,
                    case.after,
                    base_dir=self.after.base_dir,
                    timeout=max(SHORTEST, self.deadline - time.monotonic()),
                )
            except ModelFailed as error:
                self.failure = f"the new model alone fails{at(case.length)}: {error}"
                break
            except Ended as error:
                self.not_run.append(f"the new model{at(case.length)}: {error}")
                continue
            self.ran.append(case)
            found += off(case.was, new, case.moved, case.length)
            found += self._decisions(case, new)
        self.errors = worst_of(one for one in found if isinstance(one, OutputError))
        self.differing = sums_of(one for one in found if isinstance(one, Differing))
        for one in self.differing:
            if one.what.startswith(SHAPE) and one.different > one.unsure:
                self.failure = self.failure or f"{one.what} is another one{at(one.length)}"
        return self

    def _decisions(self, case: Case, new: Outcome) -> Iterator[Differing]:
        """The trip counts and branches that differ."""
        for key, now in new.decided.items():
            if key in self.places:
                place = self.places[key]
                old = (*place.scope.key, place.index)
                runs = [case.was.decided.get(old, ()), now, case.moved.decided.get(old, ())]
                what = "trip counts" if is_loop(place.node) else "branches"
                yield decisions(f"{what} of {place.path}", case.length, runs)

    @property
    def error(self) -> tuple[int, float]:
        """The number of elements that overflow, and the largest error of the others; infinite if
        the outcome fails."""
        return self.error_at(None)

    def error_at(self, length: int | None) -> tuple[int, float]:
        """The same at one length."""
        errors = [one for one in self.errors if length is None or one.length == length]
        finite = [one.error for one in errors if one.error > one.unsure]
        failed = [inf] if self.failure else []
        return sum(one.overflows for one in errors), max([*finite, *failed], default=0.0)

    @property
    def worst_length(self) -> int | None:
        """The length of the largest error."""
        worst = max(self.errors, key=lambda one: (one.counted, one.error), default=None)
        return None if worst is None else worst.length

    @property
    def ranges(self) -> list[ValueRange]:
        """The values that overflow or become 0, the worst first, then the largest other one."""
        found = [
            ValueRange(path, one.largest, one.smallest, one.overflows, one.underflows)
            for path, one in self.by_path.items()
            if one.largest
        ]
        found.sort(key=lambda one: (one.overflows, one.underflows, one.largest), reverse=True)
        odd = [one for one in found if one.overflows or one.underflows]
        return [*odd[:_MOST_RANGES], *found[len(odd) :][:1]]

    @property
    def by_path(self) -> dict[str, Seen]:
        """The values of half precision by the paths of their nodes in the original."""
        return {self.places[key].path: one for key, one in self.seen.items() if key in self.places}

    def operands(self, path: str) -> list[str]:
        """The paths of the nodes of the original that compute what the one at a path reads."""
        made = {
            (place.scope.key, name): place.path
            for place in self.places.values()
            for name in place.node.output
        }
        place = next(one for one in self.places.values() if one.path == path)
        scopes = [scope.key for scope in place.scope.chain()]
        found = (made.get((key, name)) for name in place.node.input for key in scopes)
        return list(dict.fromkeys(filter(None, found)))


@dataclass(frozen=True)
class Judged:
    """A verdict, and what it rests on, None if nothing was executed."""

    within: Within
    found: Judgement | None = None

    @property
    def blamed(self) -> list[str]:
        """The nodes that onnxruntime names as it refuses to run the outcome, and not the original:
        their paths in that."""
        said = self.within.loads
        if self.found is None or said.endswith(_NOR_THE_ORIGINAL):
            return []
        places = [one for one in self.found.places.values() if op_of(one.node) not in HOLDERS]
        return [one.path for one in places if one.node.name and f"'{one.node.name}'" in said]


def judged(before: Model, after: Model, terms: Terms) -> Judged:
    """Execute both models, in which inputs and outputs may be of other types of floats, and tell
    how far the second one is off. Never raises for what they do.

    Raises:
        NoExecutor: onnxruntime alone is asked for, and not installed.
    """
    sentence = difference(before.proto, after.proto, any_float=True)
    if sentence:
        return Judged(Within(terms.bound, failure=sentence))
    deadline = time.monotonic() + terms.budget
    original = Rounding().executor()
    source = Cases(before, after.proto, original, terms.given, terms.seed, deadline)
    found = Judgement(before, after, deadline).of(source.all())
    not_run = [*source.not_run, *found.not_run]
    first = next(iter(found.ran), None)
    within = Within(
        terms.bound,
        found.errors,
        found.differing,
        found.ranges,
        growing(found.errors),
        source.inputs,
        EXECUTOR,
        _loads(before, after, first, terms.executor) if first else "",
        not_run,
        failure=found.failure or ("" if first else "; ".join(not_run)),
        ran=bool(first or found.failure),
    )
    return Judged(within, found)


def _loads(before: Model, after: Model, case: Case, which: str) -> str:
    """Why onnxruntime does not run an outcome; empty if it does."""
    with executors(which) as chosen:
        executor = next((one for one in chosen if one.name == "onnxruntime"), None)
        if executor is None:
            return "not tried"
        try:
            executor.run(after.proto, case.after, base_dir=after.base_dir, timeout=_LOADING)
        except Ended as error:
            try:
                executor.run(before.proto, case.feeds, base_dir=before.base_dir, timeout=_LOADING)
            except Ended:
                return f"{error}{_NOR_THE_ORIGINAL}"
            return f"{error}"
    return ""


def places_before(before: ModelProto, after: ModelProto) -> dict[Key, Place]:
    """The place in `before` of each node of `after`, by its key; none of nodes in graphs that
    differ in more than Casts and constants."""
    outer = {scope.path: scope for scope in scopes(before)}
    pairs = ((outer[one.path], one) for one in scopes(after) if one.path in outer)
    return {key: place for pair in pairs for key, place in _paired(*pair)}


def _paired(before: Scope, after: Scope) -> Iterator[tuple[Key, Place]]:
    old, new = _nodes(before), _nodes(after)
    if [op_of(one.node) for one in old] != [op_of(one.node) for one in new]:
        return
    for one, other in zip(old, new, strict=True):
        yield (*after.key, other.index), one
        bodies = zip(before.inner(one.index), after.inner(other.index), strict=True)
        for inner, pair in bodies:
            yield from _paired(inner, pair)


def _nodes(scope: Scope) -> list[Place]:
    """The nodes of a graph that a cast neither adds nor removes."""
    places = (Place(node, index, scope) for index, node in enumerate(scope.owner.node))
    return [one for one in places if op_of(one.node) not in ("Cast", "Constant")]
