"""dissolve-map: values that a loop may carry, lengths of 0, 1 and more, and near misses."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from in_both_executors import assert_both_fail, run_both
from moved_work import UNEQUAL, feeds_of_lengths
from random_scans import check_random_scan

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope as scoping
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.executor import ModelFailed
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

pytestmark = pytest.mark.sampled

FLOATS = {"allow_reassociation": True}


def dissolved(model: str, **options: object) -> onnx.ModelProto:
    """The outcome, verified, in which no loop is left."""
    result = assert_rewrite(model, pipeline="dissolve-map", options=options)
    found = [node.op_type for node in result.model.graph.node]
    assert "Scan" not in found, [refusal.sentence for refusal in result.report.refusals]
    return result.model


#: A running sum, of which the last value is read.
SUM = """
<ir_version: 8, opset_import: ["" : 18]>
g (int64[2] s0, int64[T,2] x) => (int64[2] s)
{
    s = Scan <num_scan_inputs = 1, scan_input_directions = [0],
        body = step (int64[2] s_in, int64[2] x_t) => (int64[2] s_out) {
        s_out = Add (s_in, x_t)
    }> (s0, x)
}
"""
STEP = "s_out = Add (s_in, x_t)"
#: The same, which collects the sum of each iteration, too.
SUMS = """
<ir_version: 8, opset_import: ["" : 18]>
g (int64[2] s0, int64[T,2] x) => (int64[2] s, int64[T,2] ys)
{
    s, ys = Scan <num_scan_inputs = 1, scan_input_directions = [0],
        body = step (int64[2] s_in, int64[2] x_t) => (int64[2] s_out, int64[2] y) {
        s_out = Add (s_in, x_t)
        y = Identity (s_out)
    }> (s0, x)
}
"""
READS = [
    pytest.param(SUM, id="last"),
    pytest.param(SUMS, id="s_out"),
    pytest.param(changed(SUMS, {"Identity (s_out)": "Identity (s_in)"}), id="s_in"),
]


def sum_with(step: str, elem: str = "int64", time: str = "T") -> str:
    """`SUM` with another step, of other elements, over another time."""
    return changed(SUM, {STEP: step, "int64": elem, "[T,2]": f"[{time},2]"})


TIMES = ["1", "3", "T"]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("text", READS)
@pytest.mark.parametrize("difference", [False, True])
def test_running_sums_of_integers(time: str, text: str, difference: bool) -> None:
    backwards = {"scan_input_directions = [0]": "scan_input_directions = [1]"}
    text = changed(text, backwards | {"[T,2]": f"[{time},2]"})
    of_32_bits = {STEP: "s_out = Sub (s_in, x_t)", "int64": "int32"}
    dissolved(changed(text, of_32_bits) if difference else text)


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("op", ["Max", "Min"])
def test_finals_of_floats(time: str, op: str) -> None:
    text = sum_with(f"s_out = {op} (x_t, s_in)", "float", time)
    assert_refused(text, "reassociation", pipeline="dissolve-map")
    dissolved(text, **FLOATS)


@pytest.mark.parametrize(("op", "time"), [("Max", "T"), ("Min", "3")])
@pytest.mark.parametrize("elem", ["int64", "int32", "int8", "uint8"])
def test_extremes_of_integers(op: str, time: str, elem: str) -> None:
    dissolved(sum_with(f"s_out = {op} (s_in, x_t)", elem, time))


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("text", READS)
@pytest.mark.parametrize("elem", ["float", "string", "bool"])
def test_last_values(time: str, text: str, elem: str) -> None:
    last = {STEP: "s_out = Identity (x_t)", "int64": elem, "[T,2]": f"[{time},2]"}
    dissolved(changed(text, last))


@pytest.mark.parametrize(
    ("step", "elem", "dtype"),
    [
        ("Add (s_in, x_t)", "int64", np.int64),
        ("Max (s_in, x_t)", "int64", np.int64),
        ("Neg (x_t)", "float", np.float32),
    ],
)
def test_a_length_of_0_gives_the_initial_value(step: str, elem: str, dtype: type) -> None:
    after = dissolved(sum_with(f"s_out = {step}", elem))
    feeds = {"s0": np.array([5, -7], dtype), "x": np.zeros((0, 2), dtype)}
    for found in run_both(after, feeds):
        assert np.array_equal(found["s"], feeds["s0"])


@pytest.mark.parametrize("allowed", [{}, FLOATS])
def test_floats_are_added_up_in_the_order_of_the_loop(allowed: dict[str, str]) -> None:
    """In another order 3e38 and 3e38 meet, and their sum is infinite, or 1e-3 is lost in 1e8."""
    text = changed(SUM, {STEP: "s_out = Add (s_in, x_t)", "int64[T,2]": "float[T]"})
    after = dissolved(changed(text, {"int64[2]": "float"}), **allowed)
    large = np.array([3e38, -3e38, -3e38, 3e38] * 8, np.float32)
    small = np.array([-1e8, *[1e-3] * 31], np.float32)
    for x, initial, expected in (
        (large, 0, 0),
        (np.roll(large, -1), 3e38, 3e38),
        (small, 1e8, 0.031),
    ):
        for found in run_both(after, {"s0": np.array(initial, np.float32), "x": x}):
            np.testing.assert_allclose(found["s"], np.float32(expected), rtol=1e-5)


def test_integers_wrap_around() -> None:
    after = dissolved(SUM)
    feeds = {"s0": np.array([2**62, 1]), "x": np.full((5, 2), 2**62 + 1)}
    with np.errstate(over="ignore"):
        expected = feeds["s0"] + feeds["x"].sum(0)
    for found in run_both(after, feeds):
        assert np.array_equal(found["s"], expected)


@pytest.mark.parametrize("op", ["Max", "Min"])
@pytest.mark.parametrize("time", ["T", "3"])
def test_nan_is_kept(op: str, time: str) -> None:
    after = dissolved(sum_with(f"s_out = {op} (s_in, x_t)", "float", time), **FLOATS)
    rows = np.array([[1, 2], [np.nan, 1], [3, 0]], np.float32)
    for found in run_both(after, {"s0": np.zeros(2, np.float32), "x": rows}):
        assert np.isnan(found["s"][0])
        assert not np.isnan(found["s"][1])


def test_the_report_says_that_floats_are_reassociated() -> None:
    text = sum_with("s_out = Max (s_in, x_t)", "float")
    report = assert_rewrite(text, pipeline="dissolve-map", options=FLOATS).report
    assert "floats are reassociated in s_in" in str(report.to_text())


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("elem", ["int32", "int64"])
def test_counters_of_any_shape(time: str, elem: str) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (int64[2] i0, int64 step, int64[T,2] x) => (int64[2] i, int64[T,2] y)
    {
        i, y = Scan <num_scan_inputs = 1,
            body = b (int64[2] n, int64[2] x_t) => (int64[2] m, int64[2] o) {
            m = Add (step, n)
            o = Mul (n, x_t)
        }> (i0, x)
    }
    """
    text = changed(text, {"int64": elem, "[T,2]": f"[{time},2]"})
    dissolved(text)


