"""A model that runs chunk by chunk is compared with the whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto

from passes.errors import MISMATCH, NOT_PRODUCED, PassesError
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.not_produced import Disagreement
from passes.operators.cells import RECURRENT, CellInputs
from passes.streaming.observed import sizes_of
from passes.streaming.plan import Plan
from passes.types import signature
from passes.verify.compare.verdicts import Verification
from passes.verify.executor import Array, CannotRun, Executor, Feeds, Outcome, Perturbing, Value
from passes.verify.inputs.hints import model_hints
from passes.verify.installed import executors
from passes.verify.requirements import Inputs, Limits, Models, Requirements
from passes.verify.runtimes.executors import is_marked, marked
from passes.verify.verification import verify

#: A chunk has fewer times the fewest frames that it may have.
_MOST = 6


class NotSame(PassesError):
    """Chunk by chunk, a model gives something else than the whole."""

    exit_code = MISMATCH

    def __init__(self, found: Disagreement) -> None:
        super().__init__(
            f"chunk by chunk, the outputs are not those of the whole: {found.sentence}"
        )
        self.found = found


class NotCompared(PassesError):
    """No case could be compared."""

    exit_code = NOT_PRODUCED


@dataclass(frozen=True)
class Streamed:
    """The model that was made, its description, and how it was verified. `initial` is the model
    that computes what its states start with, if there is one. The external data of both, if there
    is any, is in `base_dir`."""

    model: ModelProto
    plan: Plan
    verification: Verification
    base_dir: Path | None = None
    initial: ModelProto | None = None


@dataclass(frozen=True)
class Judge:
    """How chunks are compared with the whole: in which executors, on drawn inputs of a seed and
    those that are given, in how many seconds."""

    executor: str = "both"
    budget: float = 60.0
    seed: int = 0
    inputs: Sequence[Feeds] = ()

    def compare(self, whole: Model, part: ModelProto, plan: Plan, **how: Any) -> Verification:
        """Run the whole, and `part` on one chunk after the other; `how` are fields of `ByChunks`.

        Raises:
            NotSame: they differ.
            NotCompared: no case could be compared.
        """
        with executors(self.executor) as chosen:
            kinds = [_Perturbing if isinstance(one, Perturbing) else ByChunks for one in chosen]
            pairs = zip(kinds, chosen, strict=True)
            found = verify(
                Models(whole.proto, marked(whole.proto), whole.base_dir),
                Requirements(
                    [kind(one, part, plan, **how) for kind, one in pairs],
                    exact=False,
                    # a chunk cannot tell that a row has more frames than the whole
                    lenient=any(map(_has_lengths, whole.proto.graph.node)),
                    inputs=Inputs(self.seed, model_hints(whole), self.inputs),
                    limits=Limits(self.budget),
                ),
            )
        if found.verdict == "mismatch":
            sides = (whole.proto, part)
            raise NotSame(
                Disagreement("main", found.reason, sides, found.failure, (), False, by_command=True)
            )
        if found.verdict != "verified":
            raise NotCompared(f"no case could be compared, {found.reason} [not-verified]")
        return found


def _has_lengths(node: NodeProto) -> bool:
    """Return whether a node reads the lengths of rows."""
    return op_of(node) in RECURRENT and bool(CellInputs.of(node).lengths)


@dataclass
class ByChunks:
    """An executor that runs `part` chunk by chunk where a marked model is to be run.

    The chunks are cut at random, or have a `single` frame each. `squeezed`: frames of `part` have
    no axis of time. `trips`: the input of the whole that is the number of steps, if it has no
    frames. `initial`: the model that computes what states start with, from the first chunk.
    """

    inner: Executor
    part: ModelProto
    plan: Plan
    single: bool = False
    squeezed: bool = False
    trips: str = ""
    initial: ModelProto | None = None

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def version(self) -> str:
        return self.inner.version

    def load(self, model: ModelProto, **limits: Any) -> None:
        """See that a model loads. Raises CannotRun."""
        self.inner.load(model, **limits)

    def run(self, model: ModelProto, feeds: Feeds, **limits: Any) -> Outcome:
        """Run a model on whole chunks, or `part` on each of them.

        Raises what the executor raises, and CannotRun where there is no frame.
        """
        length = self._length(feeds)
        feeds = {**feeds, **self._cut(feeds, range(length))}
        if not is_marked(model):
            return self.inner.run(model, feeds, **limits)
        found: dict[str, Value] = {}
        pieces: dict[str, list[Array]] = {port.name: [] for port in self.plan.outputs}
        sizes = sizes_of(signature.inputs(model.graph), feeds)
        rng = np.random.default_rng(length)  # the same cuts for the same length
        end = min(length, self._frames(rng))
        computed = self._initial({**feeds, **self._cut(feeds, range(end))}, limits)
        states = {
            one.input: {**feeds, **computed}[one.input]
            if (first := one.first(sizes)) is None
            else first
            for one in self.plan.states
        }
        recurs = any(op_of(node) in RECURRENT for node in self.part.graph.node)
        if recurs and not all(np.asarray(state).size for state in states.values()):
            raise CannotRun("a state has no element: an empty batch")
        own = scoping.input_names(self.part.graph)
        start = 0
        while start < length:
            # what follows the last frame may be anything
            places = np.arange(start, end + self.plan.look_ahead)
            given = {**feeds, **self._cut(feeds, places), **states}
            given[self.plan.frames_left] = np.array(length - start)
            for port in self.plan.inputs if self.squeezed else ():
                given[port.name] = np.squeeze(np.asarray(given[port.name]), port.time_axis)
            given = {name: given[name] for name in own if name in given}
            found = self.inner.run(self.part, given, **limits).outputs
            states = {one.input: found[one.output] for one in self.plan.states}
            kept = end - start
            if any(one.each for one in self.plan.states):  # roll back to a frame of the chunk
                kept = int(rng.integers(0, kept // self.plan.multiple) + 1) * self.plan.multiple
                states = {
                    one.input: np.asarray(np.asarray(found[one.each])[kept - 1])
                    for one in self.plan.states
                }
            start += kept
            end = min(length, start + self._frames(rng))
            for port in self.plan.outputs:
                piece = np.asarray(found[port.name])
                if not self.squeezed:
                    piece = np.take(piece, range(kept // port.every), port.time_axis)
                pieces[port.name].append(piece)
        join = np.stack if self.squeezed else np.concatenate
        axes = {port.name: port.time_axis for port in self.plan.outputs}
        found |= {name: join(piece, axes[name]) for name, piece in pieces.items()}
        return Outcome({name: found[name] for name in scoping.output_names(model.graph)})

    def _initial(self, feeds: Feeds, limits: Mapping[str, Any]) -> dict[str, Value]:
        """What the states start with that the initial model computes."""
        if self.initial is None:
            return {}
        own = {name: feeds[name] for name in scoping.input_names(self.initial.graph)}
        return dict(self.inner.run(self.initial, own, **limits).outputs)

    def _length(self, feeds: Feeds) -> int:
        """The number of frames: as far as they make whole chunks, or as many as three have."""
        lengths = {np.asarray(feeds[one.name]).shape[one.time_axis] for one in self.plan.inputs}
        if self.trips:
            lengths = {int(np.asarray(feeds[self.trips]).item())}
        length, multiple = min(lengths), self.plan.multiple
        if length < 1 or len(lengths) > 1:
            raise CannotRun("the inputs have no frame, or different numbers of frames")
        return int(max(length // multiple, 3 if multiple > 1 else 1) * multiple)

    def _cut(self, feeds: Feeds, places: Iterable[int]) -> dict[str, Value]:
        """Frames of inputs, from the first on again after the last."""
        at = np.asarray(places)
        return {
            one.name: np.take(np.asarray(feeds[one.name]), at, one.time_axis, mode="wrap")
            for one in self.plan.inputs
        }

    def _frames(self, rng: np.random.Generator) -> int:
        """The number of frames of a chunk."""
        times = 1 if self.single or self.plan.chunk else int(rng.integers(1, _MOST))
        return times * self.plan.multiple


@dataclass
class _Perturbing(ByChunks):
    """The same, of an executor that can run a model with other roundings."""

    def perturbed(self, model: ModelProto, feeds: Feeds, seed: int, **limits: Any) -> Outcome:
        """Run the whole model so."""
        assert isinstance(self.inner, Perturbing)
        feeds = {**feeds, **self._cut(feeds, range(self._length(feeds)))}
        return self.inner.perturbed(model, feeds, seed, **limits)
