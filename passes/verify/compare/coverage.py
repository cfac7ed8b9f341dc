"""Records what cases reached: both values of a condition or mask, a loop run never, once, more
often."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import get_args

from onnx import ModelProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.errors import ChosenByCaller
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import Key, Place, is_loop, scopes, walk
from passes.ir.scope import free_names
from passes.ir.site import Site
from passes.loops.form import Kind, LoopForm
from passes.operators.table import traits_of
from passes.operators.traits import Values
from passes.verify.executor import Did, Event

_TRIPS: tuple[Did, ...] = ("0", "1", "more", "ended")
_DONE: tuple[Did, ...] = get_args(Did)
_WORDS: dict[Did, str] = {
    "true": "a true condition of {}",
    "false": "a false condition of {}",
    "ended": "an end of {} by its condition",
    "0": "zero iterations of {}",
    "1": "one iteration of {}",
    "more": "several iterations of {}",
    "on": "a mask of {} that holds",
    "off": "a mask of {} that does not hold",
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
    try:
        form = LoopForm.from_node(place.node, opset)
    except ChosenByCaller:
        return _TRIPS
    count = TripCount(Site.at(model, place), form)
    if count.constant is not None:
        return ()
    ends = form.kind is Kind.LOOP and count.conditional
    return _TRIPS if ends else _TRIPS[:-1]


def untested(did: Did, path: str) -> str:
    """Return a few words about what was not reached."""
    return _WORDS[did].format(path)
