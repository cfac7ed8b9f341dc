"""Both models on terms in place of elements, at drawn sizes: the same terms in every output."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from passes.ir.model import Model
from passes.proving.drawn import draws
from passes.proving.drawn.running import evaluator_of
from passes.proving.drawn.symbols import (
    Fork,
    NotShown,
    Terms,
    Wanted,
    is_number,
    name_of,
    numbers,
    wrap,
)
from passes.proving.loops.recurrences import SCANS_NOTHING
from passes.proving.operators.cells import CELLS_NOTHING
from passes.proving.scope import Draw
from passes.types import signature
from passes.verify.executor import CannotRun, Feeds, ModelFailed, TookTooLong, Value, kind_of
from passes.verify.inputs.drawer import CannotDraw, Case, Drawer
from passes.verify.reference.value_types import element_dtype

#: Runs of a pair at one draw, and conditions that are decided in one of them.
_MOST_PATHS, MOST_DECISIONS = 128, 6
#: Draws of whole numbers at each size, if they matter.
_DRAWS = 3


class Unequal(NotShown):
    """The models differ in more than elements: in sizes or types, or the new one alone fails."""


class _LeftOut(Exception):
    """What is drawn tells nothing of a path."""


@dataclass
class Found:
    """The result of comparing a pair: the draws at which both answer, pairs of terms that differ in
    outputs of equal shapes, how many elements and runs were compared, whether runs were left out
    for too many decisions, and what is assumed of what the new model alone runs over nothing."""

    terms: Terms
    draws: list[Draw] = field(default_factory=list)
    differing: list[tuple[int, int]] = field(default_factory=list)
    elements: int = 0
    runs: int = 0
    is_cut: bool = False
    over_nothing: set[str] = field(default_factory=set)


class Comparison:
    """The comparison of a pair of models, on inputs that `keep` what is promised. `wanted` are
    those that are drawn, not free."""

    def __init__(
        self, before: Model, after: Model, end: float, keep: Callable[[Case], bool] | None = None
    ) -> None:
        self._models, self._end, self._keep = (before, after), end, keep
        self._terms = Terms()
        self.sides = [evaluator_of(model, self._terms) for model in self._models]
        self.wanted: frozenset[str] = frozenset()
        self.found = Found(self._terms)

    def run(self) -> Found:
        """Compare both models at all sizes that are drawn.

        Raises:
            NotShown: they differ in more than elements, or cannot be compared.
        """
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                return self._run()
            except TookTooLong as error:
                raise NotShown("budget", "the time is used up") from error
            except CannotRun as error:
                raise NotShown("operator", str(error)) from error
            except CannotDraw as error:
                raise NotShown("input", str(error)) from error
            except RecursionError as error:
                raise NotShown("budget", "terms are nested too deeply") from error

    def _run(self) -> Found:
        """Compare at all sizes, anew whenever more inputs have to be drawn."""
        drawer = draws.drawer_of(*self._models)
        while True:
            try:
                self._at_all_sizes(drawer)
                if not self.found.draws and (taught := draws.learned(self._models[0], drawer)):
                    self._at_all_sizes(taught)
            except Wanted as error:
                if error.names <= self.wanted:
                    raise NotShown("decision", f"{min(error.names)!r} decides a size") from error
                self.wanted |= error.names
                self.found = Found(self._terms)
                continue
            if not self.found.draws:
                raise NotShown("draws", "the original answers at no sizes that were drawn")
            return self.found

    def _at_all_sizes(self, drawer: Drawer) -> None:
        """Compare at each of the sizes, in several ways if whole numbers matter."""
        for place in range(len(draws.SIZES)):
            answered = filter(self._answers, draws.attempts(drawer, place, self.wanted))
            for feeds in islice(answered, _DRAWS if self.wanted else 1):
                if self.wanted:
                    self._answers(draws.negated(feeds, self.wanted))

    def _answers(self, feeds: Feeds) -> bool:
        """Compare at one draw, on every path of conditions on floats; return whether the original
        answers on one of them."""
        if self._keep is not None and not self._keep(Case(feeds, "edge", False, "")):
            return False
        draw = self._draw(feeds)
        if draw in self.found.draws:
            return True
        runs = self.found.runs
        pending: list[dict[int, bool]] = [{}]
        for _ in range(_MOST_PATHS):
            decided = self._terms.decided = pending.pop()
            try:
                self._compare(self.fed(feeds))
            except Fork as fork:
                if len(decided) == MOST_DECISIONS:
                    self.found.is_cut = True
                else:
                    pending += [{**decided, fork.term: holds} for holds in (False, True)]
            except _LeftOut:
                return False
            except Unequal as error:
                raise Unequal(error.code, f"{error}; at {draw}") from error
            finally:
                self._terms.decided = {}
            if not pending:
                break
        else:
            raise NotShown("budget", f"more than {_MOST_PATHS} paths")
        if self.found.runs == runs:
            return False
        self.found.draws.append(draw)
        return True

    def _compare(self, feeds: Feeds) -> None:
        """Compare on one path, unless the original fails on it.

        Raises:
            _LeftOut: sizes had to be guessed, and the outputs are not the same.
        """
        before, after = self.sides
        self._terms.is_new, self._terms.answered = False, set()
        try:
            left = before.answer(feeds, self._end)
        except ModelFailed:
            return
        self._terms.is_new = True
        try:
            right = after.answer(feeds, self._end)
        except ModelFailed as error:
            sentence = f"the new model fails where the original answers: {error}"
            raise Unequal("fails", sentence) from error
        if before.machine.guessed_shapes or after.machine.guessed_shapes:
            if not all(map(_is_same, left, right)):
                raise _LeftOut
            return
        if after.machine.breaks_declared and not before.machine.breaks_declared:
            raise Unequal("fails", "a body of the new model declares other sizes than it has")
        for name, one, other in zip(before.output_names_, left, right, strict=True):
            self._same(name, one, other)
        self.found.runs += 1
        old, new = before.machine, after.machine
        if new.idle_scan and not old.idle_scan:
            self.found.over_nothing.add(SCANS_NOTHING)
        if new.idle_cell and not old.idle_cell:
            self.found.over_nothing.add(CELLS_NOTHING)

    def _same(self, name: str, one: Value, other: Value) -> None:
        """Note the elements in which two outputs differ. Raises Unequal if more differs."""
        if _kind(one) != _kind(other):
            raise Unequal("size", f"output {name!r}: {_kind(one)} before, {_kind(other)} after")
        if isinstance(one, list) and isinstance(other, list):
            for pair in zip(one, other, strict=True):
                self._same(name, *pair)
        if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
            ids = (numbers(side).reshape(-1).tolist() for side in (one, other))
            pairs = zip(*ids, strict=True)
            self.found.differing += [(left, right) for left, right in pairs if left != right]
            self.found.elements += one.size

    def _draw(self, feeds: Feeds) -> Draw:
        """The sizes and elements of these inputs that are fixed."""
        return Draw(
            tuple(shape for name, one in feeds.items() for shape in _shapes(name, one)),
            tuple(
                (name, tuple(one.reshape(-1).tolist()))
                for name, one in feeds.items()
                if name in self.wanted and isinstance(one, np.ndarray)
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
            lifted: Value = self._terms.lift(value)
            return lifted
        made = [
            self._terms.make("input", (name, (*place, *index)), (), name_of(value.dtype))
            for index in np.ndindex(value.shape)
        ]
        return wrap(np.reshape(made, value.shape), value.dtype)


def _is_same(one: Value, other: Value) -> bool:
    """Return whether two outputs are the same terms."""
    if _kind(one) != _kind(other):
        return False
    if isinstance(one, list) and isinstance(other, list):
        return all(map(_is_same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return bool((numbers(one) == numbers(other)).all())
    return one is other


def _kind(value: Value) -> str:
    """An output without its elements: the type and the shape, or how many a sequence has."""
    if isinstance(value, np.ndarray):
        return f"{element_dtype(value.dtype)} {value.shape}"
    return f"{kind_of(value)} of length {len(value)}" if value is not None else kind_of(value)


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
