"""Inputs for what a proof did not settle: sizes and numbers that make its conditions hold, and not
hold, and floats around the constants that are compared."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import mul
from typing import Any

import numpy as np
from onnx import ModelProto, ValueInfoProto

from passes.proving.terms.term import Term, subterms
from passes.types import signature
from passes.types.dtypes import is_float
from passes.types.value_types import dims_of, elem_type_of
from passes.verify.executor import Array, Feeds
from passes.verify.inputs import arrays
from passes.verify.inputs.arrays import IntStyle, Manner, Style
from passes.verify.inputs.drawer import Case, why_not

#: A size, by its name or by its input and axis; or the number that an input holds.
Unknown = tuple[str, object]
Numbers = Mapping[Unknown, int]

#: Values that are tried of every unknown, and how many of one that is divided.
_FEW, _DIVIDED = (2, 3, 1, 5), 34
#: Rounds in which an unknown is solved from values of the others.
_ROUNDS = 12
#: Values of one unknown, terms that are evaluated, and cases.
_MOST_VALUES, _MOST_WORK, _MOST_CASES = 40, 300_000, 72
#: Assignments that are kept, each with another outcome of the conditions, and conditions.
_MOST_KEPT, _MOST_CONDITIONS = 20, 40
#: Sizes, and elements of an input, that are drawn at most.
_LONGEST, _MOST_ELEMENTS = 1 << 14, 1 << 20
_INTS: tuple[IntStyle, ...] = ("below", "small", "zeros", "sizes")
#: Constants around which floats are drawn.
_MOST_CONSTANTS = 4


@dataclass(frozen=True)
class Clues:
    """The decisions and terms on which the answer depends where a proof ended."""

    decisions: tuple[tuple[Term, bool], ...] = ()
    terms: tuple[Term, ...] = ()

    def _parts(self) -> Iterator[Term]:
        for term in (*(condition for condition, _ in self.decisions), *self.terms):
            yield from subterms(term)

    def unknowns(self) -> set[Unknown]:
        """The sizes and inputs that the terms read; if they read none, those of the decisions."""
        of_terms = {_unknown(one) for term in self.terms for one in subterms(term)} - {None}
        found = of_terms or {_unknown(one) for one in self._parts()}
        return {one for one in found if one is not None}

    def conditions(self) -> list[Term]:
        """The comparisons of whole numbers in them."""
        found = dict.fromkeys(one for one in self._parts() if one.op in ("ge0", "eq0"))
        return list(found)[:_MOST_CONDITIONS]

    def constants(self) -> list[float]:
        """The magnitudes of floats that are mentioned, the largest first."""
        data = (one.data for one in self._parts() if one.op == "const")
        found = {abs(float(one[2])) for one in data if isinstance(one, tuple) and "float" in one[0]}
        return sorted((one for one in found if np.isfinite(one) and one), reverse=True)


NO_CLUES = Clues()


def written(unknown: Unknown) -> str:
    """A size or an input as formulas have it."""
    name = unknown[1]
    return "size of axis {1} of {0!r}".format(*name) if isinstance(name, tuple) else f"{name}"


def sizes_of(value: ValueInfoProto) -> list[int | Unknown]:
    """The sizes of an input, those that are free by name, or by input and axis."""
    return [
        dim if isinstance(dim, int) else ("dim", dim or (value.name, axis))
        for axis, dim in enumerate(dims_of(value.type) or ())
    ]


def cases_of(model: ModelProto, clues: Clues, seed: int = 0) -> list[Case]:
    """Cases for a model on which what was not proven depends, the most telling first."""
    inputs = signature.inputs(model.graph)
    if not (clues.decisions or clues.terms) or any(why_not(value) for value in inputs):
        return []
    found = list(_assignments(clues)) or [{}]
    manners = list(_manners(clues.constants()))
    cases: list[Case] = []
    pairs = sorted(
        itertools.product(range(len(manners)), range(len(found))), key=lambda one: (sum(one), one)
    )
    for turn, (manner, number) in enumerate(pairs[:_MOST_CASES]):
        rng = np.random.default_rng([seed, turn])
        feeds = _feeds(rng, inputs, found[number], manners[manner], turn)
        if feeds is not None:
            cases.append(Case(feeds, "edge", False, f"sought by the proof {turn + 1}"))
    return cases


# whole numbers


def _assignments(clues: Clues) -> Iterator[dict[Unknown, int]]:
    """Values of sizes and inputs, two for each outcome of the conditions: the first that has it,
    and the last, which is where a condition turns; first those of the path on which the proof
    ended."""
    conditions = clues.conditions()
    values = _candidates(conditions)
    kept: dict[tuple[bool | None, ...], dict[Unknown, int]] = {}
    last: dict[tuple[bool | None, ...], dict[Unknown, int]] = {}
    work = sum(1 for condition in conditions for _ in subterms(condition))
    for assigned in itertools.islice(_combined(values), _MOST_WORK // max(work, 50)):
        known: dict[Any, int | None] = {**assigned}
        found = (_value(condition, known) for condition in conditions)
        outcome = tuple(None if one is None else bool(one) for one in found)
        kept.setdefault(outcome, assigned)
        last[outcome] = assigned

    def misses(assigned: Mapping[Unknown, int]) -> int:
        outcomes = (
            (_value(condition, {**assigned}), holds) for condition, holds in clues.decisions
        )
        return sum(value is not None and bool(value) is not holds for value, holds in outcomes)

    every = [*kept.values(), *(last[one] for one in kept if last[one] is not kept[one])]
    yield from sorted(every, key=misses)[:_MOST_KEPT]


def _combined(values: Mapping[Unknown, Sequence[int]]) -> Iterator[dict[Unknown, int]]:
    """Combinations of values: few unknowns of other values than their first ones come first."""
    base = {one: known[0] for one, known in values.items()}
    for count in range(len(values) + 1):
        for chosen in itertools.combinations(values, count):
            for picked in itertools.product(*(values[one][1:] for one in chosen)):
                yield {**base, **dict(zip(chosen, picked, strict=True))}


def _candidates(conditions: Sequence[Term]) -> dict[Unknown, list[int]]:
    """Values of each unknown in these conditions: a few, and those near where one of them turns
    while the others are as they are."""
    unknowns = map(_unknown, subterms(*conditions))
    found = {one: dict.fromkeys(_FEW) for one in unknowns if one is not None}
    for place in range(_ROUNDS):  # what one condition asks for, another one compares
        given = {one: [*known][min(place, len(known) - 1)] for one, known in found.items()}
        for condition, unknown in itertools.product(conditions, found):
            found[unknown].update(dict.fromkeys(_turns(condition.args[0], unknown, given)))
    for term in subterms(*conditions):
        if term.op == "idiv":
            for unknown in found.keys() & set(map(_unknown, subterms(term))):
                found[unknown].update(dict.fromkeys(range(_DIVIDED)))
    return {
        unknown: [one for one in values if unknown[0] == "input" or 0 <= one <= _LONGEST][
            :_MOST_VALUES
        ]
        for unknown, values in found.items()
    }


def _turns(value: Term, unknown: Unknown, given: Numbers) -> list[int]:
    """The values of an unknown around which a sum changes its sign, if it grows evenly."""
    ends = [_value(value, {**given, unknown: at}) for at in (64, 65, 1 << 20)]
    if None in ends:
        return []
    first, second, far = (int(one or 0) for one in ends)
    slope = second - first
    if not slope or far - first != slope * ((1 << 20) - 64):
        return []
    root = 64 - first // slope
    return [root, root + 1, root - 1, root - 2]


def _unknown(term: Term) -> Unknown | None:
    """The size or the input that a term stands for."""
    if term.op == "dim":
        return "dim", term.data
    is_cast = term.op == "ew" and isinstance(term.data, tuple) and term.data[0] == "Cast"
    data = (term.args[0] if is_cast else term).data
    if isinstance(data, tuple) and data[:1] == ("input",) and "int" in str(data[-1]):
        return "input", data[1]
    return None


def _value(term: Term, known: dict[Any, int | None]) -> int | None:
    """The whole number, or the truth, of a term; None where that depends on something else.

    `known` are the unknowns, and gets the values of terms.
    """
    pending = [term]
    while pending:
        one = pending[-1]
        parts = one.args if one.op in _COMPUTED else ()
        missing = [part for part in parts if part not in known]
        if not missing:
            known[pending.pop()] = _computed(one, known)
        pending += missing
    return known[term]


def _computed(term: Term, known: Mapping[Any, int | None]) -> int | None:
    """The value of a term by those of its parts."""
    if term.op not in _COMPUTED:
        unknown = _unknown(term)
        return None if unknown is None else known.get(unknown)
    numbers = [value for one in term.args if (value := known[one]) is not None]
    if len(numbers) < len(term.args) or (term.op == "idiv" and numbers[1] <= 0):
        return None
    if term.op == "poly":
        return int(sum(map(mul, term.data, numbers)))
    return _COMPUTED[term.op](*numbers)


_COMPUTED: Mapping[str, Callable[..., int]] = {
    "true": lambda: True,
    "false": lambda: False,
    "poly": sum,
    "mono": lambda *factors: prod(factors),
    "idiv": lambda value, by: value // by,
    "min": min,
    "max": max,
    "ge0": lambda value: value >= 0,
    "eq0": lambda value: value == 0,
    "not": lambda value: not value,
    "and": lambda *values: all(values),
    "or": lambda *values: any(values),
    "ite": lambda condition, left, right: left if condition else right,
}


# arrays


@dataclass(frozen=True)
class _Floats:
    """A way to draw floats: in a `style`, times `scale`, which is that of one input in turn where
    it is `alone`."""

    style: Style
    scale: float = 1.0
    alone: bool = False


def _manners(constants: Sequence[float]) -> Iterator[_Floats]:
    """Ways to draw floats such that comparisons with these constants come out both ways."""
    yield _Floats("moderate")
    for constant in constants[:_MOST_CONSTANTS]:
        yield _Floats("moderate", 2 * constant)
        yield _Floats("whole", constant)
        yield _Floats("whole", constant, alone=True)
    yield _Floats("whole")
    yield _Floats("special")


def _feeds(
    rng: np.random.Generator,
    inputs: Sequence[ValueInfoProto],
    given: Numbers,
    floats: _Floats,
    turn: int,
) -> Feeds | None:
    """The inputs; None where they are too large."""
    feeds: dict[str, Array] = {}
    sizes: dict[object, int] = {}
    for number, value in enumerate(inputs):
        shape = [
            given.get(size, sizes.setdefault(size, _FEW[len(sizes) % len(_FEW)]))
            if isinstance(size, tuple)
            else size
            for size in sizes_of(value)
        ]
        if prod(shape) > _MOST_ELEMENTS:
            return None
        ints = _INTS[turn % len(_INTS)]
        # the largest numbers overflow within a sum or not, by the order in which it is added up
        manner = Manner(floats.style, ints, (*shape, *sizes.values()), extremes=False, turn=turn)
        made = arrays.array(rng, elem_type_of(value.type), shape, manner)
        known = given.get(("input", value.name))
        if known is not None and made.dtype.kind in "iu":
            ends = np.iinfo(made.dtype)
            made = np.full(shape, min(max(known, ends.min), ends.max), made.dtype)
        elif is_float(made.dtype) and made.dtype.kind != "c":
            apart = floats.alone and number != turn % len(inputs)
            with np.errstate(all="ignore"):
                scaled = made * made.dtype.type(1.0 if apart else floats.scale)
            made = scaled.astype(made.dtype)
        feeds[value.name] = made
    return feeds
