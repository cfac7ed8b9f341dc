"""Draws mutants of golden outcomes, and tells what becomes of each: whether it is proven to answer
as the outcome does, and whether execution finds it to."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import ModelProto

from passes.check import load_checked
from passes.errors import BadModel
from passes.ir.model import Model
from passes.ir.protos import copied
from passes.proving.assumptions import CELLS_NOTHING, SCANS_NOTHING
from passes.reports.proof import Proof
from passes.types.inference import light_model
from passes.types.shape_inference import objection
from passes.verify.executor import Executor
from tests.instruments.definedness.change import Change, sites
from tests.instruments.definedness.failing import FAILING
from tests.instruments.definedness.kinds import KINDS
from tests.instruments.proven import for_all_sizes as prove
from tests.verification import verify

_GOLDEN = Path(__file__).parent.parent.parent.parent / "golden_models"
_MOST_NODES = 60
_FROM_ONE_MODEL = 2
_DRAWS = 4
_SECONDS = 3.0  # a proof, and an execution of a pair


@dataclass(frozen=True)
class Mutant:
    """A golden outcome, its name, and what was changed in it."""

    name: str
    kind: str
    text: str
    outcome: ModelProto
    model: ModelProto


@dataclass(frozen=True)
class Tried:
    """What became of a mutant; `differs` tells how execution finds it to differ, empty where it
    does not."""

    mutant: Mutant
    proof: Proof
    differs: str = ""

    @property
    def is_false(self) -> bool:
        """Whether it is proven though it differs, and the verdict does not name why."""
        named = {SCANS_NOTHING, CELLS_NOTHING} & {*self.proof.assumed}
        named = named and self.differs.startswith("onnxruntime")
        return self.proof.is_proven and bool(self.differs) and not named

    def __str__(self) -> str:
        return f"{self.mutant.name}: {self.mutant.kind}: {self.mutant.text}: " + (
            self.differs or self.proof.sentence()
        )


def changes(model: ModelProto) -> list[Change]:
    """Every change that there is of a model; each changes this model, and can be made once."""
    return [
        Change(kind, text, make)
        for site in sites(model)
        for kind, changed in (KINDS | FAILING).items()
        for text, make in changed(site)
    ]


def mutants(
    seed: int, accept: Callable[[ModelProto], bool] = lambda outcome: True
) -> Iterator[Mutant]:
    """Valid mutants of the outcomes that `accept` takes, without an end, as many of each kind as
    of another where models have both."""
    draw = random.Random(seed)
    paths = sorted(_GOLDEN.glob("*/*.after.onnxtxt"))
    while True:
        path = draw.choice(paths)
        outcome = onnx.load(path)
        small = len(outcome.graph.node) <= _MOST_NODES and accept(outcome)
        found = changes(copied(outcome)) if small else []
        kinds = sorted({change.kind for change in found})
        name = f"{path.parent.name}/{path.name.removesuffix('.after.onnxtxt')}"
        for kind in draw.sample(kinds, min(_FROM_ONE_MODEL, len(kinds))):
            numbers = [number for number, change in enumerate(found) if change.kind == kind]
            model = copied(outcome)
            change = changes(model)[draw.choice(numbers)]
            change.make()
            if model != outcome and _is_valid(model):
                yield Mutant(name, kind, change.text, outcome, model)


def tried(mutant: Mutant, executors: Sequence[Executor]) -> Tried:
    """Prove a mutant and execute it, on more inputs where it is proven."""
    proof = prove(Model.load(mutant.outcome), Model.load(mutant.model), _SECONDS)
    for seed in range(1, _DRAWS if proof.is_proven else 2):
        found = verify(
            mutant.outcome,
            mutant.model,
            executors=executors,
            seed=seed,
            exact=False,
            lenient=True,
            budget=_SECONDS,
            case_timeout=1.0,
        )
        if found.verdict == "mismatch":
            return Tried(mutant, proof, found.reason)
    return Tried(mutant, proof)


def _is_valid(model: ModelProto) -> bool:
    """Whether a mutant is a model that a runtime would load."""
    try:
        load_checked(model)
    except BadModel:
        return False
    return not objection(light_model(model), check_types=True)
