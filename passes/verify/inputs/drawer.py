"""Drawing the inputs of a model from their declared types.

`draw` gives cases, the most telling first, the same for the same seed. What a declaration
leaves open (which unnamed dims are equal, the rank, whether an int is an index, a size or a
trip count) is found by trying: `Drawer.case` takes the number of the attempt.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import TensorProto, TypeProto, ValueInfoProto

from passes.types.dtypes import is_float, numpy_dtype
from passes.verify.executor import Array, Feeds, Value
from passes.verify.inputs import arrays as draw_arrays
from passes.verify.inputs import dims as draw_dims
from passes.verify.inputs.arrays import INT_STYLES, Manner, specials
from passes.verify.inputs.dims import InputDims, Needs
from passes.verify.inputs.mentioned import NOTHING, Mentioned
from passes.verify.inputs.plans import ATTEMPTS, Attempt, Kind, Lengths, Plan, plans
from passes.verify.inputs.uses import Uses, are_indices

#: Larger than any dim that is drawn.
_NO_INDEX = 1_000_000


def lengths(rng: np.random.Generator, mode: Lengths, rows: int, longest: int) -> Array:
    """int64 (rows,): a length from 0 to `longest` for each row; invalid ones where asked.

    Ragged lengths hold 0 and `longest` in one batch, wherever there are two rows.
    """
    drawn = rng.integers(0, longest + 1, rows)
    match mode:
        case "full":
            return np.full(rows, longest, np.int64)
        case "empty":
            return np.zeros(rows, np.int64)
        case "positive":
            drawn = np.maximum(drawn, min(1, longest))
            return _with(rng, drawn, [longest])
        case "too long":
            return _with(rng, drawn, [longest + 1])
        case "negative":
            return _with(rng, drawn, [-1])
    return _with(rng, drawn, [0, longest] if rows > 1 else [])


def _with(rng: np.random.Generator, values: Array, wanted: Sequence[int]) -> Array:
    """`values` with the wanted ones at random places, as many as fit."""
    places = rng.permutation(len(values))[: len(wanted)]
    result = values.astype(np.int64)
    result[places] = wanted[: len(places)]
    return result


def fill_behind(array: Array, row_axis: int, time_axis: int, ends: Array) -> Array:
    """Return a copy with values that must not be read after the end of each row: NaN and
    infinities, or integers that are neither an index nor a divisor."""
    if is_float(array.dtype):
        odd = np.resize(specials(array.dtype, extremes=False)[:3], array.shape)
    elif array.dtype in (np.int32, np.int64):
        odd = np.resize(np.array([_NO_INDEX, 0, -_NO_INDEX]), array.shape)
    else:
        return array
    time = _along(np.arange(array.shape[time_axis]), time_axis, array.ndim)
    past_end = time >= _along(ends, row_axis, array.ndim)
    return np.where(past_end, odd, array).astype(array.dtype)


def _along(vector: Array, axis: int, rank: int) -> Array:
    return vector.reshape([-1 if position == axis else 1 for position in range(rank)])


#: Elements of the largest input that is drawn: 2 GB of floats.
_MOST_ELEMENTS = 1 << 29


class CannotDraw(Exception):
    """The declared type of an input is too vague to draw a value."""


@dataclass(frozen=True)
class Hint:
    """Facts about an input beyond its declaration.

    `dims` overrides the declared shape, axis by axis: a name, a size, or None to leave it.
    `length_of`: int values from 0 to (the size of) that dim, one per row (`sequence_lens`).
    `natural`: values really observed; those of several inputs belong together by position.
    `chosen`: a caller chooses its sizes, and may choose others than `dims` asks for, unless its
    declaration asks for them, too.
    """

    dims: tuple[str | int | None, ...] | None = None
    length_of: str | int | None = None
    natural: tuple[Value, ...] = ()
    chosen: bool = False


@dataclass(frozen=True)
class Case:
    """Inputs by name. `exact`: short sums and products of its floats do not round."""

    feeds: Feeds
    kind: Kind
    exact: bool
    label: str


@dataclass(frozen=True)
class Drawer:
    """The inputs to draw, with the facts known about them. `mentioned` are constants of the models,
    `uses` what the model uses the inputs for, `steady`: no floats grow in a loop, and `needs` the
    sizes found necessary: the first attempt at a case follows them."""

    inputs: tuple[ValueInfoProto, ...]
    seed: int = 0
    hints: Mapping[str, Hint] = field(default_factory=dict)
    extremes: bool = True
    mentioned: Mentioned = NOTHING
    uses: Uses = field(default_factory=dict)
    steady: bool = False
    needs: Needs | None = None

    def plans(self) -> list[Plan]:
        """The cases to draw, the most telling first."""
        dims = self._dims(Plan("ordinary", ""), ATTEMPTS[0])
        return plans(
            self.free(dims),
            lengths=any(self._hint(value.name).length_of for value in self.inputs),
            containers=any(
                value.type.WhichOneof("value") != "tensor_type" for value in self.inputs
            ),
            shared=self._shared(dims),
            tied=self.needs.tied_symbols() if self.needs is not None else (),
            numbers=self.mentioned.numbers,
            strings=bool(self.mentioned.strings) and self._has_strings(),
            unnamed=dims.unnamed,
            indices=any(map(are_indices, self.uses.values())),
            steady=self.steady,
        )

    def _has_strings(self) -> bool:
        types = (draw_dims.element_type(value.type).tensor_type for value in self.inputs)
        return any(type_.elem_type == TensorProto.STRING for type_ in types)

    def symbols(self) -> list[str]:
        """The names of the sizes that are to be drawn, made up where there are none."""
        return self.free(self._dims(Plan("ordinary", ""), ATTEMPTS[0]))

    def sizes_in(self, feeds: Feeds) -> dict[str, int]:
        """The sizes of all symbols in given inputs."""
        plan, attempt = Plan("given", ""), ATTEMPTS[0]
        dims = self._dims(plan, attempt)
        return draw_dims.sizes(dims, self.free(dims), plan, attempt, feeds)

    def unranked(self) -> list[str]:
        """The inputs of unknown rank."""
        return [
            value.name
            for value in self.inputs
            if draw_dims.declared(value.type) is None and self._hint(value.name).dims is None
        ]

    def free(self, dims: InputDims) -> list[str]:
        """The symbols whose sizes do not follow from others."""
        return [
            symbol
            for symbol in dims.symbols()
            if self.needs is None or symbol not in self.needs.ties
        ]

    def _shared(self, dims: InputDims) -> list[str]:
        """The symbols on which hints make several inputs agree that are not declared to."""
        return [symbol for symbol in dims.symbols() if self._skewed(symbol, dims)]

    def _skewed(self, symbol: str, dims: InputDims) -> list[str]:
        """The inputs that disagree on a symbol where some do: the last one that is declared
        otherwise, and those that are declared as it is."""
        bearers = {
            value.name: _declared_as(value, dims.of[value.name].index(symbol))
            for value in self.inputs
            if symbol in dims.of[value.name]
        }
        *_, last = ("", *(name for name in bearers if bearers[name] != symbol))
        if not last or not self._hint(last).chosen:
            return []
        alike = [
            name for name in bearers if name == last or bearers[name] == bearers[last] is not None
        ]
        return alike if len(alike) < len(bearers) else []

    def observed(self) -> int:
        """The number of cases that were observed."""
        return max((len(self._hint(value.name).natural) for value in self.inputs), default=0)

    def natural(self, index: int) -> Case:
        """An observed case; inputs never observed are drawn to fit it. Raises CannotDraw."""
        observed = {value.name: self._hint(value.name).natural for value in self.inputs}
        fixed = {name: seen[index % len(seen)] for name, seen in observed.items() if seen}
        return self._case(Plan("natural", f"observed values {index}"), ATTEMPTS[1], fixed)

    def case(self, plan: Plan, attempt: int = 0) -> Case:
        """The inputs of a plan. Raises CannotDraw, naming the input."""
        if self.needs is not None and not attempt:
            drawer = replace(self, needs=self.needs.apart(plan.apart)) if plan.apart else self
            return drawer._case(plan, Attempt(ints=self.needs.ints), {})
        unneeded = replace(self, needs=None)
        return unneeded._case(plan, ATTEMPTS[attempt % len(ATTEMPTS)], {}, attempt)

    def _case(self, plan: Plan, attempt: Attempt, fixed: Feeds, salt: int = 0) -> Case:
        rng = np.random.default_rng([self.seed, zlib.crc32(plan.label.encode()), salt])
        dims = self._dims(plan, attempt)
        sizes = draw_dims.sizes(dims, self.free(dims), plan, attempt, fixed)
        if self.needs is not None and not fixed:
            sizes = self.needs.fit(sizes)
        drawing = _Drawing(self, rng, plan, attempt, dims, sizes, plan.turn + salt)
        feeds = {
            value.name: fixed[value.name] if value.name in fixed else drawing.value(place, value)
            for place, value in enumerate(self.inputs)
        }
        if plan.padding:
            feeds = self._pad(feeds, dims)
        return Case(feeds, plan.kind, plan.style in ("exact", "denormal") and not fixed, plan.label)

    def _hint(self, name: str) -> Hint:
        return self.hints.get(name, Hint())

    def _dims(self, plan: Plan, attempt: Attempt) -> InputDims:
        hints = {name: hint.dims for name, hint in self.hints.items() if hint.dims is not None}
        for name, rank in (self.needs.ranks if self.needs is not None else {}).items():
            hints.setdefault(name, (None,) * rank)
        return draw_dims.resolve(self.inputs, hints, plan, attempt)

    def _pad(self, feeds: Feeds, dims: InputDims) -> dict[str, Value]:
        """Return the feeds with NaN and infinities after the lengths, if dims show rows and
        time."""
        padded = dict(feeds)
        for name, hint in self.hints.items():
            ends, row = feeds.get(name), dims.of.get(name, ())
            if hint.length_of is None or not isinstance(ends, np.ndarray) or len(row) != 1:
                continue
            for other, value in padded.items():
                axes = dims.of[other]
                if isinstance(value, np.ndarray) and row[0] in axes and hint.length_of in axes:
                    place = axes.index(row[0]), axes.index(hint.length_of)
                    padded[other] = fill_behind(value, *place, ends)
        return padded


def _declared_as(value: ValueInfoProto, axis: int) -> str | int | None:
    """Return the name or size that an input's declaration gives to an axis."""
    known = draw_dims.declared(value.type)
    return known[axis] if known is not None and axis < len(known) else None


