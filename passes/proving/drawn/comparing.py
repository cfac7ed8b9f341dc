"""Both models on terms in place of elements, at drawn sizes: the same terms in every output."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from math import prod
from time import monotonic

import numpy as np

from passes.analysis.safety.randomness import first_random
from passes.ir.model import Model
from passes.proving.assumptions import CELLS_NOTHING, SCANS_NOTHING
from passes.proving.clues import Unknown, sizes_of, written
from passes.proving.drawn.operators import kernels
from passes.proving.drawn.symbols import (
    Fork,
    TermTable,
    Wanted,
    name_of,
    numbers,
    wrap,
)
from passes.proving.families import is_number
from passes.proving.pair import defaults
from passes.proving.terms.algebra import Contradiction
from passes.proving.terms.arrays import NotProvable
from passes.proving.terms.term import OutOfTime, Term
from passes.reports.proof import Draw, Stated
from passes.types import signature
from passes.types.value_types import dims_of
from passes.verify.executor import Array, CannotRun, Feeds, ModelFailed, TookTooLong, Value
from passes.verify.inputs.drawer import CannotDraw, Case, Drawer
from passes.verify.inputs.hints import model_hints
from passes.verify.inputs.mentioned import Mentioned
from passes.verify.inputs.plans import Plan
from passes.verify.inputs.uses import uses_of
from passes.verify.reference.control_flow.static_sizes import StaticSizes
from passes.verify.reference.evaluator import Evaluator
from passes.verify.reference.library import Library
from passes.verify.reference.machine import Frame, Machine
from passes.verify.reference.value_types import element_dtype

#: The size of each symbol, in order.
SIZES = ((2, 3, 1, 4), (3, 1, 2), (1, 3, 2), (1,), (2,), (0,), (3,))
#: Elements of the inputs of a case.
_MOST_ELEMENTS = 20_000
_ATTEMPTS = 6
#: Runs of a pair at one draw, and conditions that are decided in one of them.
_MOST_PATHS, MOST_DECISIONS = 128, 6
#: Draws of whole numbers at each size, if they matter.
_DRAWS = 3


class Unequal(NotProvable):
    """The models differ in more than elements: in sizes or types, or the new one alone fails."""


class _LeftOut(Exception):
    """What is drawn tells nothing of a path."""


@dataclass
class Found:
    """The result of comparing a pair: the draws at which both answer, with inputs, the pairs of
    terms that differ in outputs of equal shapes, how many elements and runs were compared, whether
    runs were left out for too many decisions, whether sizes of others were guessed, and what is
    assumed of what the new model alone runs over nothing."""

    terms: TermTable
    draws: dict[Draw, Feeds] = field(default_factory=dict)
    differing: dict[str, list[tuple[Term, Term]]] = field(default_factory=dict)
    elements: int = 0
    runs: int = 0
    is_cut: bool = False
    is_guessed: bool = False
    over_nothing: set[str] = field(default_factory=set)


class PairAtSizes:
    """The comparison of a pair of models, on inputs that `keep` what is promised. `wanted` are
    those that are drawn, not free."""

    def __init__(
        self, before: Model, after: Model, end: float, keep: Callable[[Case], bool] | None = None
    ) -> None:
        self._models, self._end, self._keep = (before, after), end, keep
        self._terms = TermTable()
        self._terms.algebra.terms.end = end
        self.sides = [evaluator_of(model, self._terms) for model in self._models]
        self.wanted: frozenset[str] = frozenset()
        self.found = Found(self._terms)
        self._defaults = defaults(before)
        self._guessed = False

    def run(self) -> Found:
        """Compare both models at all sizes that are drawn.

        Raises:
            NotProvable: they differ in more than elements, or cannot be compared.
        """
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                return self._run()
            except (TookTooLong, RecursionError) as error:
                is_deep = isinstance(error, RecursionError)
                why = "terms are nested too deeply" if is_deep else "the time is used up"
                raise NotProvable("budget", why) from error
            except (OutOfTime, CannotRun, CannotDraw) as error:
                codes = {OutOfTime: "budget", CannotRun: "operator", CannotDraw: "input"}
                raise NotProvable(codes[type(error)], str(error)) from error

    def _run(self) -> Found:
        """Compare at all sizes, anew whenever more inputs have to be drawn."""
        drawer = drawer_of(*self._models)
        while True:
            try:
                self._at_all_sizes(drawer)
            except Wanted as error:
                if error.names <= self.wanted:
                    raise NotProvable("decision", f"{min(error.names)!r} decides a size") from error
                self.wanted |= error.names
                self.found = Found(self._terms)
                continue
            if not self.found.draws:
                raise NotProvable("draws", "the original answers at no sizes that were drawn")
            return self.found

    def covered(self) -> tuple[Stated, ...] | None:
        """The ranges of the sizes of which all inputs were compared, none if no size is free; None
        if they are no ranges, or an element was drawn, a number is random, a run was left out."""
        if self.wanted or self.found.is_cut or self.found.is_guessed:
            return None
        if any(first_random(model, model.proto.graph.node) for model in self._models):
            return None
        values = signature.feedable(self._models[0].proto)
        declared = {one.name: sizes_of(one) for one in values if dims_of(one.type) is not None}
        ranks = {name: len(dims) for name, dims in declared.items()}
        fixed = {name: one.shape for name, one in self._defaults.items()}
        drawn = []
        for draw in self.found.draws:
            shapes, sizes = {**dict(draw.shapes), **fixed}, dict[Unknown, int]()
            if {name: len(one) for name, one in shapes.items()} != ranks:
                return None
            for name, dims in declared.items():
                for dim, size in zip(dims, shapes[name], strict=True):
                    if (dim if isinstance(dim, int) else sizes.setdefault(dim, size)) != size:
                        return None
            drawn.append(sizes)
        columns = {one: [sizes[one] for sizes in drawn] for one in drawn[0]}
        stated = [Stated(written(one), min(some), max(some)) for one, some in columns.items()]
        every = {tuple(sizes.values()) for sizes in drawn}
        return tuple(stated) if prod(len(one.values) for one in stated) == len(every) else None

    def _at_all_sizes(self, drawer: Drawer) -> None:
        """Compare at each of the sizes, in several ways if whole numbers matter."""
        for place in range(len(SIZES)):
            answered = filter(self._answers, attempts(drawer, place, self.wanted))
            for feeds in islice(answered, _DRAWS if self.wanted else 1):
                if self.wanted:
                    self._answers(negated(feeds, self.wanted))

    def _answers(self, feeds: Feeds) -> bool:
        """Compare at one draw, on every path of conditions on floats; return whether the original
        answers on one of them."""
        if self._keep is not None and not self._keep(Case(feeds, "edge", False, "")):
            return False
        draw = self._draw(feeds)
        if draw in self.found.draws:
            return True
        runs, self._guessed = self.found.runs, False
        pending: list[dict[Term, bool]] = [{}]
        paths = 0
        while pending:
            decided, paths = pending.pop(), paths + 1
            if paths > _MOST_PATHS:
                raise NotProvable("budget", f"more than {_MOST_PATHS} paths")
            try:
                self._terms.decide(decided)
                self._compare(self.fed(feeds))
            except Fork as fork:
                if len(decided) == MOST_DECISIONS:
                    self.found.is_cut = True
                else:
                    pending += [{**decided, fork.term: holds} for holds in (False, True)]
            except Contradiction:
                pass
            except _LeftOut:
                return False
            except Unequal as error:
                raise Unequal(error.code, f"{error.detail}; at {draw}") from error
        if self.found.runs == runs:
            return False
        self.found.draws[draw] = feeds
        self.found.is_guessed |= self._guessed
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
            self._guessed |= before.machine.guessed_shapes
            return
        self._terms.is_new = True
        try:
            right = after.answer(feeds, self._end)
        except ModelFailed as error:
            sentence = f"the new model fails where the original answers: {error}"
            raise Unequal("fails", sentence) from error
        is_guessed = before.machine.guessed_shapes or after.machine.guessed_shapes
        self._guessed |= is_guessed
        outputs = zip(before.output_names_, left, right, strict=True)
        try:
            pairs = {name: [*self._elements(name, *sides)] for name, *sides in outputs}
        except Unequal as error:
            raise _LeftOut if is_guessed else error from error
        differing = {
            name: unlike
            for name, some in pairs.items()
            if (unlike := [(one, other) for one, other in some if one is not other])
        }
        if is_guessed and differing:
            raise _LeftOut
        if is_guessed:
            return
        if after.machine.breaks_declared and not before.machine.breaks_declared:
            raise Unequal("fails", "a body of the new model declares other sizes than it has")
        for name, unlike in differing.items():
            self.found.differing.setdefault(name, []).extend(unlike)
        self.found.elements += sum(map(len, pairs.values()))
        self.found.runs += 1
        old, new = before.machine, after.machine
        if new.idle_scan and not old.idle_scan:
            self.found.over_nothing.add(SCANS_NOTHING)
        if new.idle_cell and not old.idle_cell:
            self.found.over_nothing.add(CELLS_NOTHING)

    def _elements(self, name: str, one: Value, other: Value) -> Iterator[tuple[Term, Term]]:
        """The elements of two outputs, in pairs. Raises Unequal if more differs."""
        parts = zip_longest(_parts(name, one), _parts(name, other), fillvalue=("nothing", None))
        for (left_name, left), (right_name, right) in parts:
            kinds = _kind(left_name, left), _kind(right_name, right)
            if kinds[0] != kinds[1]:
                raise Unequal("size", f"output {name!r}: {kinds[0]} before, {kinds[1]} after")
            if left is not None and right is not None:
                for pair in zip(numbers(left).flat, numbers(right).flat, strict=True):
                    yield self._terms.all[pair[0]], self._terms.all[pair[1]]

    def _draw(self, feeds: Feeds) -> Draw:
        """The sizes and elements of these inputs that are fixed."""
        return Draw(
            tuple(
                (part, () if array is None else array.shape)
                for name, one in feeds.items()
                for part, array in _parts(name, one)
            ),
            tuple(
                (name, tuple(one.reshape(-1).tolist()))
                for name, one in (*self._defaults.items(), *feeds.items())
                if name in self.wanted and isinstance(one, np.ndarray)
            ),
        )

    def fed(self, feeds: Feeds) -> dict[str, Value]:
        """The inputs as terms, those that are wanted as they are."""
        given = {**self._defaults, **feeds}
        return {name: self._input(name, value, ()) for name, value in given.items()}

    def _input(self, name: str, value: Value, place: tuple[int, ...]) -> Value:
        if isinstance(value, list):
            return [self._input(name, one, (*place, index)) for index, one in enumerate(value)]
        if value is None or (name in self.wanted and not is_number(name_of(value.dtype))):
            lifted: Value = self._terms.lift(value)
            return lifted
        dtype = name_of(value.dtype)
        made = [self._terms.input(name, dtype, (*place, *at)) for at in np.ndindex(value.shape)]
        return wrap(np.reshape(made, value.shape), value.dtype)


def _parts(name: str, value: Value) -> Iterator[tuple[str, Array | None]]:
    """The tensors of a value by name, and None for the length of a sequence, or for nothing."""
    if isinstance(value, np.ndarray):
        yield name, value
    elif value is None:
        yield f"{name} empty", None
    else:
        yield f"{name} of length {len(value)}", None
        for index, one in enumerate(value):
            yield from _parts(f"{name}.{index}", one)


def _kind(name: str, part: Array | None) -> str:
    """A part of an output without its elements: the type and the shape, or the name."""
    return name if part is None else f"{element_dtype(part.dtype)} {part.shape}"


# -- the sizes, and whole numbers, that are drawn


def drawer_of(before: Model, after: Model) -> Drawer:
    """The drawer of the inputs of a pair."""
    mentioned = Mentioned.of(before.proto, after.proto)
    inputs = tuple(signature.inputs(before.proto.graph))
    return Drawer(
        inputs, hints=model_hints(before), mentioned=mentioned, uses=uses_of(before.proto)
    )


def attempts(drawer: Drawer, place: int, names: frozenset[str] = frozenset()) -> Iterator[Feeds]:
    """Inputs of the sizes at this place of `SIZES`, whole numbers drawn in several ways; in every
    other one, each single whole number of these names is one of 0 to 3.

    Raises:
        CannotDraw: the type of an input is too vague, or its size too large.
    """
    sizes = SIZES[place]
    plan = Plan("ordinary", f"sizes {sizes}", sizes, items=sizes[0])
    for attempt in range(_ATTEMPTS):
        feeds = drawer.case(plan, attempt).feeds
        total = sum(prod(one.shape) for one in feeds.values() if isinstance(one, np.ndarray))
        if total > _MOST_ELEMENTS:
            raise CannotDraw(f"inputs of {total} elements are too large")
        yield feeds if attempt % 2 else _counted(feeds, names, 2 * place + attempt // 2)


def negated(feeds: Feeds, names: frozenset[str]) -> Feeds:
    """Inputs with the other sign in the whole numbers of these names."""
    signed = _whole(feeds, names, "i").items()
    return {**feeds, **{name: np.asarray(np.negative(one)) for name, one in signed}}


def _counted(feeds: Feeds, names: frozenset[str], turn: int) -> Feeds:
    """Inputs with 0 to 3 for each single whole number of these names, another one each turn."""
    single = [one for one in _whole(feeds, names, "iu").items() if one[1].size == 1]
    return {
        **feeds,
        **{name: np.full_like(one, (turn + n) % 4) for n, (name, one) in enumerate(single)},
    }


def _whole(feeds: Feeds, names: frozenset[str], kinds: str) -> dict[str, Array]:
    """The inputs of these names whose elements are whole numbers, of these kinds of numpy."""
    named = {name: one for name, one in feeds.items() if name in names}
    return {
        name: one
        for name, one in named.items()
        if isinstance(one, np.ndarray) and one.dtype.kind in kinds
    }


# -- a model on numbers of terms


@dataclass
class TermMachine(Machine):
    """The state of a run on term numbers; a condition on floats divides it."""

    terms: TermTable = field(default_factory=TermTable)
    #: Whether a value had other sizes than a body declares: onnxruntime makes room for no others.
    breaks_declared: bool = False

    def elements(self, array: Array) -> Array:
        """The elements of an array, if they are constants.

        Raises:
            Fork, Wanted, NotProvable: as `TermTable.concrete`.
        """
        elements: Array = self.terms.concrete(array)
        return elements


class TermEvaluator(Evaluator):
    """Evaluates a graph; its outputs are term numbers, also those that are constants."""

    machine: TermMachine

    def execute(self, frame: Frame) -> list[Value]:
        """Run every node in order and return the outputs of the graph."""
        if self.around is None:
            return list(map(self.machine.terms.lift, super().execute(frame)))
        fits = all(
            self.declares(name, one.shape)
            for name in self.input_names_
            if isinstance(one := frame.values.get(name), np.ndarray) and one.ndim
        )
        outputs = list(map(self.machine.terms.lift, super().execute(frame)))
        self.machine.breaks_declared |= not (
            fits and all(map(self.returns, range(len(outputs)), outputs))
        )
        return outputs

    def answer(self, feeds: Feeds, end: float) -> list[Value]:
        """The outputs of the model for inputs of term numbers, computed before `end`.

        Raises:
            Ended: there are none.
        """
        self.machine.start(max(end - monotonic(), 0.0))
        self.machine.breaks_declared = False
        return self.execute(Frame({"": None, **self.rt_inits_, **feeds}, None))


def evaluator_of(model: Model, terms: TermTable) -> TermEvaluator:
    """The evaluator of a model on these terms."""
    proto = model.proto
    library, sizes = Library(proto.functions), StaticSizes(proto)
    machine = TermMachine(library, sizes, kernels(terms), model.base_dir, terms=terms)
    imports = {entry.domain: entry.version for entry in proto.opset_import}
    evaluator = TermEvaluator(proto.graph, machine, imports)
    evaluator.is_main = True
    return evaluator