TWO = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[3] k0, float[T,3] x, float[S,3] z) => (float[3] k, float[T,3] y) {
    k, y = Scan <num_scan_inputs = 2, body = one (float[3] s, float[3] n, float[3] m)
        => (float[3] t, float[3] o) { t = Identity (s) o = Mul (n, m) }> (k0, x, z) }"""


@pytest.mark.parametrize("lengths", UNEQUAL)
def test_lengths_must_agree_as_before(lengths: tuple[int, int]) -> None:
    assert_both_fail(dissolved(TWO), feeds_of_lengths("k0", lengths))


def test_valid_inputs_need_no_guard() -> None:
    after = dissolved(TWO, assume="valid-inputs")
    assert [node.op_type for node in after.graph.node] == ["Mul", "Identity"]


@pytest.mark.parametrize(
    ("step", "elem", "code"),
    [
        ("s_out = Sub (x_t, s_in)", "int64", "carries"),
        ("s_out = Add (s_in, s_in)", "int64", "carries"),
        ("p = Mul (s_in, x_t) s_out = Add (s_in, p)", "int64", "carries"),
        ("s_out = Max (s_in, x_t, x_t)", "int64", "carries"),
        ("s_out = Add (s_in, x_t)", "uint64", "no-kernel"),
        ("s_out = Max (s_in, x_t)", "float16", "reassociation"),
    ],
)
def test_near_misses(step: str, elem: str, code: str) -> None:
    assert_refused(sum_with(step, elem), code, pipeline="dissolve-map")


def test_two_values_that_need_each_other() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[3] a0, float[3] b0, float[T,3] x) => (float[3] a, float[3] b) {
        a, b = Scan <num_scan_inputs = 1, body = one (float[3] s, float[3] t, float[3] n)
            => (float[3] u, float[3] v) { u = Exp (t) v = Mul (s, n) }> (a0, b0, x) }"""
    assert_refused(text, "carries", pipeline="dissolve-map")


