"""Seeks inputs on which a loop runs never, once, as often as it may, and more often."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from passes.ir.protos import copied
from passes.loops.parts import graph_of
from passes.verify.executor import Array, CannotRun, Executor, Feeds, ModelFailed
from passes.verify.inputs.arrays import is_float
from passes.verify.inputs.draw import CannotDraw, Case, Drawer
from passes.verify.inputs.plans import ATTEMPTS

_COUNTED = "passes trips counted"
_MOST_RUNS = 1_000
_SECONDS = 1.0  # a run
_POWERS = tuple(sorted(range(-24, 25, 3), key=abs))  # orders of magnitude, the nearest first
_HALVINGS = 8


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
    are found in `seconds`; deterministic but for that."""
    from passes.verify.reference import ReferenceExecutor

    wanted = {0, 1, max(1, counts.most // 2), counts.most}
    wanted |= {counts.most + 1} if counts.more else set()
    search = _Search(counts, wanted, ReferenceExecutor(keep=1), base_dir, seconds)
    counted = [(case, search.count(case)) for case in _bases(drawer)]
    going = [case for case, times in counted if times is not None and _may_begin(case)]
    for scales in (False, True):
        for case in going:
            for dial in _dials(case.feeds, scales):
                search.turn(case, dial)
    return [search.found[times] for times in sorted(search.found)]


@dataclass
class _Search:
    """Runs the loop on one input after the other until all that is wanted was found."""

    counts: Counts
    wanted: set[int]
    executor: Executor
    base_dir: Path | None
    seconds: float
    found: dict[int, Case] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._model = _counting(self.counts)
        self._end = time.monotonic() + self.seconds
        self._runs = 0

    def count(self, case: Case) -> int | None:
        """Return the trip count of the loop, at most one more than it may run; None if it is
        unknown."""
        left = self._end - time.monotonic()
        if left <= 0 or self._runs >= _MOST_RUNS or self.wanted <= set(self.found):
            return None
        self._runs += 1
        timeout = min(_SECONDS, left)
        try:
            outcome = self.executor.run(
                self._model, case.feeds, base_dir=self.base_dir, timeout=timeout
            )
        except (ModelFailed, CannotRun):
            return None
        rows = outcome.outputs[_COUNTED]
        assert isinstance(rows, np.ndarray)
        times = min(rows.size, self.counts.most + 1)
        if times in self.wanted:
            self.found.setdefault(times, _named(case, times, self.counts.most))
        return times

    def turn(self, base: Case, dial: Dial) -> None:
        """Count at a few places of a dial, then between those around what is still wanted."""
        seen: dict[float, int] = {}
        for place in dial.places(self.counts.most):
            times = self.count(_turned(base, dial, place))
            if times is not None:
                seen[place] = times
        for low, high in pairwise(sorted(seen)):
            for want in self.wanted - set(self.found):
                if min(seen[low], seen[high]) < want < max(seen[low], seen[high]):
                    self._halve(base, dial, (low, high), seen[low] < want)

    def _halve(self, base: Case, dial: Dial, ends: tuple[float, float], rising: bool) -> None:
        low, high = ends
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            times = self.count(_turned(base, dial, middle))
            if times is None:
                return
            if any(want > times for want in self.wanted - set(self.found)) == rising:
                low = middle
            else:
                high = middle


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
    _collect(body)
    loop.output.append(_COUNTED)
    rest = [*_capped(loop, counts.most + 2), loop]
    del made.graph.node[counts.position :]
    made.graph.node.extend(rest)
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info(_COUNTED, TensorProto.INT64, [None]))
    return made


def _collect(body: GraphProto) -> None:
    number = body.input[0].name
    body.node.add(op_type="Identity", input=[number], output=[_COUNTED])
    body.output.append(helper.make_tensor_value_info(_COUNTED, TensorProto.INT64, None))


def _capped(loop: NodeProto, most: int) -> list[NodeProto]:
    """Nodes for a trip count of at most `most`, which the loop then takes."""
    cap, less, trips = f"{_COUNTED}: cap", f"{_COUNTED}: less", f"{_COUNTED}: trips"
    value = helper.make_tensor("value", TensorProto.INT64, [], [most])
    nodes = [helper.make_node("Constant", [], [cap], value=value)]
    given = loop.input[0]
    if given:
        nodes.append(helper.make_node("Less", [given, cap], [less]))
        nodes.append(helper.make_node("Where", [less, given, cap], [trips]))
    loop.input[0] = trips if given else cap
    return nodes


def _bases(drawer: Drawer) -> Iterator[Case]:
    """Observed and drawn inputs; those that let a loop begin come first."""
    try:
        bases = [drawer.natural(index) for index in range(drawer.observed())]
        plans = drawer.plans()[:2]
        bases += [
            drawer.case(plan, position) for position in range(len(ATTEMPTS) // 2) for plan in plans
        ]
    except CannotDraw:
        return
    for base in bases:
        arrays = {
            name: value for name, value in base.feeds.items() if isinstance(value, np.ndarray)
        }
        flags = [
            name for name, array in arrays.items() if array.size == 1 and array.dtype.kind == "b"
        ]
        for flag in (True, False) if flags else ():
            known = {name: np.full_like(arrays[name], flag) for name in flags}
            yield replace(base, feeds={**base.feeds, **known})
        if not flags:
            yield base


def _may_begin(case: Case) -> bool:
    flags = (value for value in case.feeds.values() if isinstance(value, np.ndarray))
    return all(bool(flag.all()) for flag in flags if flag.dtype.kind == "b")


@dataclass(frozen=True)
class Dial:
    """Inputs that are set to a number, or whose numbers are multiplied by a power of 2."""

    names: tuple[str, ...]
    scales: bool

    def places(self, most: int) -> Iterator[float]:
        """Yield the points to try first."""
        if not self.scales:
            yield from dict.fromkeys((most, 0, 1, most + 1, most - 1, most // 2, most + 2, -1))
        else:
            yield from _POWERS

    def turned(self, value: Array, place: float) -> Array:
        """An input at a place of the dial."""
        if not self.scales:
            number = max(0.0, place) if value.dtype.kind == "u" else place
            return np.full_like(value, number)
        with np.errstate(all="ignore"):
            return np.asarray(value * np.asarray(2.0**place, value.dtype)).astype(value.dtype)


def _turned(base: Case, dial: Dial, place: float) -> Case:
    values = {name: np.asarray(base.feeds[name]) for name in dial.names}
    known = {name: dial.turned(value, place) for name, value in values.items()}
    return replace(base, feeds={**base.feeds, **known}, exact=False)


def _dials(feeds: Feeds, scales: bool) -> Iterator[Dial]:
    """Every number by itself, and all; or every tensor of floats by itself."""
    arrays = {name: value for name, value in feeds.items() if isinstance(value, np.ndarray)}
    if scales:
        names = [name for name, array in arrays.items() if is_float(array.dtype) and array.size]
    else:
        names = [name for name, array in arrays.items() if array.size == 1 and _is_number(array)]
    for name in names:
        yield Dial((name,), scales)
    if len(names) > 1 and not scales:
        yield Dial(tuple(names), scales)


def _is_number(value: Array) -> bool:
    return value.dtype.kind in "iu" or is_float(value.dtype)