def why_not(value: ValueInfoProto) -> str | None:
    """Why an input cannot be drawn, or None."""
    inner = draw_dims.element_type(value.type)
    kind = inner.WhichOneof("value")
    if kind is None:
        return f"input {value.name} has no type"
    if kind != "tensor_type":
        return f"input {value.name} is a {kind.removesuffix('_type')}, which is never drawn"
    if inner.tensor_type.elem_type == TensorProto.UNDEFINED:
        return f"input {value.name} has no dtype"
    return None


@dataclass(frozen=True)
class _Drawing:
    """A case that is drawn: its plan, dims and their sizes, and its `turn` among all."""

    drawer: Drawer
    rng: np.random.Generator
    plan: Plan
    attempt: Attempt
    dims: InputDims
    sizes: Mapping[str, int]
    turn: int

    def value(self, place: int, value: ValueInfoProto) -> Value:
        """The value of an input. Raises CannotDraw."""
        drawer, plan, attempt, name = self.drawer, self.plan, self.attempt, value.name
        hint, uses, sizes = drawer._hint(name), drawer.uses.get(name), self.sizes
        if plan.skew and name in drawer._skewed(plan.skew, self.dims):
            sizes = {**sizes, plan.skew: sizes[plan.skew] + 1}
        shape = self.dims.shape(name, sizes)
        reason = why_not(value)
        if reason is None and math.prod(shape) > _MOST_ELEMENTS:
            reason = f"input {name} of shape {list(shape)} is too large to draw"
        if reason is not None:
            raise CannotDraw(reason)
        if hint.length_of is not None:
            return self._lengths(value, hint.length_of, shape, sizes)
        ints = attempt.ints or INT_STYLES[self.rng.integers(len(INT_STYLES))]
        manner = Manner(
            "whole" if attempt.whole and plan.kind == "ordinary" else plan.style,
            "end" if plan.from_end and are_indices(uses) else ints,
            tuple(size for one in self.dims.of for size in self.dims.shape(one, sizes)),
            drawer.extremes,
            drawer.mentioned,
            plan.flags,
            uses,
            self.turn,
            place,
            places=len(drawer.inputs),
        )
        unnamed = self.dims.unnamed if attempt.merge == "none" else ()
        return self._of(value.type, shape, manner, [dim in unnamed for dim in self.dims.of[name]])

    def _lengths(
        self,
        value: ValueInfoProto,
        dim: str | int,
        shape: tuple[int, ...],
        sizes: Mapping[str, int],
    ) -> Array:
        """Lengths: whole numbers bounded by the size of a dim."""
        dtype = numpy_dtype(draw_dims.element_type(value.type).tensor_type.elem_type)
        size = dim if isinstance(dim, int) else sizes.get(dim)
        if size is None:
            raise CannotDraw(f"input {value.name} is bounded by {dim}, which is no dim of an input")
        mode = self.attempt.lengths if self.plan.lengths == "ragged" else self.plan.lengths
        return lengths(self.rng, mode, math.prod(shape), size).reshape(shape).astype(dtype)

    def _of(
        self, type_: TypeProto, shape: tuple[int, ...], manner: Manner, loose: Sequence[bool]
    ) -> Value:
        """A value of any type. The items of a sequence differ in their `loose` axes."""
        match type_.WhichOneof("value"):
            case "sequence_type":
                inner, items = type_.sequence_type.elem_type, range(self.plan.items)
                grown = [
                    tuple(n + k * free for n, free in zip(shape, loose, strict=True)) for k in items
                ]
                return [self._of(inner, one, manner, loose) for one in grown]
            case "optional_type" if not self.plan.present:
                return None
            case "optional_type":
                return self._of(type_.optional_type.elem_type, shape, manner, loose)
        return draw_arrays.array(self.rng, type_.tensor_type.elem_type, shape, manner)
