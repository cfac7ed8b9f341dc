"""Bounds of all values of a model, in its loops by induction over the iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from math import prod

from onnx import TensorProto

from passes.analysis.integers.affine import LIMITS
from passes.analysis.integers.computed import stands_in_loop
from passes.operators.bounds import (
    NOTHING,
    SIZE,
    Bounded,
    Interval,
    bounds_of_constant,
    bounds_of_output,
    held,
    hull,
)
from passes.precision.flow import OMITTED, Flow, State, Step, Value
from passes.types.dtypes import Array
from passes.types.value_types import FLOATS, Dims

_INT64 = LIMITS[TensorProto.INT64]
#: Bounds of a carried value that change more often are those of its type.
_ROUNDS = 3
#: The elements of a constant that is a list or a number, and no weights.
FEW = 64


@dataclass(frozen=True, slots=True)
class Ahead:
    """Each element of a value is an element of a state, as the iteration starts, plus a number
    within bounds."""

    state: int
    by: Interval


@dataclass
class Ranges:
    """The bounds of the values of a flow, by number, None where they are unknown. `inputs` are the
    bounds of the int64 inputs of the model; `constant` gives those of a constant of a few elements,
    by its number and what they are."""

    flow: Flow
    inputs: Interval = _INT64
    constant: Callable[[int, Interval], Interval] = lambda number, bounds: bounds

    def __post_init__(self) -> None:
        flow = self.flow
        self.bounds: list[Interval | None] = [NOTHING] * len(flow.values)
        self._ahead: list[Ahead | None] = [None] * len(flow.values)
        self._changes: dict[int, int] = {}
        self._states = {state.entering: state for state in flow.states}
        self._varies = [stands_in_loop(scope) for scope in flow.scopes]
        self._solve()

    def _trip_count(self, body: int) -> int:
        """The value that is the trip count of a loop; `OMITTED` if there is none."""
        loop = self.flow.loops[body]
        return loop.inputs[0] if loop.op == "Loop" else OMITTED

    def _solve(self) -> None:
        """Compute the values in order, and again what depends on one that has changed."""
        dependents = self._dependents()
        pending = list(range(len(self.flow.values)))  # sorted, so a heap
        waiting = set(pending)
        while pending:
            number = heappop(pending)
            waiting.discard(number)
            found = self._computed(self.flow.values[number])
            if found == (self.bounds[number], self._ahead[number]):
                continue
            self.bounds[number], self._ahead[number] = found
            for one in dependents.get(number, ()):
                if one not in waiting:
                    waiting.add(one)
                    heappush(pending, one)

    def _dependents(self) -> Mapping[int, Sequence[int]]:
        """The values that depend on the bounds of each value."""
        found: dict[int, list[int]] = {}
        for step in self.flow.steps:
            outputs = [one for one in step.outputs if one != OMITTED]
            for value in step.inputs:
                found.setdefault(value, []).extend(outputs)
        for value, made in self.flow.crossings:
            found.setdefault(value, []).append(made)
        for body in self.flow.loops:
            found.setdefault(self._trip_count(body), []).extend(self.flow.inputs[body])
        return found

    # -- values -------------------------------------------------------------------------------

    def _computed(self, value: Value) -> tuple[Interval | None, Ahead | None]:
        """The bounds of a value, and what it is ahead of."""
        number, step = value.number, self.flow.producers[value.number]
        if number in self._states:
            return self._entering(value, self._states[number]), Ahead(number, (0, 0))
        if number in self.flow.sources:
            return self._joined(value, self.flow.sources[number]), None
        if value.constant:
            return self._constant(value), None
        if step is not None:
            made = self.flow.steps[step]
            return self._output(made, value), self._ahead_of_step(made, value)
        loop = self.flow.loops.get(value.graph)
        if loop is not None and loop.op == "Loop" and number == self.flow.inputs[value.graph][0]:
            return (0, max(0, self._most_trips(value.graph) - 1)), None
        inputs = self.inputs if value.elem_type == TensorProto.INT64 and value.fed else None
        return held(inputs, value.elem_type), None

    def _joined(self, value: Value, sources: Sequence[int]) -> Interval | None:
        found = [self.bounds[one] for one in sources]
        known = [one for one in found if one is not None]
        return held(hull(known) if len(known) == len(found) else None, value.elem_type)

    def _entering(self, value: Value, state: State) -> Interval | None:
        """The bounds of a state at the start of all iterations."""
        before = self.bounds[value.number]
        first, ahead = self.bounds[state.initial], self._ahead[state.returned]
        found = self._joined(value, [state.initial, state.returned])
        if ahead is not None and ahead.state == value.number and first is not None:
            trips, (low, high) = self._most_trips(value.graph), ahead.by
            reached = first[0] + trips * min(low, 0), first[1] + trips * max(high, 0)
            if held(reached, value.elem_type) == reached:
                found = reached
        if found is None or before is None:
            return None
        wider = hull([before, found])
        if wider == before:
            return before
        self._changes[value.number] = changes = self._changes.get(value.number, 0) + 1
        if changes <= _ROUNDS:
            return wider
        return held(None, value.elem_type)

    def _most_trips(self, body: int) -> int:
        """A number that the iterations of a loop do not exceed."""
        count = self._trip_count(body)
        bounds = self.bounds[count] if count != OMITTED else None
        return SIZE[1] if bounds is None else int(min(SIZE[1], max(0, bounds[1])))

    def _constant(self, value: Value) -> Interval | None:
        array = self.array(value, FEW if value.elem_type in FLOATS else None)
        found = held(None if array is None else bounds_of_constant(array), value.elem_type)
        few = array is not None and array.size <= FEW
        return self.constant(value.number, found) if few and found is not None else found

    def array(self, value: Value, most: int | None = FEW) -> Array | None:
        """The elements of a constant, if it has no more than that many; else None."""
        tensor = self.flow.tensor(value) if value.constant else None
        if tensor is None or (most and prod(tensor.dims) > most):
            return None
        return self.flow.model.read(tensor)

    # -- nodes --------------------------------------------------------------------------------

    def _output(self, step: Step, value: Value) -> Interval | None:
        bounds = [None if one == OMITTED else self.bounds[one] for one in step.inputs]
        read = Bounded(
            step.node,
            value.elem_type,
            bounds,
            partial(self._dims, step),
            lambda name: self.array(self._read(step, name)),
        )
        return bounds_of_output(read, step.outputs.index(value.number))

    def _read(self, step: Step, name: str) -> Value:
        """The value that an input of a node is."""
        return self.flow.values[step.inputs[list(step.node.input).index(name)]]

    def _dims(self, step: Step, name: str) -> Dims | None:
        """The dims of an input; not those that a Loop may change."""
        value = self._read(step, name)
        return None if self._varies[value.graph] else self.flow.dims(value.number)

    # -- states -------------------------------------------------------------------------------

    def _ahead_of_step(self, step: Step, value: Value) -> Ahead | None:
        """What is ahead of a state after a node that adds whole numbers."""
        if value.elem_type in FLOATS or step.op not in ("Add", "Sub"):
            return None
        one, other = step.inputs
        if step.op == "Sub":
            return self._further(one, other, -1)
        return self._further(one, other, 1) or self._further(other, one, 1)

    def _further(self, one: int, other: int, sign: int) -> Ahead | None:
        ahead, bounds = self._ahead[one], self.bounds[other]
        if ahead is None or bounds is None or bounds == NOTHING:
            return None
        low, high = sorted(sign * end for end in bounds)
        return Ahead(ahead.state, (ahead.by[0] + low, ahead.by[1] + high))
