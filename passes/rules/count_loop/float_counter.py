"""Counters that are floats: the trip count of their loop where all numbers are constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from passes.analysis.integers.integers import Integers
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.operators.comparisons import ORDERINGS
from passes.operators.exactness import Array
from passes.operators.functions import NUMPY
from passes.rule import Site

_MOST_TRIPS = 1_000_000
_STEPS = ("Add", "Sub")


def exact_trips(site: Site, form: LoopForm, part: NodeProto | None) -> int | None:
    """The trip count of a loop that a float counter ends, once it started.

    The additions are done here as in the model, in its own type, so they round alike. None where
    a number is not constant, the condition has another form, or it would take too long.
    """
    if part is None or op_of(part) not in ORDERINGS:
        return None
    fixed = _Fixed(site, form)
    for position in (0, 1):
        counter = fixed.counter(part.input[position])
        bound = fixed.value(part.input[1 - position])
        if counter is not None and bound is not None:
            return _simulate(op_of(part), counter, bound, position == 1)
    return None


@dataclass(frozen=True)
class _Counter:
    """A number that starts at `initial` and makes a `step` in every iteration.

    `after`: the condition reads it after the step.
    """

    initial: Array
    op: str
    step: Array
    after: bool


@dataclass(frozen=True)
class _Fixed:
    site: Site
    form: LoopForm

    def value(self, name: str) -> Array | None:
        """The value of a scalar float constant, as the body sees it."""
        carried = self.form.unchanged.get(name)
        if carried is not None:
            return _single(self.site.constant(carried.initial))
        return _single(Integers(self.site, self.form.body).constant_inside(name))

    def counter(self, name: str) -> _Counter | None:
        """The counter that a value is, before or after its step."""
        for carried in self.form.carried:
            initial = _single(self.site.constant(carried.initial))
            if initial is None:
                continue
            producer = Integers(self.site, self.form.body).source(carried.body_output)
            if (
                producer is None
                or op_of(producer) not in _STEPS
                or producer.input[0] != carried.body_input
            ):
                continue
            step = self.value(producer.input[1])
            if step is not None and name in (carried.body_input, carried.body_output):
                return _Counter(initial, op_of(producer), step, name == carried.body_output)
        return None


def _single(array: Array | None) -> Array | None:
    if array is None or array.size != 1 or array.dtype not in (np.float32, np.float64, np.float16):
        return None
    return array.reshape(())


def _simulate(op: str, counter: _Counter, bound: Array, second: bool) -> int | None:
    value = counter.initial
    with np.errstate(all="ignore"):
        for trips in range(1, _MOST_TRIPS):
            after = NUMPY[counter.op](value, counter.step)
            seen = after if counter.after else value
            sides = (bound, seen) if second else (seen, bound)
            if not NUMPY[op](*sides):
                return trips
            value = after
    return None
