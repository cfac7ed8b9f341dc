"""batch-outputs: Scans and Loops, what is collected instead, and what must stay in the loop."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from in_both_executors import run_both
from moved_work import HEAD, NO_TIME, body, every_length_axis_and_direction, inside, ops
from random_scans import check_random_scan

from passes.testing import assert_refused, assert_rewrite
from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled


def moved(model: str, **options: object) -> onnx.ModelProto:
    """The outcome, verified."""
    return assert_rewrite(model, pipeline="batch-outputs", options=options).model


def cell(
    time: str,
    axis: int = 0,
    back: int = 0,
    tail: str = "y = MatMul (h_out, V)",
    *,
    state: str = "Sub (x_t, h_in)",
    attributes: str = "",
) -> str:
    return f"""{HEAD}
        g (float[2,3] h0, float[{time},2,3] x, int64 at) => (float[2,3] h, float[I,J,K] ys)
        <float[3] V_row = {{1, 2, 3}},
         float[3,4] V = {{1, 2, -1, 0.5, 0.25, 1, -2, 0, 1, 3, -3, 2}}> {{
            h, ys = Scan <num_scan_inputs = 1, {attributes} scan_output_axes = [{axis}],
                scan_output_directions = [{back}],
                body = step (float[2,3] h_in, float[2,3] x_t) => (float[2,3] h_out, float[2,4] y) {{
                    h_out = {state} {tail} }}> (h0, x) }}"""


@every_length_axis_and_direction
def test_every_length_axis_and_direction(time: str, axis: int, back: int) -> None:
    after = moved(cell(time, axis, back))
    assert "MatMul" in ops(after)
    assert inside(after) == ["Sub", "Identity"]


def test_a_length_of_0_gives_an_empty_output_of_the_right_shape() -> None:
    after = moved(cell("T", 1, 1))
    found = ReferenceExecutor().run(after, NO_TIME).outputs["ys"]
    assert isinstance(found, np.ndarray)
    assert found.shape == (2, 0, 4)


def test_scanned_tensors_are_read_again_in_the_order_of_the_iterations() -> None:
    tail = "p = Mul (h_out, x_t) y = MatMul (p, V)"
    after = moved(cell("T", tail=tail, attributes="scan_input_directions = [1],"))
    assert inside(after) == ["Sub", "Identity"]
    assert "Slice" in ops(after)


def test_what_the_next_iteration_needs_stays() -> None:
    tail = "e = Exp (h_out) f = Abs (e) y = MatMul (f, V)"
    assert inside(moved(cell("T", tail=tail, state="Exp (h_in)"))) == ["Exp", "Identity"]


def test_shapes_move_with_what_reads_them() -> None:
    tail = "e = Exp (h_out) s = Shape (e) f = Expand (V_row, s) q = Add (e, f) y = MatMul (q, V)"
    assert inside(moved(cell("3", tail=tail))) == ["Sub", "Identity"]


def test_random_ops_stay() -> None:
    tail = "r = RandomNormalLike (h_out) e = Exp (r) y = MatMul (e, V)"
    assert "RandomNormalLike" in inside(moved(cell("T", tail=tail)))


def test_the_outcome_has_nothing_left_to_move() -> None:
    once = moved(cell("T"))
    assert assert_rewrite(once, pipeline="batch-outputs").report.unchanged


def loop(tail: str, *, head: str = "n, go", going: str = "Less (bound, s)") -> str:
    return f"""{HEAD}
    g (int64 n, bool go, float[2,3] h0, float bound, int64 at) => (float[2,3] h, float[I,J,K] ys)
    <float[3,4] V = {{1, 2, -1, 0.5, 0.25, 1, -2, 0, 1, 3, -3, 2}}> {{
        half = Constant <value = float {{0.5}}> ()
        five = Constant <value = int64 {{5}}> ()
        h, ys = Loop ({head}, h0) <body = step (int64 i, bool c, float[2,3] h_in)
            => (bool c_out, float[2,3] h_out, float[2,4] y) {{
                h_out = Mul (h_in, half)
                s = ReduceSum <keepdims = 0> (h_out)
                c_out = {going}
                {tail} }}> }}"""


@pytest.mark.parametrize("trips", [0, 1, 3])
@pytest.mark.parametrize("go", [False, True])
def test_a_while_loop_gives_what_it_ran(trips: int, go: bool) -> None:
    after = moved(loop("p = MatMul (h_out, V) y = Exp (p)"))
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


def test_what_may_fail_stays_where_the_loop_may_not_run() -> None:
    tail = """zero = Constant <value = int64[1] {0}> () at_one = Unsqueeze (at, zero)
        pair = Concat <axis = 0> (at_one, at_one)
        e = Exp (h_out) p = MatMul (e, V) y = Gather <axis = 0> (p, pair)"""
    assert_refused(loop(tail), "nothing-to-move", pipeline="batch-outputs")
    assert "Gather" in ops(moved(loop(tail, head="five, ", going="Identity (c)")))


def test_sizes_that_a_loop_guesses_where_it_does_not_run_must_fit_to_nothing() -> None:
    after = moved(f"""{HEAD}
        g (int64 n, float[B,3] h0, float[B,3] w) => (float[B,3] h, float[I,J,K] ys) {{
        h, ys = Loop (n, , h0) <body = step (int64 i, bool c, float[B,3] h_in)
            => (bool c_out, float[B,3] h_out, float[B,3] y) {{
                c_out = Identity (c) h_out = Neg (h_in) e = Mul (h_out, w) y = Exp (e) }}> }}""")
    assert inside(after) == ["Identity", "Neg", "Mul", "Identity"]


def test_one_value_is_collected_once() -> None:
    after = moved(f"""{HEAD}
        g (float[2,3] h0, float[T,2,3] x)
            => (float[2,3] h, float[T,2,4] ys, float[T,2,3] zs, float[T,2,3] alls)
        <float[3,4] V = {{1, 2, -1, 0.5, 0.25, 1, -2, 0, 1, 3, -3, 2}}> {{
            h, ys, zs, alls = Scan <num_scan_inputs = 1,
                body = step (float[2,3] h_in, float[2,3] x_t)
                    => (float[2,3] h_out, float[2,4] y, float[2,3] z, float[2,3] all) {{
                    h_out = Sub (x_t, h_in)
                    y = MatMul (h_out, V)
                    z = Exp (h_out)
                    all = Identity (h_out) }}> (h0, x) }}""")
    assert len(body(after).output) == 2


@pytest.mark.parametrize("seed", range(4))
def test_random_bodies(seed: int) -> None:
    check_random_scan(seed, "batch-outputs")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_random_bodies(seed: int) -> None:
    check_random_scan(seed, "batch-outputs")