def test_values_that_hand_each_other_on() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[3] a0, float[3] b0, float[T,3] x) => (float[3] b, float[T,3] y) {
        a, b, y = Scan <num_scan_inputs = 1, body = one (float[3] s, float[3] t, float[3] n)
            => (float[3] u, float[3] v, float[3] o)
            { u = Exp (n) v = Identity (s) o = Sub (t, n) }> (a0, b0, x) }"""
    dissolved(text)


def test_a_broadcast_may_change_the_shape_of_a_state() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (int64[N] s0, int64[T,2] x) => (int64[2] s) {
            s = Scan <num_scan_inputs = 1,
                body = step (int64[N] s_in, int64[2] x_t) => (int64[2] s_out) {
                    s_out = Add (s_in, x_t) }> (s0, x) }"""
    assert_refused(text, "shape-unknown", pipeline="dissolve-map")


def test_sizes_of_one_name_are_checked_when_the_model_runs() -> None:
    text = changed(SUM, {"2]": "N]"})
    after = dissolved(text)
    feeds = {"s0": np.array([1]), "x": np.ones((2, 3), np.int64)}
    for model in (as_model(text), after):
        with pytest.raises(ModelFailed):
            ReferenceExecutor().run(model, feeds)


def test_a_function_that_the_body_calls_is_no_operator() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[T,3] x) => (float[T,3] y) {
            y = Scan <num_scan_inputs = 1, body = one (float[3] n) => (float[3] t)
                { t = own.f (n) }> (x) }
        <domain: "own", opset_import: ["" : 18]> f (a) => (b) { b = Exp (a) }"""
    assert_refused(text, "no-rule", pipeline="dissolve-map")


@pytest.mark.parametrize("attribute", ["scan_input_axes = [1]", "scan_output_axes = [1]"])
def test_an_axis_of_unknown_rank(attribute: str) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] v, int64[K] shape) => (float[N] out) {
        x = Reshape (v, shape)
        y = Scan <num_scan_inputs = 1, scan_input_axes = [0], body = one (float[] n) => (float[] t)
            { t = Exp (n) }> (x)
        flat = Constant <value = int64[1] {-1}> ()
        out = Reshape (y, flat) }"""
    model = as_model(changed(text, {"scan_input_axes = [0]": attribute}))
    (body,) = (
        attribute.g for attribute in model.graph.node[1].attribute if attribute.name == "body"
    )
    for value in (*body.input, *body.output):
        value.type.tensor_type.ClearField("shape")
    assert_refused(model, "no-rule", pipeline="dissolve-map")
    for pipeline in ("batch-inputs", "batch-outputs"):
        outcome = Session([Pass(SCHEDULES[pipeline])], None).run(model).model
        assert "Scan" in [node.op_type for node in outcome.graph.node]


