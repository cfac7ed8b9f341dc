"""Scan-9 and later in the reference executor, against onnxruntime where it runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import parser
from ort_process import OrtProcess, OrtRefused, difference, ort_process

from passes.verify.executor import ModelFailed
from passes.verify.reference import ReferenceExecutor

RUN = ReferenceExecutor().run


@pytest.fixture(scope="module")
def ort() -> Iterator[OrtProcess]:
    with ort_process() as process:
        yield process


def scan(attributes: str = "", opset: int = 11, shape: str = "A, B, C") -> Any:
    """Adds up slices of x, collects them and their doubles."""
    return parser.parse_model(f"""
    <ir_version: 8, opset_import: ["": {opset}]>
    g (float[N, M] s, float[{shape}] x) => (last, slices, doubles) {{
      last, slices, doubles = Scan <num_scan_inputs = 1, {attributes}
        body = body (float[N, M] a, float[N, M] e) => (float[N, M] b, float[N, M] c, float[N, M] d)
        {{ b = Add (a, e)  c = Identity (e)  d = Add (e, e) }}> (s, x)
    }}""")


X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


#: Negative axes came with opset 11.
AXES = [(9, 0), (9, 2), (11, 0), (11, 1), (11, -1), (16, 1), (16, -3), (21, 2), (21, -2)]


@pytest.mark.parametrize(("opset", "axis"), AXES)
@pytest.mark.parametrize("backwards", [0, 1])
def test_axes_and_directions(ort: OrtProcess, opset: int, axis: int, backwards: int) -> None:
    model = scan(
        f"scan_input_axes = [{axis}], scan_input_directions = [{backwards}], "
        f"scan_output_axes = [0, {axis}], scan_output_directions = [1, {backwards}],",
        opset,
    )
    x = np.moveaxis(X, axis, 0)
    feeds = {"s": np.ones(x.shape[1:], np.float32), "x": X}
    outputs = RUN(model, feeds).outputs
    order = x[::-1] if backwards else x
    np.testing.assert_array_equal(outputs["last"], 1 + x.sum(0))
    np.testing.assert_array_equal(outputs["slices"], order[::-1])
    np.testing.assert_array_equal(outputs["doubles"], np.moveaxis(2 * x, 0, axis))
    answer = ort.run(model, feeds)
    assert not isinstance(answer, OrtRefused), answer
    assert [difference(a, b) for a, b in zip(outputs.values(), answer, strict=True)] == [""] * 3


def test_at_length_0_the_state_stays_and_outputs_are_empty_on_their_axis() -> None:
    model = scan("scan_output_axes = [1, -1],")
    feeds = {"s": np.ones((3, 4), np.float32), "x": np.zeros((0, 3, 4), np.float32)}
    outcome = RUN(model, feeds)
    assert outcome.outputs["last"].tolist() == feeds["s"].tolist()
    assert outcome.outputs["slices"].shape == (3, 0, 4)
    assert outcome.outputs["doubles"].shape == (3, 4, 0)
    assert outcome.outputs["doubles"].dtype == np.float32
    assert not outcome.guessed_shapes


def test_at_length_0_unknown_dims_are_0_and_the_outcome_says_so() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 13]>
    g (float[T, N] x) => (y) {
      y = Scan <num_scan_inputs = 1, body = body (float[N] e) => (int64[R, K] c) {
        c = NonZero (e)
      }> (x)
    }""")
    outcome = RUN(model, {"x": np.zeros((0, 3), np.float32)})
    assert outcome.guessed_shapes
    # NonZero gives one row per axis of its operand: that much is inferred.
    assert outcome.outputs["y"].shape == (0, 1, 0)
    assert outcome.outputs["y"].dtype == np.int64


