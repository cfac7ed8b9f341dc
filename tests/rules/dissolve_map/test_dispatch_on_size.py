"""dissolve-map by size: few rows at once, many in the loop; both answer the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from in_both_executors import both_executors, tensors
from onnx import ModelProto

import passes
from passes.ir import scope as scoping
from passes.testing import as_model
from tests.written import changed

FOLDER = Path(__file__).parents[3] / "golden_models"
KNN = onnx.load(FOLDER / "optimize" / "knn_of_few_or_many.before.onnxtxt")


def ifs(model: ModelProto) -> int:
    return sum(place.node.op_type == "If" for place in scoping.walk_model(model))


def limit(model: ModelProto) -> int:
    (greater,) = (node for node in model.graph.node if node.op_type == "Greater")
    (bound,) = (tensor for tensor in model.graph.initializer if tensor.name == greater.input[1])
    return int(onnx.numpy_helper.to_array(bound).item())


@pytest.mark.slow
def test_both_branches_answer_the_same() -> None:
    after = passes.optimize(KNN, verify_budget=10).model
    most = limit(after)
    assert 8 <= most < 500
    points = np.random.default_rng(0).integers(-4, 5, (300, 64)).astype(np.float32)
    executors = both_executors()
    for size in (0, 1, most, most + 1, 2 * most):
        feeds = {"x": np.resize(points, (size, 64)), "points": points}
        expected = tensors(executors[0], KNN, feeds)["y"]
        for executor in executors:
            assert np.array_equal(tensors(executor, after, feeds)["y"], expected)


def test_a_second_run_finds_nothing() -> None:
    once = passes.optimize(KNN, verify=False).model
    assert passes.optimize(once, verify=False).model is once


@pytest.mark.parametrize("size", [4, 500])
def test_a_size_that_is_known_needs_no_if(size: int) -> None:
    after = passes.optimize(KNN, dims={"N": size}, verify=False).model
    assert ifs(after) == 0
    assert ("Scan" in [node.op_type for node in after.graph.node]) == (size == 500)


@pytest.mark.parametrize("target", ["scan-only", "loop-only"])
def test_other_targets_get_one_form(target: str) -> None:
    assert ifs(passes.optimize(KNN, target=target, verify=False).model) == 0


def test_two_open_sizes_decide_nothing() -> None:
    text = onnx.printer.to_text(KNN).replace("N,64", "N,K").replace("300,64", "300,K")
    model = as_model(changed(text, {"float[64] point": "float[K] point"}))
    assert ifs(passes.optimize(model, verify=False).model) == 0


def test_light_work_on_small_rows_is_dissolved_for_good() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[T,4] x, float[N] w) => (float[T,4] y) {
            y = Scan <num_scan_inputs = 1, body = step (float[4] n) => (float[4] m)
                { a = Exp (n) m = Neg (a) }> (x) }"""
    after = passes.optimize(as_model(text), verify=False).model
    assert [node.op_type for node in after.graph.node] == ["Exp", "Neg"]


@pytest.mark.parametrize(
    "work", ["s = Sub (x_t, h)", "q = MatMul (h, w)  s = Sub (x_t, q)"], ids=["sums", "products"]
)
def test_a_scan_over_each_row_becomes_one_however_long_rows_are(work: str) -> None:
    """Each of its steps costs more than what it writes; products have their weights once."""
    text = f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[B,T,2] x, float[2] h0, float[2,2] w) => (float[B,T,2] y) {{
            y = Scan <num_scan_inputs = 1, body = each (float[T,2] row) => (float[T,2] ys) {{
                last, ys = Scan <num_scan_inputs = 1, body = step (float[2] h, float[2] x_t)
                    => (float[2] h_out, float[2] y_t)
                    {{ {work} h_out = Tanh (s) y_t = Identity (h_out) }}> (h0, row) }}> (x) }}"""
    model = as_model(text)
    after = passes.optimize(model, assume=("non-empty",), verify=False).model
    assert ifs(after) == 0
    assert sum(place.node.op_type == "Scan" for place in scoping.walk_model(after)) == 1
    feeds = {
        "x": np.linspace(-1, 1, 3 * 40 * 2, dtype=np.float32).reshape(3, 40, 2),
        "h0": np.array([1, -1], np.float32),
        "w": np.array([[1, 2], [-1, 0.5]], np.float32),
    }
    executors = both_executors()
    expected = tensors(executors[0], model, feeds)["y"]
    for executor in executors:
        assert np.allclose(tensors(executor, after, feeds)["y"], expected, atol=1e-5)
