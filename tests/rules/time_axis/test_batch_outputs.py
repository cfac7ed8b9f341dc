"""batch-outputs: Scans and Loops, and nodes that must stay in the loop."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from in_both_executors import run_both
from moved_work import NO_TIME, body, every_length_axis_and_direction, inside, ops
from random_scans import check_random_scan

from passes.testing import assert_refused, assert_rewrite
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

pytestmark = pytest.mark.sampled


def moved(model: str, **options: object) -> onnx.ModelProto:
    """The outcome of batch-outputs, verified."""
    return assert_rewrite(model, pipeline="batch-outputs", options=options).model


#: A state is collected by way of a product.
COLLECTED = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] h0, float[T,2,3] x, int64 at) => (float[2,3] h, float[I,J,K] ys)
<float[3] V_row = {1, 2, 3}, float[3,4] V = {1, 2, -1, 0.5, 0.25, 1, -2, 0, 1, 3, -3, 2}>
{
    h, ys = Scan <num_scan_inputs = 1, scan_input_directions = [0],
        scan_output_axes = [0], scan_output_directions = [0],
        body = step (float[2,3] h_in, float[2,3] x_t) => (float[2,3] h_out, float[2,4] y) {
        h_out = Sub (x_t, h_in)
        y = MatMul (h_out, V)
    }> (h0, x)
}
"""


def with_tail(tail: str) -> str:
    """The loop with other nodes that compute `y`."""
    return changed(COLLECTED, {"y = MatMul (h_out, V)": tail})


@every_length_axis_and_direction
def test_every_length_axis_and_direction(time: str, axis: int, back: int) -> None:
    collected = {
        "float[T,2,3] x": f"float[{time},2,3] x",
        "scan_output_axes = [0]": f"scan_output_axes = [{axis}]",
        "scan_output_directions = [0]": f"scan_output_directions = [{back}]",
    }
    after = moved(changed(COLLECTED, collected))
    assert "MatMul" in ops(after)
    assert inside(after) == ["Sub", "Identity"]


def test_a_length_of_0_gives_an_empty_output_of_the_right_shape() -> None:
    collected = {
        "scan_output_axes = [0]": "scan_output_axes = [1]",
        "scan_output_directions = [0]": "scan_output_directions = [1]",
    }
    after = moved(changed(COLLECTED, collected))
    found = ReferenceExecutor().run(after, NO_TIME).outputs["ys"]
    assert isinstance(found, np.ndarray)
    assert found.shape == (2, 0, 4)


def test_scanned_tensors_are_read_again_in_the_order_of_the_iterations() -> None:
    tail = "p = Mul (h_out, x_t) y = MatMul (p, V)"
    backwards = {"scan_input_directions = [0]": "scan_input_directions = [1]"}
    after = moved(changed(with_tail(tail), backwards))
    assert inside(after) == ["Sub", "Identity"]
    assert "Slice" in ops(after)


def test_nodes_that_the_next_iteration_reads_stay() -> None:
    tail = "e = Exp (h_out) f = Abs (e) y = MatMul (f, V)"
    state = {"h_out = Sub (x_t, h_in)": "h_out = Exp (h_in)"}
    assert inside(moved(changed(with_tail(tail), state))) == ["Exp", "Identity"]


def test_shapes_move_with_their_readers() -> None:
    tail = "e = Exp (h_out) s = Shape (e) f = Expand (V_row, s) q = Add (e, f) y = MatMul (q, V)"
    assert inside(moved(changed(with_tail(tail), {"float[T,2,3] x": "float[3,2,3] x"}))) == [
        "Sub",
        "Identity",
    ]


def test_random_ops_stay() -> None:
    tail = "r = RandomNormalLike (h_out) e = Exp (r) y = MatMul (e, V)"
    assert "RandomNormalLike" in inside(moved(with_tail(tail)))


def test_the_outcome_has_nothing_left_to_move() -> None:
    once = moved(COLLECTED)
    assert assert_rewrite(once, pipeline="batch-outputs").report.unchanged


