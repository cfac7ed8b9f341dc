"""An executor that runs one model chunk by chunk, as its user would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.streaming.first_states import sizes_of
from passes.streaming.plan import Plan
from passes.verify import signature
from passes.verify.executor import Array, CannotRun, Executor, Feeds, Outcome, Perturbing, Value

#: Marks the model in place of which the other one runs, chunk by chunk.
_MARK = "passes.by-chunks"


def stand_in(whole: ModelProto) -> ModelProto:
    """A copy of the whole model, in place of which `ByChunks` runs the other one."""
    copy = copied(whole)
    copy.metadata_props.add(key=_MARK)
    return copy


@dataclass
class ByChunks:
    """Runs `part` chunk by chunk where the stand-in is to be run, and any other model as it is.

    The chunks are cut at random, or have one frame each. `squeezed`: frames of `part` have no axis
    of time. `trips` is the input of the whole that holds the number of steps, if no frames do.
    """

    inner: Executor
    part: ModelProto
    plan: Plan
    single: bool = False
    squeezed: bool = False
    trips: str = ""

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def version(self) -> str:
        return self.inner.version

    def load(self, model: ModelProto, **limits: Any) -> None:
        """See that a model loads. Raises CannotRun."""
        self.inner.load(model, **limits)

    def run(
        self,
        model: ModelProto,
        feeds: Feeds,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Outcome:
        """Run the whole model on a whole number of chunks, or the other model on each of them.

        Raises what the executor raises, and CannotRun where there is no frame.
        """
        length = self._length(feeds)
        feeds = {**feeds, **self._cut(feeds, 0, length)}
        if not any(entry.key == _MARK for entry in model.metadata_props):
            return self.inner.run(model, feeds, base_dir=base_dir, timeout=timeout)
        return self._joined(model, feeds, length, base_dir, timeout)

    def _length(self, feeds: Feeds) -> int:
        """The number of frames, as far as they make whole chunks."""
        if self.trips:
            lengths = {int(np.asarray(feeds[self.trips]).reshape(-1)[0])}
        else:
            ports = self.plan.inputs
            lengths = {np.asarray(feeds[port.name]).shape[port.time_axis] for port in ports}
        length = min(lengths) // self.plan.chunk_multiple * self.plan.chunk_multiple
        if length < 1 or len(lengths) > 1:
            raise CannotRun("the inputs have no frame, or different numbers of frames")
        return length

    def _cut(self, feeds: Feeds, start: int, end: int) -> dict[str, Value]:
        """The frames of inputs from `start` to `end`."""
        cut: dict[str, Value] = {}
        for port in self.plan.inputs:
            frames = np.asarray(feeds[port.name])
            cut[port.name] = np.take(frames, range(start, end), axis=port.time_axis)
        return cut

    def _chunks(self, length: int) -> Iterator[tuple[int, int]]:
        """Where chunks begin and end."""
        multiple, rng, start = self.plan.chunk_multiple, np.random.default_rng(length), 0
        while start < length:
            most = 1 if self.single else int(rng.integers(1, 6))
            end = min(length, start + most * multiple)
            yield start, end
            start = end

    def _joined(
        self,
        model: ModelProto,
        feeds: Feeds,
        length: int,
        base_dir: Path | None,
        timeout: float | None,
    ) -> Outcome:
        sizes = sizes_of(signature.inputs(model.graph), feeds)
        states: dict[str, Value] = {}
        for one in self.plan.states:
            first = one.first(sizes)
            states[one.input] = feeds[one.input] if first is None else first
        pieces: dict[str, list[Array]] = {port.name: [] for port in self.plan.outputs}
        found: dict[str, Value] = {}
        own = set(scoping.input_names(self.part.graph))
        for start, end in self._chunks(length):
            given = {**feeds, **self._cut(feeds, start, end), **states}
            if self.squeezed:
                axes = {port.name: port.time_axis for port in self.plan.inputs}
                given |= {name: np.squeeze(np.asarray(given[name]), axes[name]) for name in axes}
            given = {name: value for name, value in given.items() if name in own}
            outcome = self.inner.run(self.part, given, base_dir=base_dir, timeout=timeout)
            found = outcome.outputs
            states = {one.input: found[one.output] for one in self.plan.states}
            for name, piece in pieces.items():
                piece.append(np.asarray(found[name]))
        join = np.stack if self.squeezed else np.concatenate
        whole = {port.name: join(pieces[port.name], port.time_axis) for port in self.plan.outputs}
        return Outcome(
            {name: whole.get(name, found.get(name)) for name in scoping.output_names(model.graph)}
        )


@dataclass
class PerturbingByChunks(ByChunks):
    """The same, of an executor that can run a model with other roundings."""

    def perturbed(self, model: ModelProto, feeds: Feeds, seed: int, **limits: Any) -> Outcome:
        """Run the whole model so."""
        assert isinstance(self.inner, Perturbing)
        feeds = {**feeds, **self._cut(feeds, 0, self._length(feeds))}
        return self.inner.perturbed(model, feeds, seed, **limits)


def by_chunks(
    executors: Sequence[Executor], part: ModelProto, plan: Plan, **how: Any
) -> list[Executor]:
    """The executors that run `part` chunk by chunk where the stand-in is to be run."""
    kinds = [PerturbingByChunks if isinstance(one, Perturbing) else ByChunks for one in executors]
    return [kind(one, part, plan, **how) for kind, one in zip(kinds, executors, strict=True)]
