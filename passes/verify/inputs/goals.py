"""What inputs are sought for: trip counts, branches, masks, and what the models mention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, product, zip_longest
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, helper

from passes.ir.protos import copied
from passes.loops.parts import graph_of
from passes.verify.executor import Array, Outcome
from passes.verify.inputs.arrays import is_float
from passes.verify.inputs.drawer import CannotDraw, Case, Drawer
from passes.verify.inputs.mentioned import Mentioned
from passes.verify.inputs.plans import ATTEMPTS
from passes.verify.inputs.search import Events, Goal, Move, sought
from passes.verify.inputs.uses import Uses

# trip counts

_COUNTED, _CAP, _TRIPS = (f"passes trips {part}" for part in ("counted", "cap", "capped"))
#: Orders of magnitude, the nearest first.
_POWERS = tuple(sorted(range(-24, 25, 3), key=abs))


@dataclass(frozen=True)
class Counts:
    """A Loop of the main graph, node `position`, which may run `most` times or `more` often."""

    model: ModelProto
    position: int
    most: int
    more: bool


def cases_by_count(
    counts: Counts, drawer: Drawer, *, seconds: float, base_dir: Path | None
) -> list[Case]:
    """A case each for a trip count of 0, 1, something between, `most` and more, as far as they
    are found in `seconds`."""
    most = counts.most
    wanted = frozenset({0, 1, max(1, most // 2), most, *((most + 1,) if counts.more else ())})

    def events(outcome: Outcome) -> Events:
        return frozenset({min(np.asarray(outcome.outputs[_COUNTED]).size, most + 1)})

    goal = Goal((partial(_numbers, most), _scales), events, wanted)
    bases = list(_bases(drawer))
    found = sought(goal, _counting(counts), bases, seconds=seconds, base_dir=base_dir)
    by_count = {min(reached): case for case, reached in found}
    return [_named(by_count[times], times, most) for times in sorted(by_count)]


def _named(case: Case, times: int, most: int) -> Case:
    if times > most:
        return replace(case, kind="invalid", label=f"more than {most} trips")
    return replace(case, kind="edge", label=f"{times} trip{'s' if times != 1 else ''}")


def _counting(counts: Counts) -> ModelProto:
    """A model that answers one element for each iteration, of which there are not many more than
    may be."""
    made = copied(counts.model)
    loop = made.graph.node[counts.position]
    body = graph_of(loop, "body")
    body.node.add(op_type="Identity", input=[body.input[0].name], output=[_COUNTED])
    body.output.append(helper.make_tensor_value_info(_COUNTED, TensorProto.INT64, None))
    loop.output.append(_COUNTED)
    cap = helper.make_tensor("value", TensorProto.INT64, [], [counts.most + 2])
    nodes = [helper.make_node("Constant", [], [_CAP], value=cap)]
    if loop.input[0]:  # the reference executor takes any whole numbers in any opset
        nodes.append(helper.make_node("Min", [loop.input[0], _CAP], [_TRIPS]))
    loop.input[0] = _TRIPS if loop.input[0] else _CAP
    nodes.append(copied(loop))
    del made.graph.node[counts.position :]
    made.graph.node.extend(nodes)
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info(_COUNTED, TensorProto.INT64, [None]))
    return made


def _bases(drawer: Drawer) -> Iterator[Case]:
    """Observed and drawn inputs; those that let a loop begin come first."""
    try:
        bases = [drawer.natural(index) for index in range(drawer.observed())]
        plans = drawer.plans()[:2]
        bases += [drawer.case(plan, n) for n in range(len(ATTEMPTS) // 2) for plan in plans]
    except CannotDraw:
        return
    for base in bases:
        arrays = _arrays(base)
        flags = [name for name, one in arrays.items() if one.size == 1 and one.dtype.kind == "b"]
        yield from (_with(base, flags, value) for value in (True, False)[: 2 if flags else 1])


def _with(base: Case, flags: Sequence[str], value: bool) -> Case:
    known = {name: np.full_like(np.asarray(base.feeds[name]), value) for name in flags}
    return replace(base, feeds={**base.feeds, **known})


def _may_begin(case: Case) -> bool:
    return all(bool(flag.all()) for flag in _arrays(case).values() if flag.dtype.kind == "b")


def _numbers(most: int, base: Case) -> Iterator[Move]:
    """Every number by itself, and all, are set to what may be a trip count."""
    arrays = _arrays(base) if _may_begin(base) else {}
    single = {name: array for name, array in arrays.items() if array.size == 1}
    known = {name: one for name, one in single.items() if _kind(one) in ("ints", "floats")}
    numbers = tuple(dict.fromkeys((most, 0, 1, most + 1, most - 1, most // 2, most + 2, -1)))
    for chosen in (*({name: one} for name, one in known.items()), *[known][: len(known) > 1]):
        yield Move("", partial(_set, chosen), numbers)


def _set(arrays: Mapping[str, Array], number: float) -> dict[str, Array]:
    return {
        name: np.full_like(one, max(0.0, number) if one.dtype.kind == "u" else number)
        for name, one in arrays.items()
    }


def _scales(base: Case) -> Iterator[Move]:
    """Every tensor of floats by itself is multiplied by powers of 2."""
    for name, array in _floats(base).items() if _may_begin(base) else ():
        yield Move("", partial(_scaled, name, array), _POWERS)


def _scaled(name: str, array: Array, power: float) -> dict[str, Array]:
    return {name: _times(array, 2.0**power)}


# branches: a rewrite that keeps the original beside a faster form of it is shown right only where
# the faster form runs, which may need inputs of a certain kind: decays near one, or small keys

_SMALL = 2.0**-4
#: How numbers become such that gates make them near one.
_SHIFT = 4.0


def cases_by_branch(
    model: ModelProto, drawer: Drawer, *, seconds: float, base_dir: Path | None
) -> list[Case]:
    """Cases that reach branches of Ifs which ordinary ones do not, as far as they are found in
    `seconds`."""

    def events(outcome: Outcome) -> Events:
        return frozenset(event for event in outcome.reached if event[1] in ("true", "false"))

    goal = Goal((_small_but_for_some,), events)
    longest = _longest(drawer)
    return [case for case, _ in sought(goal, model, longest, seconds=seconds, base_dir=base_dir)]


def _longest(drawer: Drawer) -> list[Case]:
    """The drawn case with the most elements."""
    drawn = []
    for plan in drawer.plans():
        try:
            drawn.append(drawer.case(plan, 0))
        except CannotDraw:
            continue
    ordinary = [case for case in drawn if case.kind in ("ordinary", "edge")] or drawn
    return sorted(ordinary, key=lambda case: -sum(one.size for one in _arrays(case).values()))[:1]


def _small_but_for_some(base: Case) -> Iterator[Move]:
    """Small numbers, but for one or two inputs that are near one, or large."""
    floats = {
        name: np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=1.0, neginf=-1.0)
        for name, value in _floats(base).items()
    }
    signed = {name: np.clip(value, -4.0, 4.0) for name, value in floats.items()}
    small = {name: value * _SMALL for name, value in signed.items()}
    ones = {name: 1.0 - np.minimum(np.abs(value), 1.0) * _SMALL for name, value in floats.items()}
    large = {name: value + _SHIFT for name, value in signed.items()}
    chosen = [names for count in (1, 2) for names in combinations(floats, count)]
    yield _once(base, small, "branches: small numbers")
    for names, (others, what) in product(chosen, ((ones, "near one"), (large, "large"))):
        feeds = {**small, **{name: others[name] for name in names}}
        yield _once(base, feeds, f"branches: {', '.join(names)} {what}")


# what the original did in no case yet

#: What a float input is multiplied by to reach what ordinary numbers do not.
_FACTORS = (0.0, -1.0, 64.0, -64.0, 2.0**-6, 4096.0, -4096.0)
#: Constants of the model that floats are set to, and inputs that are varied.
_MOST_NUMBERS, _MOST_INPUTS = 8, 8
#: What may be a size or a trip count is not set to more than this.
_LARGEST_SIZE = 1 << 16
#: Trip counts that no loop reaches.
_ENDLESS = (1 << 32, (1 << 63) - 1)


def whatever_is_new(mentioned: Mentioned) -> Goal:
    """What no case reached: one input differs, or all of a kind. Flags are turned both ways,
    numbers and tensors set to constants of the models, or scaled."""

    def moves(base: Case) -> Iterator[Move]:
        arrays = _varied(base)
        turns = [_turned(array, mentioned.numbers) for array in arrays.values()]
        for step in zip_longest(*turns):
            for name, value in zip(arrays, step, strict=True):
                if value is not None:
                    yield _once(base, {name: value})
        floats = {name: value for name, value in arrays.items() if name in _floats(base)}
        for factor in _FACTORS if len(floats) > 1 else ():
            yield _once(base, {name: _times(value, factor) for name, value in floats.items()})

    return Goal((moves,), lambda outcome: outcome.reached, most=96)


def what_is_mentioned(mentioned: Mentioned) -> Goal:
    """What the rewritten model mentions: single elements are set to each in turn, and every larger
    tensor of a kind is made of them."""
    numbers, strings = mentioned.suspect_numbers, mentioned.suspect_strings
    kinds: Mapping[str, Sequence[float | str]] = {
        "floats": numbers,
        "ints": numbers,
        "strings": strings,
    }

    def moves(base: Case) -> Iterator[Move]:
        for kind, values in kinds.items():
            alike = {name: one for name, one in _varied(base).items() if _kind(one) == kind}
            larger = {name: _filled(one, values) for name, one in alike.items() if one.size > 1}
            turned = {name: array for name, array in larger.items() if array is not None}
            if turned:
                yield _once(base, turned)
            for value, (name, array) in product(values, alike.items()):
                single = _filled(array, [value]) if array.size == 1 else None
                if single is not None:
                    yield _once(base, {name: single})

    return Goal((moves,), most=24)


def endless_but_for_conditions(uses: Uses) -> Goal:
    """Trip counts that no loop reaches: its condition ends it."""
    names = [name for name, of in uses.items() if "ended" in of and of <= {"data", "ended"}]

    def moves(base: Case) -> Iterator[Move]:
        for name, most in product(names, _ENDLESS):
            value = base.feeds.get(name)
            if isinstance(value, np.ndarray) and value.dtype == np.int64:
                yield _once(base, {name: np.full_like(value, most)})

    return Goal((moves,))


def _varied(base: Case) -> dict[str, Array]:
    """The inputs that are varied: the first ones that have elements."""
    sized = [(name, array) for name, array in _arrays(base).items() if array.size]
    return dict(sized[:_MOST_INPUTS])


def _kind(value: Array) -> str:
    if value.dtype.kind in "OSU":
        return "strings"
    if value.dtype.kind in "iu":
        return "ints"
    return "floats" if is_float(value.dtype) else ""


def _filled(value: Array, items: Sequence[float | str]) -> Array | None:
    """A tensor of these items, in turn; None where none fits it."""
    if value.dtype.kind in "iu":
        info = np.iinfo(value.dtype)
        largest = info.max if value.ndim > 1 else min(info.max, _LARGEST_SIZE)
        items = [int(n) for n in items if n == int(n) and info.min <= n <= largest]
    if not items:
        return None
    with np.errstate(all="ignore"):
        return np.resize(np.array(items, value.dtype), value.shape)


def _turned(value: Array, numbers: Sequence[float]) -> Iterator[Array]:
    if value.dtype.kind == "b":
        yield from (np.full_like(value, flag) for flag in (True, False))
    elif value.dtype.kind in "iu":
        whole = [int(number) for number in numbers if number == int(number)]
        steps = (0, 1, -1) if value.size == 1 else (0,)
        near = [number + step for step in steps for number in whole]
        for integer in dict.fromkeys((*near, 0, 1, 2, -1)):
            filled = _filled(value, [integer])
            if filled is not None:
                yield filled
    elif is_float(value.dtype):
        yield from (_times(value, factor) for factor in _FACTORS)
        for number in numbers[:_MOST_NUMBERS]:
            with np.errstate(all="ignore"):
                yield np.full_like(value, number)


# arrays


def _arrays(case: Case) -> dict[str, Array]:
    return {name: value for name, value in case.feeds.items() if isinstance(value, np.ndarray)}


def _floats(case: Case) -> dict[str, Array]:
    """The tensors of real floats that have elements."""
    return {
        name: array for name, array in _arrays(case).items() if is_float(array.dtype) and array.size
    }


def _times(value: Array, factor: float) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(value.astype(np.float64) * factor).astype(value.dtype)


def _once(base: Case, feeds: Mapping[str, Array], label: str = "") -> Move:
    """One change, with arrays of the dtypes of the base."""
    made = {name: value.astype(np.asarray(base.feeds[name]).dtype) for name, value in feeds.items()}
    return Move(label or f"{', '.join(feeds)} turned", lambda number: made)
