"""The models that are changed: golden outcomes, and those of commands on models of exporters."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import ModelProto

from passes.errors import BadModel, PassesError
from passes.ir.model import Model
from passes.ir.protos import copied
from tests.instruments.soak.commands import Command

_GOLDEN = Path(__file__).parents[3] / "golden_models"
_EXPORTED = _GOLDEN / "exported"
_COMMANDS = ("optimize", "upgrade", "lower", "raise", "unroll")
#: The largest file of an exported model: smaller ones differ, too, and take less time.
_MOST_BYTES = 20_000


@dataclass(frozen=True)
class Source:
    """An outcome, its name, and a model that answers the same."""

    name: str
    equal: ModelProto
    outcome: ModelProto


def golden(draw: random.Random) -> Iterator[Source]:
    """Golden outcomes, each equal to itself, without an end."""
    paths = sorted(_GOLDEN.glob("*/*.after.onnxtxt"))
    while True:
        path = draw.choice(paths)
        try:
            outcome = Model.load(path).proto
        except BadModel:  # onnx writes names of tensors that its parser does not read
            continue
        name = f"{path.parent.name}/{path.name.removesuffix('.after.onnxtxt')}"
        yield Source(name, outcome, outcome)


def exported(draw: random.Random, outcomes: Path | None = None) -> Iterator[Source]:
    """Outcomes of commands on exported models, without an end; each is equal to itself or to the
    original, as drawn. A folder of `outcomes` has those that were made, and gets the others."""
    paths = [
        path for path in sorted(_EXPORTED.glob("*/*.onnx")) if path.stat().st_size <= _MOST_BYTES
    ]
    while True:
        path, command = draw.choice(paths), draw.choice(_COMMANDS)
        itself = draw.random() < 0.5
        original = onnx.load(path)
        name = f"{path.parent.name}__{path.stem}.{command}"
        outcome = _outcome(original, command, outcomes and outcomes / f"{name}.onnx")
        if outcome is not None:
            yield Source(name, outcome if itself else original, outcome)


def _outcome(original: ModelProto, command: str, stored: Path | None) -> ModelProto | None:
    """What a command makes of a model; None if it refuses it or writes it as it is."""
    if stored is not None and stored.exists():
        return onnx.load(stored)
    try:
        outcome = Command(command).run(copied(original)).model
    except PassesError:
        return None
    if outcome == original:
        return None
    if stored is not None:
        onnx.save(outcome, stored)
    return outcome
