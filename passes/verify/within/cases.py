"""Inputs of several lengths, and what the original answers to them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import ModelProto

from passes.errors import DoesNotFit
from passes.ir.model import Model
from passes.types.dtypes import is_float, numpy_dtype
from passes.types.signature import feedable
from passes.types.signature import inputs as signature_inputs
from passes.verify.executor import Ended, Feeds, ModelFailed, Outcome, Value
from passes.verify.inputs.dims import element_type
from passes.verify.inputs.drawer import Drawer
from passes.verify.inputs.hints import model_hints
from passes.verify.inputs.lengths import length_of, taken
from passes.verify.inputs.uses import uses_of
from passes.verify.reference import ReferenceExecutor

#: Lengths that are tried where one is free, and how often inputs are drawn for each.
LENGTHS = (1, 16, 128, 1024)
_DRAWS = 3
#: Seconds that a run may take at least.
SHORTEST = 1.0


@dataclass(frozen=True)
class Case:
    """Inputs of both models, which have the same values; what the original answers, and what it
    does under other roundings."""

    length: int | None
    feeds: Feeds
    after: Feeds
    was: Outcome
    moved: Outcome


@dataclass
class Cases:
    """The cases of a model: the `given` inputs, else drawn ones. `after` takes the same inputs, of
    other types of floats. `executor` runs the original, until `deadline` (of `time.monotonic`);
    `not_run` tells what was left out, `inputs` what was fed."""

    model: Model
    after: ModelProto
    executor: ReferenceExecutor
    given: Sequence[Feeds]
    seed: int
    deadline: float
    not_run: list[str] = field(default_factory=list)
    inputs: str = ""

    def all(self) -> Iterator[Case]:
        """Run the original, and yield a case for each run that ended."""
        inputs = tuple(signature_inputs(self.model.proto.graph))
        drawer = Drawer(inputs, self.seed, model_hints(self.model))
        length = length_of(self.model, drawer.symbols())
        if not self.given:
            yield from self._drawn(drawer, length)
            return
        self.inputs = "the given inputs"
        for feeds in self.given:
            try:
                case = self._case(drawer.sizes_in(feeds).get(length), feeds)
            except Ended as error:
                self.not_run.append(f"{self.inputs}: {error}")
            else:
                yield case

    def _drawn(self, drawer: Drawer, length: str) -> Iterator[Case]:
        """Cases of several lengths: sizes of a symbol, else trip counts that are fed."""
        uses = uses_of(self.model.proto)
        trips = [one.name for one in drawer.inputs if not length and "trips" in uses[one.name]]
        free = length or ", ".join(trips)
        self.inputs = f"normal numbers, drawn {_DRAWS} times" + f" for each {free}" * bool(free)
        before, took, done = 1, 0.0, set[int | None]()
        for size in LENGTHS if free else (None,):
            label = f"{free} = {size}" if free else "drawn inputs"
            if size and time.monotonic() + _DRAWS * took * size / before > self.deadline:
                self.not_run.append(f"{label} (out of time)")
                continue
            for number in range(_DRAWS):
                started = time.monotonic()
                try:
                    drawer, case = self._at(drawer, length, trips, size, number)
                except (DoesNotFit, Ended) as error:
                    self.not_run.append(f"{label}: {error}")
                    break
                if case.length in done:  # the model takes no other one
                    break
                yield case
            else:
                done.add(case.length)
                before, took = size or 1, time.monotonic() - started

    def _at(
        self, drawer: Drawer, length: str, trips: Sequence[str], size: int | None, number: int
    ) -> tuple[Drawer, Case]:
        """A case of a length, or near it, and the drawer with what the model taught. Raises
        DoesNotFit and Ended."""
        drawer, feeds, was = taken(
            self.model,
            drawer,
            {length: size} if size else {},
            self.executor,
            label=f"{number}",
            numbers={name: size for name in trips if size},
            timeout=self.left,
        )
        return drawer, self._case(drawer.sizes_in(feeds).get(length, size), feeds, was)

    def _case(self, length: int | None, feeds: Feeds, was: Outcome | None = None) -> Case:
        """The case of some inputs, for which the original answers `was` unless it has to be fed
        what is rounded. Raises Ended."""
        fed, own = _typed(feeds, self.after), dict(feeds)
        if any(_dtypes(fed[name]) != _dtypes(feeds[name]) for name in feeds):
            own, was = _typed(fed, self.model.proto), None
        was = was or self.run(own)
        return Case(length, own, fed, was, self._moved(own) or was)

    def _moved(self, feeds: Feeds) -> Outcome | None:
        """The outcome of the original under other roundings; None if it fails under them."""
        model = self.model
        try:
            return self.executor.perturbed(
                model.proto, feeds, self.seed, base_dir=model.base_dir, timeout=self.left
            )
        except ModelFailed:
            return None

    def run(self, feeds: Feeds) -> Outcome:
        """Run the original. Raises Ended."""
        model = self.model
        return self.executor.run(model.proto, feeds, base_dir=model.base_dir, timeout=self.left)

    @property
    def left(self) -> float:
        """The seconds that a run may take."""
        return max(SHORTEST, self.deadline - time.monotonic())


def _typed(feeds: Feeds, model: ModelProto) -> dict[str, Value]:
    """Inputs in the types that a model declares."""
    types = {one.name: element_type(one.type).tensor_type.elem_type for one in feedable(model)}
    return {name: _as(value, numpy_dtype(types[name])) for name, value in feeds.items()}


def _as(value: Value, dtype: np.dtype[Any]) -> Value:
    """A value whose floats have a type."""
    if isinstance(value, list):
        return [_as(one, dtype) for one in value]
    if value is None or not is_float(value.dtype):
        return value
    with np.errstate(over="ignore"):
        return value.astype(dtype, copy=False)


def _dtypes(value: Value) -> list[np.dtype[Any]]:
    """The types of the tensors of a value."""
    if isinstance(value, list):
        return [one for each in value for one in _dtypes(each)]
    return [] if value is None else [value.dtype]
