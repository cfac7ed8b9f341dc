"""Records what cases reached: both values of a condition or mask, a loop run never, once, more
often."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import get_args

import numpy as np
from onnx import ModelProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.errors import ChosenByCaller
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.places import Key, Place, is_loop, scopes, walk
from passes.ir.scope import free_names
from passes.ir.site import Site
from passes.loops.form import Kind, LoopForm
from passes.operators.table import traits_of
from passes.operators.traits import Values
from passes.verify.executor import Array, Did, Event
from passes.verify.inputs.arrays import is_float
from passes.verify.inputs.draw import Case
from passes.verify.inputs.mentioned import Mentioned
from passes.verify.inputs.uses import Uses

#: What a float input is multiplied by to reach what ordinary numbers do not.
_FACTORS = (0.0, -1.0, 64.0, -64.0, 2.0**-6, 4096.0, -4096.0)
#: Constants of the model that floats are set to, and inputs that are varied.
_MOST_NUMBERS, _MOST_INPUTS = 8, 8
#: What may be a size or a trip count is not set to more than this.
_LARGEST_SIZE = 1 << 16
#: Trip counts that no loop reaches.
_ENDLESS = (1 << 32, (1 << 63) - 1)
_TRIPS: tuple[Did, ...] = ("0", "1", "more", "ended")
_DONE: tuple[Did, ...] = get_args(Did)
_SENTENCES: dict[Did, str] = {
    "true": "the condition of {} was never true",
    "false": "the condition of {} was never false",
    "ended": "the condition of {} was never false",
    "0": "{} always ran an iteration",
    "1": "{} never ran just once",
    "more": "{} never ran more than once",
    "on": "the mask of {} never held",
    "off": "the mask of {} always held",
}


def unreached(model: ModelProto, reached: AbstractSet[Event]) -> dict[Event, str]:
    """Return what the Ifs, loops and masks of a model may do and have not done, with their paths.

    Of functions only those that ran; of a loop whose trip count is static nothing, and of a mask
    that no number of an input changes.
    """
    loaded = Model(model)
    ran = {key[0] for key, _ in reached} | {0}
    left: dict[Event, str] = {}
    for scope in scopes(model):
        if scope.key[0] in ran:
            for place in walk(scope):
                key: Key = (*place.scope.key, place.index)
                done = {did for did in _DONE if (key, did) in reached}
                missing = _missing(loaded, place, done)
                left |= {(key, did): place.path for did in missing}
    return left


def _missing(model: Model, place: Place, done: AbstractSet[Did]) -> Sequence[Did]:
    """Return what a node may do and has not done."""
    if op_of(place.node) == "If":
        return [did for did in ("true", "false") if did not in done]
    if op_of(place.node) == "Where":
        one_way = len(done) == 1 and "partly" not in done and _varies(model, place)
        return ["off" if "on" in done else "on"] if one_way else []
    if not is_loop(place.node) or done >= set(_TRIPS):
        return []
    return [did for did in _possible(model, place) if did not in done]


def _varies(model: Model, place: Place) -> bool:
    """Return whether the mask of a Where may depend on the values of an input, and not on sizes
    alone."""
    pending = [(place.scope, place.node.input[0])]
    seen: set[tuple[Key, str]] = set()
    while pending:
        start, name = pending.pop()
        scope = model.home(start, name)
        if scope is None or (scope.key, name) in seen:
            continue
        seen.add((scope.key, name))
        if name in model.index(scope.owner).inputs:
            return True
        node = model.producer(scope.owner, name)
        if node is not None and traits_of(node).values is not Values.SIZES:
            pending += [(scope, free) for free in free_names(node)]
    return False


def _possible(model: Model, place: Place) -> tuple[Did, ...]:
    """Return what a loop may do, given what is known of its trip count."""
    opset = model.opset(place.scope.owner)
    site = Site(model, place, opset, opset, Names(()), model.types)
    try:
        form = LoopForm.from_node(place.node, opset)
    except ChosenByCaller:
        return _TRIPS
    count = TripCount(site, form)
    if count.constant is not None:
        return ()
    ends = form.kind is Kind.LOOP and count.conditional
    return _TRIPS if ends else _TRIPS[:-1]


def sentence(did: Did, path: str) -> str:
    """Return a sentence about what was not reached."""
    return _SENTENCES[did].format(path)


def nearby(base: Case, numbers: Sequence[float]) -> Iterator[Case]:
    """Cases beside one, that differ in one input or in all of a kind: flags both ways, numbers and
    tensors set to constants of the model or scaled."""
    arrays = {name: value for name, value in base.feeds.items() if isinstance(value, np.ndarray)}
    names = [name for name, array in arrays.items() if array.size][:_MOST_INPUTS]
    turns = [_turned(arrays[name], numbers) for name in names]
    for step in itertools.zip_longest(*turns):
        for name, value in zip(names, step, strict=True):
            if value is not None:
                yield _with(base, {name: value})
    floats = [name for name in names if _scales(arrays[name])]
    for factor in _FACTORS if len(floats) > 1 else ():
        yield _with(base, {name: _times(arrays[name], factor) for name in floats})


def suspects(base: Case, mentioned: Mentioned) -> Iterator[Case]:
    """Cases beside one with what the rewritten model mentions: single elements set to each in
    turn, and every larger tensor of a kind made of them."""
    arrays = {name: value for name, value in base.feeds.items() if isinstance(value, np.ndarray)}
    names = [name for name, array in arrays.items() if array.size][:_MOST_INPUTS]
    for kind in ("floats", "ints", "strings"):
        alike = {name: arrays[name] for name in names if _kind(arrays[name]) == kind}
        values: Sequence[float | str] = mentioned.suspect_numbers
        if kind == "strings":
            values = mentioned.suspect_strings
        larger = {name: _filled(array, values) for name, array in alike.items() if array.size > 1}
        turned = {name: array for name, array in larger.items() if array is not None}
        if turned:
            yield _with(base, turned)
        for value, name in itertools.product(values, alike):
            single = _filled(arrays[name], [value]) if arrays[name].size == 1 else None
            if single is not None:
                yield _with(base, {name: single})


def endless_but_for_conditions(base: Case, uses: Uses) -> Iterator[Case]:
    """Cases beside one with trip counts that no loop reaches: its condition ends it."""
    for name, of_input in uses.items():
        value = base.feeds.get(name)
        counts = "ended" in of_input and of_input <= {"data", "ended"}
        if counts and isinstance(value, np.ndarray) and value.dtype == np.int64:
            yield from (_with(base, {name: np.full_like(value, most)}) for most in _ENDLESS)


def _kind(value: Array) -> str:
    if value.dtype.kind in "OSU":
        return "strings"
    if value.dtype.kind in "iu":
        return "ints"
    return "floats" if _scales(value) else ""


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


def _with(base: Case, turned: dict[str, Array]) -> Case:
    label = f"{', '.join(turned)} turned"
    return replace(base, feeds={**base.feeds, **turned}, kind="edge", exact=False, label=label)


def _turned(value: Array, numbers: Sequence[float]) -> Iterator[Array]:
    if value.dtype.kind == "b":
        yield from (np.full_like(value, flag) for flag in (True, False))
    elif value.dtype.kind in "iu":
        whole = [int(number) for number in numbers if number == int(number)]
        info = np.iinfo(value.dtype)
        near = (
            [number + step for step in (0, 1, -1) for number in whole] if value.size == 1 else whole
        )
        for integer in dict.fromkeys((*near, 0, 1, 2, -1)):
            if info.min <= integer <= info.max and (value.ndim > 1 or integer <= _LARGEST_SIZE):
                yield np.full_like(value, integer)
    elif _scales(value):
        yield from (_times(value, factor) for factor in _FACTORS)
        for number in numbers[:_MOST_NUMBERS]:
            with np.errstate(all="ignore"):
                yield np.full_like(value, number)


def _scales(value: Array) -> bool:
    return value.dtype.kind != "c" and is_float(value.dtype)


def _times(value: Array, factor: float) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(value.astype(np.float64) * factor).astype(value.dtype)
