"""Both models on terms in place of elements, at drawn sizes: the same terms in every output."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic

import numpy as np

from passes.ir.model import Model
from passes.verify import signature
from passes.verify.executor import CannotRun, Feeds, ModelFailed, TookTooLong, Value, kind_of
from passes.verify.inputs.draw import CannotDraw, Case, Drawer
from passes.verify.prove.drawn import draws
from passes.verify.prove.drawn.bodies import TermEvaluator
from passes.verify.prove.drawn.operators import kernels
from passes.verify.prove.drawn.symbols import (
    Fork,
    Terms,
    Unmodelled,
    Wanted,
    is_number,
    numbers,
    wrap,
)
from passes.verify.prove.scope import Draw
from passes.verify.reference.control_flow.static_sizes import StaticSizes
from passes.verify.reference.library import Library
from passes.verify.reference.machine import Frame, Machine

#: Runs of a pair at one draw, and conditions that are decided in one of them.
_MOST_PATHS, MOST_DECISIONS = 128, 6
#: Draws of whole numbers at each size, where they matter.
_DRAWS = 3


@dataclass(frozen=True)
class Unequal:
    """The reason for which two models are not shown equal: a code and a sentence."""

    code: str
    detail: str


@dataclass
class Found:
    """The result of comparing a pair: the draws at which both answer, pairs of terms that differ in
    outputs of equal shapes, how many elements and runs were compared, and whether runs were left
    out for too many decisions."""

    terms: Terms
    draws: list[Draw] = field(default_factory=list)
    differing: list[tuple[int, int]] = field(default_factory=list)
    where: str = ""
    elements: int = 0
    runs: int = 0
    is_cut: bool = False


class _Side:
    """One of the models, ready to run."""

    def __init__(self, model: Model, terms: Terms) -> None:
        proto = model.proto
        imports = {entry.domain: entry.version for entry in proto.opset_import}
        self.outputs = [value.name for value in proto.graph.output]
        self.machine = Machine(
            Library(proto.functions), StaticSizes(proto), kernels(terms), model.base_dir
        )
        evaluator = type("Evaluator", (TermEvaluator,), {"terms": terms})
        self.evaluator = evaluator(proto.graph, self.machine, imports)
        self.evaluator.is_main = True

    def run(self, feeds: Mapping[str, Value], end: float) -> list[Value]:
        """The outputs, of term numbers."""
        self.machine.start(max(end - monotonic(), 0.0))
        evaluator = self.evaluator
        results: list[Value] = evaluator.execute(
            Frame({"": None, **evaluator.rt_inits_, **feeds}, None)
        )
        return results


class Comparison:
    """The comparison of a pair of models, on inputs that `keep` what is promised."""

    def __init__(
        self, before: Model, after: Model, end: float, keep: Callable[[Case], bool] | None = None
    ) -> None:
        self._models, self._end, self._keep = (before, after), end, keep
        self._terms = Terms()
        self.sides = [_Side(model, self._terms) for model in self._models]
        self.wanted: frozenset[str] = frozenset()
        self.found = Found(self._terms)

    def run(self) -> Found | Unequal:
        """Compare both models at all sizes that are drawn."""
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                return self._run()
            except Unmodelled as error:
                return Unequal(error.code, str(error))
            except TookTooLong:
                return Unequal("budget", "the time is used up")
            except CannotRun as error:
                return Unequal("operator", str(error))
            except CannotDraw as error:
                return Unequal("input", str(error))
            except RecursionError:
                return Unequal("budget", "terms are nested too deeply")

    def _run(self) -> Found | Unequal:
        drawer = draws.drawer_of(*self._models)
        while True:
            try:
                unequal = self._at_sizes(drawer)
                if unequal is None and not self.found.draws:
                    more = draws.learned(self._models[0], drawer)
                    unequal = None if more is None else self._at_sizes(more)
            except Wanted as error:
                if error.names <= self.wanted:
                    raise Unmodelled("decision", f"{min(error.names)!r} decides a size") from error
                self.wanted |= error.names
                self.found = Found(self._terms)
                continue
            if unequal is None and not self.found.draws:
                return Unequal("draws", "the original answers at no sizes that were drawn")
            return unequal or self.found

    def _at_sizes(self, drawer: Drawer) -> Unequal | None:
        """Compare at each of the sizes, in several ways where whole numbers matter."""
        for place, sizes in enumerate(draws.SIZES):
            left = _DRAWS if self.wanted else 1
            for turn, feeds in enumerate(draws.attempts(drawer, sizes)):
                if turn % 2 == 0:
                    feeds = draws.counted(feeds, self.wanted, 2 * place + turn // 2)
                answered, unequal = self._at(feeds)
                if answered and self.wanted and unequal is None:
                    _, unequal = self._at(draws.negated(feeds, self.wanted))
                if unequal is not None:
                    return unequal
                left -= answered
                if not left:
                    break
        return None

    def _at(self, feeds: Feeds) -> tuple[bool, Unequal | None]:
        """Compare at one draw: whether both answer, and how they differ."""
        if self._keep is not None and not self._keep(Case(feeds, "edge", False, "")):
            return False, None
        draw = self._draw(feeds)
        if draw in self.found.draws:
            return True, None
        unequal = self._paths(feeds, draw)
        if unequal is not None:
            unequal = Unequal(unequal.code, f"{unequal.detail}; at {draw}")
        return draw in self.found.draws, unequal

    def _paths(self, feeds: Feeds, draw: Draw) -> Unequal | None:
        """Compare at one draw, on every path of conditions on floats."""
        pending: list[dict[int, bool]] = [{}]
        for _ in range(_MOST_PATHS):
            if not pending:
                return None
            decided = pending.pop()
            self._terms.decided = decided
            try:
                unequal = self._path(self.fed(feeds), draw)
            except Fork as fork:
                if len(decided) == MOST_DECISIONS:
                    self.found.is_cut = True
                else:
                    pending += [{**decided, fork.term: holds} for holds in (False, True)]
                continue
            finally:
                self._terms.decided = {}
            if unequal is not None:
                return unequal
        return Unequal("budget", f"more than {_MOST_PATHS} paths")

    def _path(self, feeds: Mapping[str, Value], draw: Draw) -> Unequal | None:
        before, after = self.sides
        try:
            left = before.run(feeds, self._end)
        except ModelFailed:
            return None
        try:
            right = after.run(feeds, self._end)
        except ModelFailed as error:
            return Unequal("fails", f"the new model fails where the original answers: {error}")
        if before.machine.guessed_shapes or after.machine.guessed_shapes:
            return None
        for name, one, other in zip(before.outputs, left, right, strict=True):
            sentence = self._same(name, one, other)
            if sentence:
                return Unequal("size", f"output {name!r}: {sentence}")
        self.found.runs += 1
        if draw not in self.found.draws:
            self.found.draws.append(draw)
        return None

    def _same(self, name: str, one: Value, other: Value) -> str:
        """A sentence where two outputs are unlike in more than their elements."""
        if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            return next(
                filter(None, (self._same(name, *pair) for pair in zip(one, other, strict=True))), ""
            )
        if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
            unlike = one is not other
            return (
                f"{kind_of(one)} before, {kind_of(other)} after, or of other lengths"
                if unlike
                else ""
            )
        if one.dtype != other.dtype or one.shape != other.shape:
            return f"{one.dtype.names} {one.shape} before, {other.dtype.names} {other.shape} after"
        pairs = zip(
            numbers(one).reshape(-1).tolist(), numbers(other).reshape(-1).tolist(), strict=True
        )
        unlike_ones = [pair for pair in pairs if pair[0] != pair[1]]
        if unlike_ones and not self.found.differing:
            first, second = map(self._terms.written, unlike_ones[0])
            self.found.where = f"output {name!r}: {first} before, {second} after"
        self.found.differing += unlike_ones
        self.found.elements += one.size
        return ""

    def _draw(self, feeds: Feeds) -> Draw:
        """The sizes and elements of these inputs that are fixed."""
        fixed = [(name, one) for name, one in feeds.items() if name in self.wanted]
        return Draw(
            tuple(shape for name, one in feeds.items() for shape in _shapes(name, one)),
            tuple(
                (name, tuple(one.reshape(-1).tolist()))
                for name, one in fixed
                if isinstance(one, np.ndarray)
            ),
        )

    def fed(self, feeds: Feeds) -> dict[str, Value]:
        """The inputs as terms, those that are wanted as they are."""
        proto = self._models[0].proto
        free = {value.name for value in signature.defaults(proto)}
        defaults = {
            one.name: self._models[0].read(one)
            for one in proto.graph.initializer
            if one.name in free
        }
        return {name: self._input(name, value, ()) for name, value in {**defaults, **feeds}.items()}

    def _input(self, name: str, value: Value, place: tuple[int, ...]) -> Value:
        if isinstance(value, list):
            return [self._input(name, one, (*place, index)) for index, one in enumerate(value)]
        if value is None or (name in self.wanted and not is_number(value.dtype)):
            return self._terms.lift(value)
        dtype = value.dtype
        made = [
            self._terms.make("input", (name, (*place, *index)), (), dtype.name)
            for index in np.ndindex(value.shape)
        ]
        return wrap(np.array(made, np.int64).reshape(value.shape), dtype)


def _shapes(name: str, value: Value) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The shapes of an input: of a sequence its length and those of its elements."""
    if isinstance(value, np.ndarray):
        yield name, value.shape
    elif value is None:
        yield f"{name} empty", ()
    else:
        yield f"{name} of length {len(value)}", ()
        for index, one in enumerate(value):
            yield from _shapes(f"{name}.{index}", one)
