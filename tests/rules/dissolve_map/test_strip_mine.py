"""dissolve-map in blocks: a Scan whose values do not stay in the cache does several iterations."""

from __future__ import annotations

import numpy as np
import pytest
from in_both_executors import both_executors, tensors
from onnx import ModelProto

import passes
from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope as scoping
from passes.session import Session
from passes.testing import as_model, assert_rewrite
from tests.written import changed

OPEN = """<ir_version: 8, opset_import: ["" : 18]>
    knn (float[N,16] x, float[60,16] points) => (float[60,N] y) {
        y = Scan <num_scan_inputs = 1, body = step (float[16] point) => (float[N] far) {
            away = Sub (x, point) axis = Constant <value_ints = [1]> ()
            far = ReduceSumSquare <keepdims = 0> (away, axis)
        }> (points) }"""


#: Each iteration computes 512 x 16 floats; 8 of them take 256 KiB.
FAR = """
<ir_version: 8, opset_import: ["" : 18]>
knn (float[512,16] x, float[60,16] points, float[60] w) => (float[60,512] y) {
    y = Scan <num_scan_inputs = 2, scan_input_directions = [0, 0],
        scan_output_axes = [0], scan_output_directions = [0],
        body = step (float[16] point, float weight) => (float[512] far) {
        away = Sub (x, point)
        size = Abs (away)
        scaled = Mul (size, weight)
        axis = Constant <value_ints = [1]> ()
        far = ReduceMax <keepdims = 0> (scaled, axis)
    }> (points, w)
}
"""


def far(length: int) -> str:
    return changed(FAR, {"[60": f"[{length}"})


def optimized(text: str) -> ModelProto:
    return passes.optimize(as_model(text), verify=False).model


def block_of(model: ModelProto) -> int:
    """How many iterations a Scan does at once, at most."""
    places = scoping.walk_model(model)
    scans = [place.node for place in places if place.node.op_type == "Scan"]
    bodies = [graph for node in scans for _, graph in scoping.subgraphs(node)]
    shapes = [body.input[0].type.tensor_type.shape.dim for body in bodies]
    return max(int(dims[0].dim_value) if len(dims) == 2 else 1 for dims in shapes)


@pytest.mark.parametrize(
    ("length", "block"), [(1000, 8), (300, 6), (42, 7), (509, 1), (34, 2), (40, 8)]
)
def test_as_many_as_stay_in_the_cache_and_divide_the_length(length: int, block: int) -> None:
    assert block_of(optimized(far(length))) == block


@pytest.mark.parametrize("length", [2, 8, 14, 32])
def test_iterations_that_all_stay_in_the_cache_run_at_once(length: int) -> None:
    after = optimized(far(length))
    assert "Scan" not in {place.node.op_type for place in scoping.walk_model(after)}


def test_both_forms_answer_the_same() -> None:
    before = as_model(FAR)
    after = passes.optimize(before, verify_budget=20).model
    draw = np.random.default_rng(0)
    shapes = {"x": (512, 16), "points": (60, 16), "w": (60,)}
    feeds = {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    executors = both_executors()
    expected = tensors(executors[0], before, feeds)["y"]
    for executor in executors:
        assert np.array_equal(tensors(executor, after, feeds)["y"], expected)


@pytest.mark.parametrize("rows", [0, 1, 64, 65, 200, 520, 521])
def test_an_unknown_size(rows: int) -> None:
    before, after = as_model(OPEN), optimized(OPEN)
    assert block_of(after) == 6  # for up to 520 rows
    draw = np.random.default_rng(0)
    feeds = {
        "x": draw.integers(-4, 5, (rows, 16)).astype(np.float32),
        "points": draw.integers(-4, 5, (60, 16)).astype(np.float32),
    }
    executors = both_executors()
    expected = tensors(executors[0], before, feeds)["y"]
    for executor in executors:
        assert np.array_equal(tensors(executor, after, feeds)["y"], expected)


def test_a_second_run_finds_nothing() -> None:
    for text in (far(1000), OPEN):
        once = optimized(text)
        assert passes.optimize(once, verify=False).model is once


@pytest.mark.parametrize(
    "text",
    [
        changed(FAR, {"scan_output_axes = [0]": "scan_output_axes = [1]"}),
        changed(FAR, {"scan_input_directions = [0, 0]": "scan_input_directions = [1, 0]"}),
        changed(FAR, {"scan_output_directions = [0]": "scan_output_directions = [1]"}),
        changed(FAR, {"float[60] w": "float[L] w"}),
    ],
    ids=["another axis", "last first", "collected last first", "another length"],
)
def test_other_forms_of_scan_stay(text: str) -> None:
    assert block_of(optimized(text)) == 1


def test_for_other_targets_it_stays() -> None:
    model = as_model(FAR)
    assert block_of(passes.optimize(model, target="scan-only", verify=False).model) == 1


@pytest.mark.parametrize(
    "nodes",
    [
        "m = MatMul (x, point) e = Unsqueeze (m, axis) far = Mul (x, e)",
        "e = RandomUniformLike (x) a = Add (x, e) far = Mul (a, point)",
        "a = Mul (x, point) n = NonZero (a) s = Shape (n) c = CastLike (s, x) "
        "d = ReduceSum <keepdims = 0> (c) far = Add (a, d)",
    ],
    ids=["a product", "draws", "no rule"],
)
def test_bodies_that_are_not_cut(nodes: str) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[512,512] x, float[60,512] points) => (float[60,A,B] y) <int64[1] axis = {1}> {
        y = Scan <num_scan_inputs = 1, body = step (float[512] point) => (float[A,B] far) {
            far = Neg (x)
        }> (points)
    }
    """
    text = changed(text, {"far = Neg (x)": nodes})
    result = Session(
        [Pass(SCHEDULES["dissolve-map"], options=RuleOptions(dispatch_on_size=True))], None
    ).run(as_model(text))
    assert not [record for record in result.report.records if not record.code]


def test_it_is_verified() -> None:
    text = far(36)
    result = assert_rewrite(
        text, pipeline="dissolve-map", options={"dispatch_on_size": True}, budget=20
    )
    assert [record.note for record in result.report.records if record.note] == [
        "6 iterations at once"
    ]
