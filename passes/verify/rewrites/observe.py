"""Runs a whole model to see which values its sites really get."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from onnx import ModelProto, NodeProto

from passes.engine.rounds import Rewritten
from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.ir.scope import Key
from passes.types.signature import inputs as signature_inputs
from passes.verify.executor import CannotRun, Feeds, ModelFailed, Value
from passes.verify.inputs.drawer import CannotDraw, Drawer, Hint
from passes.verify.inputs.lessons import Lessons
from passes.verify.inputs.plans import ATTEMPTS
from passes.verify.reference import ReferenceExecutor
from passes.verify.run_cost import RunCost

_RUNS = 3
_PER_SITE = 4

Seen = Mapping[Key, Sequence[Mapping[str, Value]]]


def observe(
    model: ModelProto,
    rewritten: Sequence[Rewritten],
    hints: Mapping[str, Hint],
    *,
    base_dir: Path | None,
    given: Sequence[Feeds] = (),
    seed: int = 0,
    timeout: float = 5.0,
    lessons: Lessons | None = None,
) -> Seen:
    """The values that each rewritten site reads when the model runs, by the site's key.

    On the given inputs, and on drawn ones that the model takes, be it by what `lessons` learn;
    nothing where it takes none.
    It ends once every site was seen often enough, or after two runs' worth of time.
    """
    if not rewritten:
        return {}
    copy = copied(model)
    keys: dict[str, Key] = {}
    watch: dict[str, list[str]] = {}
    for number, one in enumerate(rewritten):
        node = node_at(copy, key_of(one))
        node.name = f"watched {number}"
        keys[node.name] = key_of(one)
        watch[node.name] = one.reads
    executor = ReferenceExecutor(keep=1)
    found: dict[Key, list[Mapping[str, Value]]] = {}
    end = time.monotonic() + 2 * timeout
    drawer = Drawer(tuple(signature_inputs(model.graph)), seed, hints)
    lessons = lessons or Lessons(model, drawer, executor, base_dir, timeout)
    for feeds in _feeds(drawer, given, lessons, RunCost.of(model), end):
        if time.monotonic() > end or _seen_enough(found, watch):
            break
        try:
            outcome = executor.run(copy, feeds, base_dir=base_dir, timeout=timeout, watch=watch)
        except (ModelFailed, CannotRun):
            continue  # inputs that the model does not take tell nothing of its sites
        for name, values in outcome.seen.items():
            room = found.setdefault(keys[name], [])
            room.extend(values[: max(0, _PER_SITE - len(room))])
    return found


def _seen_enough(found: Seen, watch: Mapping[str, Sequence[str]]) -> bool:
    return len(found) == len(watch) and all(len(room) >= _PER_SITE for room in found.values())


def key_of(rewritten: Rewritten) -> Key:
    """Return the key of a site in its model."""
    return (*rewritten.place.scope.key, rewritten.place.index)


def node_at(model: ModelProto, key: Key) -> NodeProto:
    """The node that a key means in a model."""
    position, *steps = key
    owners = [owner for _, owner in scoping.owners(model)]
    owner = owners[int(position)]
    while len(steps) > 1:
        index, attribute, *steps = steps
        owner = dict(scoping.subgraphs(owner.node[int(index)]))[str(attribute)]
    return owner.node[int(steps[0])]


def _feeds(
    drawer: Drawer, given: Sequence[Feeds], lessons: Lessons, cost: RunCost, deadline: float
) -> Iterable[Feeds]:
    yield from given
    if cost.hopeless:
        return
    try:
        needs = lessons.learn(deadline)
    except TimeoutError:
        return
    attempts = range(len(ATTEMPTS) if needs is None else 1)
    drawer = replace(drawer, needs=needs)
    # on special values runtimes differ, and later nothing shows that these were such
    plans = [plan for plan in drawer.plans() if plan.kind != "special"]
    for plan in plans[:_RUNS]:
        for attempt in attempts:
            try:
                feeds = drawer.case(plan, attempt).feeds
            except CannotDraw:
                return
            if cost.is_affordable(feeds):
                yield feeds
