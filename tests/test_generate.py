"""The generator of random models: they are valid, run, are the same for the same seed, shrink."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from passes import scope
from passes.check import check
from passes.model import Model
from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor
from tests.generate.choices import Choices
from tests.generate.feeds import draw
from tests.generate.model import Generated, generate
from tests.generate.reduce import reduce

ROOT = Path(__file__).parent.parent
SEEDS = range(60)


def of_seed(seed: int) -> Generated:
    return generate(Choices.of_seed(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_is_valid(seed: int) -> None:
    model = of_seed(seed).model
    check(Model(model))
    if model.ir_version > 3:  # there, onnx's inference knows no initializers of bodies
        onnx.checker.check_model(model, full_check=True)


def test_nearly_all_models_run_on_what_is_drawn_for_them() -> None:
    executor, failed = ReferenceExecutor(), []
    for seed in SEEDS:
        generated = of_seed(seed)
        try:
            executor.run(generated.model, draw(generated, 0), timeout=10)
        except (ModelFailed, CannotRun):  # an empty sequence is read, states that do not agree
            failed.append(seed)
    assert len(failed) <= len(SEEDS) // 20, failed


def test_the_decisions_make_the_same_model_again() -> None:
    for seed in SEEDS:
        generated = of_seed(seed)
        assert generate(Choices(generated.drawn)).model == generated.model


def test_another_hash_seed_makes_the_same_model() -> None:
    command = [sys.executable, "-m", "tests.generate", "--seed", "7", "--text"]
    texts = [
        subprocess.run(
            command,
            cwd=ROOT,
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert texts[0] == texts[1]
    assert onnx.parser.parse_model(texts[0]).graph.node


def test_all_kinds_of_things_are_drawn() -> None:
    models = [of_seed(seed).model for seed in range(200)]
    kinds = {place.node.op_type for model in models for place in scope.walk_model(model)}
    assert {"Scan", "Loop", "If", "SequenceInsert", "LSTM", "MatMul", "CumSum", "TopK"} <= kinds
    assert {model.opset_import[0].version for model in models} >= {8, 9, 11, 13, 16, 18, 21, 26}
    assert any(model.functions for model in models)
    deepest = max(place.path.count(".") for model in models for place in scope.walk_model(model))
    assert deepest >= 3  # a function counts as well


def test_a_model_is_reduced_to_what_matters() -> None:
    def has_a_scan_in_a_loop(generated: Generated) -> bool:
        places = scope.walk_model(generated.model)
        return any(place.node.op_type == "Scan" and "loop_" in place.path for place in places)

    generated = next(one for one in map(of_seed, range(100)) if has_a_scan_in_a_loop(one))
    small = reduce(generated, has_a_scan_in_a_loop, seconds=30)
    assert has_a_scan_in_a_loop(small)
    onnx.checker.check_model(small.model, full_check=True)
    before, after = (sum(1 for _ in scope.walk_model(one.model)) for one in (generated, small))
    assert after <= before / 3
