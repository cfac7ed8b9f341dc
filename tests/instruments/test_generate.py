"""The generator of random models: they are valid, run, are the same for the same seed, shrink."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import onnx
import pytest

from passes.check import check
from passes.ir import scope
from passes.ir.model import Model
from passes.verify.executor import CannotRun, ModelFailed
from tests.instruments.generate.choices import Choices
from tests.instruments.generate.feeds import draw
from tests.instruments.generate.model import Generated, generate
from tests.instruments.generate.odd import KINDS
from tests.instruments.generate.reduce import reduce
from tests.instruments.generate.values import RARE
from tests.onnxruntime_at_hand import at_hand

ROOT = Path(__file__).parents[2]
SEEDS = range(60)


@functools.cache
def of_seed(seed: int) -> Generated:
    return generate(Choices.of_seed(seed))


@functools.cache
def small(odd: Sequence[str] = ()) -> list[onnx.ModelProto]:
    """Small models of which some kinds of odd things are asked."""
    return [generate(Choices.of_seed(seed, small=True), odd).model for seed in range(40)]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_model_is_valid(seed: int) -> None:
    model = of_seed(seed).model
    check(Model(model))
    if model.ir_version > 3:  # there, onnx's inference knows no initializers of bodies
        onnx.checker.check_model(model, full_check=True)


def test_nearly_all_models_run_on_what_is_drawn_for_them() -> None:
    failed = []
    executor = at_hand()
    for seed in SEEDS:
        generated = of_seed(seed)
        try:
            executor.run(generated.model, draw(generated, 0), timeout=10)
        except (ModelFailed, CannotRun):  # an empty sequence is read, a kernel is missing
            failed.append(seed)
    assert len(failed) <= len(SEEDS) // 6, failed


def test_the_decisions_make_the_same_model_again() -> None:
    for seed in SEEDS:
        generated = of_seed(seed)
        assert generate(Choices(generated.drawn)).model == generated.model


def test_another_hash_seed_makes_the_same_model() -> None:
    command = [sys.executable, "-m", "tests.instruments.generate", "--seed", "7", "--text"]
    environment = {"PYTHONHASHSEED": "1"}  # that of tests is random
    there = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    here = generate(Choices.of_seed(7, small=False), None).model
    assert there == f"{onnx.printer.to_text(here)}\n"
    assert here.graph.node


def test_all_kinds_of_things_are_drawn() -> None:
    models = [of_seed(seed).model for seed in range(200)]
    kinds = {place.node.op_type for model in models for place in scope.walk_model(model)}
    assert {"Scan", "Loop", "If", "SequenceInsert", "LSTM", "MatMul", "CumSum", "TopK"} <= kinds
    assert {model.opset_import[0].version for model in models} >= {8, 9, 11, 13, 16, 18, 21, 26}
    assert any(model.functions for model in models)
    deepest = max(place.path.count(".") for model in models for place in scope.walk_model(model))
    assert deepest >= 3  # a function counts as well


def has(node: onnx.NodeProto, first: int, second: int) -> bool:
    """Whether a Loop declares iteration number and condition of these ranks."""
    if node.op_type != "Loop" or node.domain:
        return False
    (body,) = (attribute.g for attribute in node.attribute if attribute.name == "body")
    ranks = [len(name.type.tensor_type.shape.dim) for name in body.input[:2]]
    return ranks == [first, second]


def ends_unasked(node: onnx.NodeProto) -> bool:
    """Whether a Loop without a condition has a body that does not hand on what it got."""
    if node.op_type != "Loop" or node.domain or node.input[1]:
        return False
    (body,) = (attribute.g for attribute in node.attribute if attribute.name == "body")
    producers = {name: node for node in body.node for name in node.output}
    producer = producers.get(body.output[0].name)
    return producer is not None and list(producer.input) != [body.input[1].name]


#: What shows that a model has some of a kind.
SIGNS: dict[str, Callable[[scope.Place], bool]] = {
    "counters": lambda it: "9223372036854775807" in str(it.node) or it.node.op_type == "Cast",
    "deep": lambda it: it.path.count(".") > 25,
    "equal": lambda it: it.node.op_type == "Max",
    "foreign": lambda it: it.node.domain == "my" and it.node.op_type in ("Add", "Identity", "Less"),
    "hints": lambda it: any('"Q"' in str(attribute.g.input) for attribute in it.node.attribute),
    "moved": lambda it: it.node.op_type == "Transpose",
    "negative": lambda it: any(
        attribute.name.endswith("_axes") and min(attribute.ints) < 0
        for attribute in it.node.attribute
    ),
    "no-cond": lambda it: ends_unasked(it.node),
    "ones": lambda it: has(it.node, 1, 1),
    "rare": lambda it: any(
        attribute.name == "to" and attribute.i in RARE for attribute in it.node.attribute
    ),
    "unknown": lambda it: it.node.op_type == "Slice",
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_asked_for_is_drawn_more_often(kind: str) -> None:
    def shown(models: list[onnx.ModelProto]) -> int:
        return sum(any(map(SIGNS[kind], scope.walk_model(model))) for model in models)

    assert shown(small((kind,))) > shown(small())


def test_a_model_is_reduced_to_what_matters() -> None:
    def has_a_scan_in_a_loop(generated: Generated) -> bool:
        places = scope.walk_model(generated.model)
        return any(place.node.op_type == "Scan" and "loop_" in place.path for place in places)

    generated = next(one for one in map(of_seed, range(100)) if has_a_scan_in_a_loop(one))
    reduced = reduce(generated, has_a_scan_in_a_loop, seconds=30)
    assert has_a_scan_in_a_loop(reduced)
    onnx.checker.check_model(reduced.model, full_check=True)
    before, after = (sum(1 for _ in scope.walk_model(one.model)) for one in (generated, reduced))
    assert after <= before / 3
