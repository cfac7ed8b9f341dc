"""The size that decides how many iterations a model runs, and inputs of a chosen size."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from passes.analysis.trip_count.trip_count import TripCount
from passes.errors import BadModel, ChosenByCaller, DoesNotFit
from passes.ir.model import Model
from passes.ir.places import is_loop
from passes.ir.scope import walk_model
from passes.loops.form import LoopForm
from passes.rule import Site
from passes.types.signature import inputs as signature_inputs
from passes.verify.executor import Ended, Executor, Feeds, Outcome
from passes.verify.inputs.dims import declared
from passes.verify.inputs.drawer import CannotDraw, Drawer
from passes.verify.inputs.in_use import in_use
from passes.verify.inputs.lessons import Lessons
from passes.verify.inputs.plans import ATTEMPTS, Plan
from passes.verify.reference import ReferenceExecutor

#: Seconds to learn which inputs a model takes.
_LEARNING = 10.0
_NONE: Mapping[str, int] = MappingProxyType({})


def trip_counts(model: Model) -> Iterator[TripCount]:
    """The trip counts of the loops in the main graph."""
    opset = model.opset()
    for place in walk_model(model.proto):
        if is_loop(place.node) and place.scope.outer is None:
            try:
                form = LoopForm.from_node(place.node, opset)
            except (BadModel, ChosenByCaller):
                continue
            yield TripCount(Site.at(model, place), form)


def length_of(model: Model, free: Sequence[str]) -> str:
    """The first free symbol that the trip count of a loop depends on; where that is unknown, the
    one of the fewest inputs, for more have a batch; empty if there is none, or no loop."""
    counts = [trips.size for trips in trip_counts(model)]
    named = [str(atom) for count in counts for atom, _ in count.terms]
    if any(count.number is None for count in counts):
        shapes = [declared(value.type) or () for value in signature_inputs(model.proto.graph)]
        named += sorted(free, key=lambda name: sum(name in shape for shape in shapes))
    return next((name for name in named if name in free), "")


def taken(
    model: Model,
    drawer: Drawer,
    plan: Plan,
    executor: Executor,
    numbers: Mapping[str, int] = _NONE,
) -> tuple[Drawer, Feeds, Outcome]:
    """Inputs as in use that an executor runs the model on, the drawer with what the model taught,
    and the outcome. The inputs of some names are `numbers`.

    Raises:
        DoesNotFit: none are found.
    """
    why = ""
    for attempt in range(len(ATTEMPTS)):
        try:
            drawn = drawer.case(plan, attempt).feeds
            chosen = {name: np.full_like(drawn[name], one) for name, one in numbers.items()}
            feeds = in_use(model, {**drawn, **chosen})
            run = executor.run(model.proto, feeds, base_dir=model.base_dir, timeout=_LEARNING)
            return drawer, feeds, run
        except (Ended, CannotDraw) as error:
            why = why or f"{error}"
        if not attempt and drawer.needs is None:
            reference = ReferenceExecutor()
            lessons = Lessons(model.proto, drawer, reference, model.base_dir, _LEARNING)
            with suppress(TimeoutError):
                drawer = replace(drawer, needs=lessons.learn(time.monotonic() + _LEARNING))
    raise DoesNotFit(f"no inputs are found that the model takes ({why}); --inputs gives some")