WHILE = """
<ir_version: 8, opset_import: ["" : 18]>
g (int64 n, bool go, float[2,3] h0, float bound, int64 at) => (float[2,3] h, float[I,J,K] ys)
<float[3,4] V = {1, 2, -1, 0.5, 0.25, 1, -2, 0, 1, 3, -3, 2}>
{
    half = Constant <value = float {0.5}> ()
    five = Constant <value = int64 {5}> ()
    h, ys = Loop (n, go, h0) <body = step (int64 i, bool c, float[2,3] h_in)
        => (bool c_out, float[2,3] h_out, float[2,4] y) {
        h_out = Mul (h_in, half)
        s = ReduceSum <keepdims = 0> (h_out)
        c_out = Less (bound, s)
        p = MatMul (h_out, V)
        y = Exp (p)
    }>
}
"""


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize("go", [False, True])
def test_a_while_loop_collects_as_often_as_it_ran(trips: int, go: bool) -> None:
    after = moved(WHILE)
    assert inside(after) == ["Mul", "ReduceSum", "Less", "Identity"]
    feeds = {
        "n": np.array(trips),
        "go": np.array(go),
        "h0": np.ones((2, 3), np.float32),
        "bound": np.array(2, np.float32),
        "at": np.array(0),
    }
    for found in run_both(after, feeds):
        assert found["ys"].shape == (min(trips, 2) if go else 0, 2, 4)


def test_a_node_that_may_fail_stays_where_the_loop_may_not_run() -> None:
    tail = """zero = Constant <value = int64[1] {0}> ()
        at_one = Unsqueeze (at, zero)
        pair = Concat <axis = 0> (at_one, at_one)
        e = Exp (h_out)
        p = MatMul (e, V)"""
    gathered = {"p = MatMul (h_out, V)": tail, "y = Exp (p)": "y = Gather <axis = 0> (p, pair)"}
    assert_refused(changed(WHILE, gathered), "nothing-to-move", pipeline="batch-outputs")
    five_times = {"Loop (n, go, h0)": 'Loop (five, "", h0)', "Less (bound, s)": "Identity (c)"}
    assert "Gather" in ops(moved(changed(WHILE, gathered | five_times)))


def test_a_node_whose_sizes_must_fit_stays_where_the_loop_may_not_run() -> None:
    after = moved("""<ir_version: 8, opset_import: ["" : 18]>
        g (int64 n, float[B,3] h0, float[B,3] w) => (float[B,3] h, float[I,J,K] ys) {
        h, ys = Loop (n, , h0) <body = step (int64 i, bool c, float[B,3] h_in)
            => (bool c_out, float[B,3] h_out, float[B,3] y) {
                c_out = Identity (c) h_out = Neg (h_in) e = Mul (h_out, w) y = Exp (e) }> }""")
    assert inside(after) == ["Identity", "Neg", "Mul", "Identity"]


def test_one_value_is_collected_once() -> None:
    after = moved("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] h0, float[T,2,3] x)
            => (float[2,3] h, float[T,2,4] ys, float[T,2,3] zs, float[T,2,3] alls)
        <float[3,4] V = {1, 2, -1, 0.5, 0.25, 1, -2, 0, 1, 3, -3, 2}> {
            h, ys, zs, alls = Scan <num_scan_inputs = 1,
                body = step (float[2,3] h_in, float[2,3] x_t)
                    => (float[2,3] h_out, float[2,4] y, float[2,3] z, float[2,3] all) {
                    h_out = Sub (x_t, h_in)
                    y = MatMul (h_out, V)
                    z = Exp (h_out)
                    all = Identity (h_out) }> (h0, x) }""")
    assert len(body(after).output) == 2


@pytest.mark.parametrize("seed", range(4))
def test_random_bodies(seed: int) -> None:
    check_random_scan(seed, "batch-outputs")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_random_bodies(seed: int) -> None:
    check_random_scan(seed, "batch-outputs")
