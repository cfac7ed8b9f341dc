"""What a command adds to a model has a bound, unless it unrolls."""

from __future__ import annotations

import pytest
from onnx import ModelProto

from passes.commands.schedules import SCHEDULES
from passes.errors import PassesError
from passes.ir import scope as scoping
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.model import generate
from tests.instruments.soak.commands import Command

#: `optimize-no-control-flow` unrolls, too.
_UNROLL = ("unroll", "unroll-partial", "peel", "optimize-no-control-flow")


def _size(model: ModelProto) -> int:
    return sum(1 for _ in scoping.walk_model(model))


def _too_large(seed: int, pipelines: tuple[str, ...]) -> list[str]:
    """What is larger than three times the model and 40 nodes more.

    A Scan-8 is upgraded first, so the upgraded model counts where it is the larger one.
    """
    model = generate(Choices.of_seed(seed, small=True)).model
    before, found = _size(model), []
    for pipeline in ("upgrade", *pipelines):
        try:
            after = _size(Command(pipeline).run(model).model)
        except PassesError:
            continue
        if after > 3 * before + 40:
            found.append(f"seed {seed}, {pipeline}: {before} nodes become {after}")
        if pipeline == "upgrade":
            before = max(before, after)
    return found


@pytest.mark.slow
def test_optimize_adds_few_nodes_to_20_random_models() -> None:
    found = [line for seed in range(20) for line in _too_large(seed, ("optimize", "lower"))]
    assert not found, "\n".join(found)


@pytest.mark.slow
def test_no_command_adds_many_nodes_to_300_random_models() -> None:
    rest = tuple(name for name in SCHEDULES if name not in (*_UNROLL, "upgrade"))
    found = [line for seed in range(300) for line in _too_large(seed, rest)]
    assert not found, "\n".join(found)
