"""A model that runs chunk by chunk is compared with the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnx import ModelProto

from passes.errors import MISMATCH, NOT_PRODUCED, PassesError
from passes.ir.model import Model
from passes.streaming.by_chunks import by_chunks, stand_in
from passes.streaming.plan import Plan
from passes.verify.compare.verdicts import Verification
from passes.verify.executor import Feeds
from passes.verify.inputs.hints import model_hints
from passes.verify.installed import executors
from passes.verify.terms import Inputs, Limits, Models, Terms
from passes.verify.verification import verify


class NotSame(PassesError):
    """Chunk by chunk, a model gives something else than the whole."""

    exit_code = MISMATCH


class NotCompared(PassesError):
    """No case could be compared."""

    exit_code = NOT_PRODUCED


@dataclass(frozen=True)
class Streamed:
    """The model that was made, its description, and how it was verified. Its external data, if
    there is any, is in `base_dir`."""

    model: ModelProto
    plan: Plan
    verification: Verification
    base_dir: Path | None = None


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
            found = verify(
                Models(whole.proto, stand_in(whole.proto), whole.base_dir),
                Terms(
                    by_chunks(chosen, part, plan, **how),
                    exact=False,
                    inputs=Inputs(self.seed, model_hints(whole), self.inputs),
                    limits=Limits(self.budget),
                ),
            )
        if found.verdict == "mismatch":
            raise NotSame(f"chunk by chunk, the outputs are not those of the whole: {found.reason}")
        if found.verdict != "verified":
            raise NotCompared(f"no case could be compared, {found.reason} [not-verified]")
        return found
