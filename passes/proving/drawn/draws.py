"""The sizes, and integers where they decide something, at which two models are compared."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from time import monotonic

import numpy as np

from passes.ir.model import Model
from passes.types import signature
from passes.verify.executor import Feeds
from passes.verify.inputs.drawer import CannotDraw, Drawer
from passes.verify.inputs.hints import model_hints
from passes.verify.inputs.lessons import Lessons
from passes.verify.inputs.mentioned import Mentioned
from passes.verify.inputs.plans import Plan
from passes.verify.inputs.uses import uses_of
from passes.verify.reference import ReferenceExecutor

#: The size of each symbol, in order.
SIZES = ((2, 3, 1, 4), (3, 1, 2), (1, 3, 2), (1,), (2,), (0,), (3,))
#: Elements of the inputs of a case.
_MOST_ELEMENTS = 20_000
_ATTEMPTS = 6
#: Seconds for learning what inputs a model takes.
_LEARNING = 2.0


def drawer_of(before: Model, after: Model) -> Drawer:
    """The drawer of the inputs of a pair."""
    mentioned = Mentioned.of(before.proto, after.proto)
    inputs = tuple(signature.inputs(before.proto.graph))
    return Drawer(
        inputs, hints=model_hints(before), mentioned=mentioned, uses=uses_of(before.proto)
    )


def learned(before: Model, drawer: Drawer) -> Drawer | None:
    """The drawer with what failures of the original teach of its inputs."""
    executor = ReferenceExecutor(keep=2)
    lessons = Lessons(before.proto, drawer, executor, before.base_dir, _LEARNING)
    try:
        needs = lessons.learn(monotonic() + _LEARNING)
    except TimeoutError:
        return None
    return None if needs is None else replace(drawer, needs=needs)


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
        total = sum(math.prod(one.shape) for one in feeds.values() if isinstance(one, np.ndarray))
        if total > _MOST_ELEMENTS:
            raise CannotDraw(f"inputs of {total} elements are too large")
        yield feeds if attempt % 2 else _counted(feeds, names, 2 * place + attempt // 2)


def negated(feeds: Feeds, names: frozenset[str]) -> Feeds:
    """Inputs with the other sign in the whole numbers of these names."""
    return {
        name: np.asarray(np.negative(value))
        if name in names and isinstance(value, np.ndarray) and value.dtype.kind == "i"
        else value
        for name, value in feeds.items()
    }


def _counted(feeds: Feeds, names: frozenset[str], turn: int) -> Feeds:
    """Inputs with 0 to 3 for each single whole number of these names, another one each turn."""
    single = [
        name
        for name, value in feeds.items()
        if name in names
        and isinstance(value, np.ndarray)
        and value.dtype.kind in "iu"
        and value.size == 1
    ]
    return {
        **feeds,
        **{name: np.full_like(feeds[name], (turn + n) % 4) for n, name in enumerate(single)},
    }