def test_at_length_0_the_type_may_come_from_a_captured_value() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 13]>
    g (float[T] x, double[2, 5] w) => (y) {
      y = Scan <num_scan_inputs = 1, body = body (e) => (c) { c = Identity (w) }> (x)
    }""")
    outcome = RUN(model, {"x": np.zeros(0, np.float32), "w": np.zeros((2, 5))})
    assert outcome.outputs["y"].shape == (0, 2, 5)
    assert outcome.outputs["y"].dtype == np.float64
    assert not outcome.guessed_shapes


@pytest.mark.parametrize(
    ("fixed", "given", "guessed"),
    [("<int64[2] sizes = {3, 2}>", "", False), ("", ", int64[2] sizes", True)],
)
def test_at_length_0_a_shape_that_only_the_run_tells_is_guessed(
    fixed: str, given: str, guessed: bool
) -> None:
    model = parser.parse_model(f"""
    <ir_version: 8, opset_import: ["": 13]>
    g (float[T] x, float[6] w{given}) => (y) {fixed} {{
      y = Scan <num_scan_inputs = 1, body = body (e) => (c) {{ c = Reshape (w, sizes) }}> (x)
    }}""")
    feeds = {"x": np.zeros(0, np.float32), "w": np.zeros(6, np.float32)}
    outcome = RUN(model, feeds | ({"sizes": np.array([3, 2])} if given else {}))
    assert outcome.outputs["y"].shape == (0, 3, 2)
    assert outcome.guessed_shapes == guessed


@pytest.mark.parametrize(("size", "guessed"), [("float[N]", False), ("float[?]", True)])
def test_at_length_0_sizes_that_no_type_tells_are_guessed(size: str, guessed: bool) -> None:
    model = parser.parse_model(f"""
    <ir_version: 8, opset_import: ["": 13]>
    g (float[T] x, {size} w) => (y) {{
      y = Scan <num_scan_inputs = 1, body = body (e) => (c) {{ c = Identity (w) }}> (x)
    }}""")
    outcome = RUN(model, {"x": np.zeros(0, np.float32), "w": np.zeros(4, np.float32)})
    assert outcome.outputs["y"].shape == (0, 4)
    assert outcome.guessed_shapes == guessed
    assert outcome.idle


TWO = """
<ir_version: 8, opset_import: ["": 11]>
g (float[T] x, float[U] y) => (z) {
  z = Scan <num_scan_inputs = 2, body = body (float a, float b) => (float c) { c = Sub (a, b) }>
      (x, y)
}"""


def test_a_loop_that_runs_is_not_idle() -> None:
    outcome = RUN(parser.parse_model(TWO), {name: np.zeros(2, np.float32) for name in "xy"})
    assert not outcome.idle


def test_unequal_lengths_are_an_error_and_never_cut() -> None:
    model = parser.parse_model(TWO)
    with pytest.raises(ModelFailed, match=r"lengths of the scanned inputs differ: \[3, 2\]"):
        RUN(model, {"x": np.zeros(3, np.float32), "y": np.zeros(2, np.float32)})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("float[N] b, float c) { b = Concat <axis = 0> (a, a)  c = Identity (e)", "its shape"),
        ("int64[N] b, float c) { b = Cast <to = 7> (a)  c = Identity (e)", "its type"),
        ("float[N] b, float[K] c) { b = Identity (a) q = Cast <to = 7> (e) one = Constant "
         "<value_ints = [1]> () r = Reshape (q, one) c = ConstantOfShape (r)", "output 0 changes"),
    ],
)  # fmt: skip
def test_states_and_elements_keep_shape_and_type(body: str, words: str) -> None:
    model = parser.parse_model(f"""
    <ir_version: 8, opset_import: ["": 13]>
    g (float[N] s, float[T] x) => (last, y) {{
      last, y = Scan <num_scan_inputs = 1, body = body (float[N] a, float e) => ({body} }}> (s, x)
    }}""")
    feeds = {"s": np.zeros(2, np.float32), "x": np.array([1, 2], np.float32)}
    with pytest.raises(ModelFailed, match=words):
        RUN(model, feeds)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("scan_input_axes = [3],", "axis 3 does not fit scanned input 0"),
        ("scan_output_axes = [0, 3],", "axis 3 does not fit collected output 1"),
        ("scan_input_axes = [0, 1],", "scan_input_axes has 2 entries, 1 are needed"),
    ],
)
def test_attributes_that_do_not_fit_are_errors(attributes: str, words: str) -> None:
    feeds = {"s": np.zeros((3, 4), np.float32), "x": X}
    with pytest.raises(ModelFailed, match=words):
        RUN(scan(attributes), feeds)


def test_a_body_output_that_is_a_body_input() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 13]>
    g (float s, float[T] x) => (last, y, z) {
      last, y, z = Scan <num_scan_inputs = 1, body = body (float a, float e) => (e, a, e) {}> (s, x)
    }""")
    outputs = RUN(model, {"s": np.array(9, np.float32), "x": np.array([1, 2], np.float32)}).outputs
    assert outputs["last"] == 2
    assert outputs["y"].tolist() == [9, 1]
    assert outputs["z"].tolist() == [1, 2]


def test_scan_in_scan_captures_through_both(ort: OrtProcess) -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 13]>
    g (float[A, B] x, float w) => (y) {
      y = Scan <num_scan_inputs = 1, body = outer (float[B] row) => (float[B] ys) {
        ys = Scan <num_scan_inputs = 1, body = inner (float e) => (float v) {
          v0 = Mul (e, w)  n = ReduceSum <keepdims = 0> (row)  v = Add (v0, n)
        }> (row)
      }> (x)
    }""")
    feeds = {"x": np.array([[1, 2], [3, 4]], np.float32), "w": np.array(10, np.float32)}
    outputs = RUN(model, feeds).outputs
    assert outputs["y"].tolist() == [[13, 23], [37, 47]]
    answer = ort.run(model, feeds)
    assert not isinstance(answer, OrtRefused), answer
    assert difference(outputs["y"], answer[0]) == ""