@pytest.mark.parametrize("seed", range(4))
def test_random_bodies(seed: int) -> None:
    check_random_scan(seed, "dissolve-map")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_random_bodies(seed: int) -> None:
    check_random_scan(seed, "dissolve-map")


#: In each iteration a GRU reads a batch of sequences.
SEQUENCES = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[T,3,B,2] x, float[1,6,2] w) => (float[T,1,B,2] z)
{
    z = Scan <num_scan_inputs = 1, body = step (float[3,B,2] x_t) => (float[1,B,2] o) {
        o_t, h = GRU <hidden_size = 2> (x_t, w, w)
        o = Identity (h)
    }> (x)
}
"""


@pytest.mark.parametrize("batch", ["2", "B"])
@pytest.mark.parametrize(("op", "size"), [("GRU", 6), ("LSTM", 8)])
def test_an_empty_batch_would_end_the_process_of_onnxruntime(
    op: str, size: int, batch: str
) -> None:
    """Each iteration becomes a row of the batch, so there must be one."""
    operator = {"GRU": op, "[1,6,2] w": f"[1,{size},2] w"}
    text = changed(SEQUENCES, operator | {",B,": f",{batch},"})
    assert_refused(text, "may-be-empty", pipeline="dissolve-map")
    dissolved(text, assume="non-empty")
    dissolved(changed(text, {"[T,": "[4,"}))


def test_an_rnn_may_read_an_empty_batch() -> None:
    dissolved(changed(SEQUENCES, {"GRU": "RNN", "[1,6,2] w": "[1,2,2] w"}))


@pytest.mark.parametrize(("size", "dim"), [("B", "B"), ("3", 3)])
def test_the_body_for_all_rows_declares_the_size_of_the_batch(size: str, dim: str | int) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[B,T,2] x, float[2] h0) => (float[K,T,2] y)
    {
        y = Scan <num_scan_inputs = 1, body = each (float[T,2] row) => (float[T,2] ys) {
            last, ys = Scan <num_scan_inputs = 1,
                body = step (float[2] h, float[2] x_t) => (float[2] h_out, float[2] y_t) {
                s = Sub (x_t, h)
                h_out = Tanh (s)
                y_t = Identity (h_out)
            }> (h0, row)
        }> (x)
    }
    """
    assert leading_dims_of_the_body(changed(text, {"float[B,": f"float[{size},"})) == {dim}


def test_a_number_of_rows_without_a_name_gets_none() -> None:
    """Another value could have the same made-up name, and another size."""
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[N,T,2] x, float[2] h0, bool[N] c) => (float[K,T,2] y)
    {
        rows = Compress <axis = 0> (x, c)
        y = Scan <num_scan_inputs = 1, body = each (float[T,2] row) => (float[T,2] ys) {
            last, ys = Scan <num_scan_inputs = 1,
                body = step (float[2] h, float[2] x_t) => (float[2] h_out, float[2] y_t) {
                s = Sub (x_t, h)
                h_out = Tanh (s)
                y_t = Identity (h_out)
            }> (h0, row)
        }> (rows)
    }
    """
    assert leading_dims_of_the_body(text) == {""}


def leading_dims_of_the_body(text: str) -> set[str | int]:
    """The first sizes of the inputs and outputs of the body of the Scan that is left."""
    result = assert_rewrite(text, pipeline="dissolve-map", options={"assume": "non-empty"})
    (scan,) = [node for node in result.model.graph.node if node.op_type == "Scan"]
    ((_, body),) = scoping.subgraphs(scan)
    firsts = [value.type.tensor_type.shape.dim[0] for value in (*body.input, *body.output)]
    return {one.dim_param or one.dim_value or "" for one in firsts}
