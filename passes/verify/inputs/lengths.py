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
from passes.verify.executor import Ended, Executor, Feeds, Outcome, TookTooLong
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
    sizes: Mapping[str, int],
    executor: Executor,
    *,
    label: str = "of a size",
    numbers: Mapping[str, int] = _NONE,
    timeout: float = _LEARNING,
) -> tuple[Drawer, Feeds, Outcome]:
    """Inputs as in use that an executor runs the model on, the drawer with what the model taught,
    and the outcome.

    `sizes` are those of symbols, unless they follow from what the model needs; the inputs of some
    names are `numbers`; `label` decides what is drawn; `timeout` is in seconds.

    Raises:
        DoesNotFit: none are found, or the model takes too long.
    """
    why, attempts = "", list(range(len(ATTEMPTS)))
    while attempts:
        attempt = attempts.pop(0)
        places = enumerate(drawer.symbols())
        fixed = tuple((place, sizes[name]) for place, name in places if name in sizes)
        plan = Plan("ordinary", label, fixed=fixed, lengths="full", style="moderate")
        try:
            drawn = drawer.case(plan, attempt).feeds
            chosen = {name: np.full_like(drawn[name], one) for name, one in numbers.items()}
            feeds = in_use(model, {**drawn, **chosen})
            run = executor.run(model.proto, feeds, base_dir=model.base_dir, timeout=timeout)
            return drawer, feeds, run
        except TookTooLong as error:
            raise DoesNotFit(f"the model {error}") from error
        except (Ended, CannotDraw) as error:
            why = why or f"{error}"
        if not attempt and drawer.needs is None:
            reference = ReferenceExecutor()
            lessons = Lessons(model.proto, drawer, reference, model.base_dir, _LEARNING)
            with suppress(TimeoutError):
                drawer = replace(drawer, needs=lessons.learn(time.monotonic() + _LEARNING))
            attempts[:0] = [0] if drawer.needs is not None else []
    raise DoesNotFit(f"no inputs are found that the model takes ({why}); --inputs gives some")
