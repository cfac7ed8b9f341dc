"""batch-inputs: lengths, axes, directions, names, and nodes that must stay in the loop."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from in_both_executors import assert_both_fail
from moved_work import (
    NO_TIME,
    UNEQUAL,
    every_length_axis_and_direction,
    feeds_of_lengths,
    inside,
    ops,
)
from random_scans import check_random_scan

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

pytestmark = pytest.mark.sampled


def moved(model: str, **options: object) -> onnx.ModelProto:
    """The outcome of batch-inputs, verified."""
    return assert_rewrite(model, pipeline="batch-inputs", options=options).model


#: A step computes `a` of an element, here by a MatMul, and subtracts the state.
RECURRENCE = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] h0, float[T,2,3] x, int64 at) => (float[2,3] h, float[2,3,S] hs)
<float[3,3] W = {1, 2, -1, 0.5, 0.25, 1, -2, 0, 1}>
{
    h, hs = Scan <num_scan_inputs = 1, scan_input_axes = [0], scan_input_directions = [0],
        scan_output_axes = [2], scan_output_directions = [1],
        body = step (float[2,3] h_in, float[2,3] x_t) => (float[2,3] h_out, float[2,3] y) {
        a = MatMul (x_t, W)
        h_out = Sub (a, h_in)
        y = Identity (h_out)
    }> (h0, x)
}
"""
THREE_STEPS = {"float[T,2,3] x": "float[3,2,3] x"}


def with_step(step: str) -> str:
    """The recurrence with other nodes that compute `a`."""
    return changed(RECURRENCE, {"a = MatMul (x_t, W)": step})


@every_length_axis_and_direction
def test_every_length_axis_and_direction(time: str, axis: int, back: int) -> None:
    dims = ["2", "3"]
    dims.insert(axis % 3, time)
    scanned = {
        "float[T,2,3] x": f"float[{','.join(dims)}] x",
        "scan_input_axes = [0]": f"scan_input_axes = [{axis}]",
        "scan_input_directions = [0]": f"scan_input_directions = [{back}]",
    }
    after = moved(changed(RECURRENCE, scanned))
    assert "MatMul" in ops(after)
    assert inside(after) == ["Sub", "Identity"]


def test_a_length_of_0_is_right_where_it_can_run() -> None:
    after = moved(RECURRENCE)
    final = ReferenceExecutor().run(after, NO_TIME).outputs["h"]
    assert isinstance(final, np.ndarray)
    assert np.array_equal(final, NO_TIME["h0"])


def test_a_node_that_may_fail_moves_only_where_the_loop_runs() -> None:
    step = """one = Constant <value = int64[1] {1}> () p = Gather <axis = 1> (x_t, at)
        q = Exp (p) r = Unsqueeze (q, one) a = Add (r, x_t)"""
    assert_refused(with_step(step), "nothing-to-move", pipeline="batch-inputs")
    assert "Exp" in ops(moved(changed(with_step(step), THREE_STEPS)))
    assert "Exp" in ops(moved(with_step(step), assume="non-empty"))


def test_random_ops_stay() -> None:
    step = "r = RandomNormalLike (x_t) e = Exp (r) a = Add (e, x_t)"
    assert_refused(with_step(step), "nothing-to-move", pipeline="batch-inputs")


def test_unread_nodes_stay() -> None:
    step = "unread = Gather (x_t, at) e = Exp (x_t) a = Add (e, x_t)"
    after = (
        Session([Pass(SCHEDULES["batch-inputs"])], None)
        .run(as_model(changed(with_step(step), THREE_STEPS)))
        .model
    )
    assert "Gather" in inside(after)
    assert "Exp" not in inside(after)


def test_a_loop_without_work_for_it_is_not_mentioned() -> None:
    report = assert_rewrite(with_step("a = Add (x_t, h_in)"), pipeline="batch-inputs").report
    assert report.unchanged


def test_the_outcome_has_nothing_left_to_move() -> None:
    once = moved(RECURRENCE)
    assert assert_rewrite(once, pipeline="batch-inputs").report.unchanged


def test_a_branch_of_an_if_may_move_as_a_whole() -> None:
    step = """s = ReduceSum <keepdims = 0> (x_t) zero = Constant <value = float {0.0}> ()
        c = Less (s, zero)
        a = If (c) <then_branch = yes () => (float[2,3] p) { p = Exp (x_t) },
                    else_branch = no () => (float[2,3] q) { q = Neg (x_t) }>"""
    assert "If" not in inside(moved(with_step(step)))


def test_a_loop_in_the_body_may_move() -> None:
    step = """a = Scan <num_scan_inputs = 1, body = inner (float[3] p) => (float[3] q)
        { q = Softmax (p) }> (x_t)"""
    after = moved(with_step(step))
    assert inside(after) == ["Sub", "Identity"]


def test_names_that_sibling_bodies_share_stay_apart() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] h0, float[T,3] x) => (float[3] h, float[3] k) {
        h = Scan <num_scan_inputs = 1, body = one (float[3] s, float[3] n) => (float[3] t)
            { a = Exp (n) t = Sub (a, s) }> (h0, x)
        k = Scan <num_scan_inputs = 1, body = two (float[3] s, float[3] n) => (float[3] t)
            { a = Tanh (n) t = Sub (a, s) }> (h0, x) }"""
    assert ops(moved(text)) == ["Exp", "Scan", "Tanh", "Scan"]


def test_a_body_input_may_hide_an_outer_name() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] h, float[T,3] x) => (float[3] y) {
        y = Scan <num_scan_inputs = 1, body = one (float[3] h, float[3] x) => (float[3] t)
            { a = Exp (x) t = Sub (a, h) }> (h, x) }"""
    assert ops(moved(text)) == ["Exp", "Scan"]


def test_a_tensor_may_be_scanned_and_captured() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] h, float[3,3] x) => (float[3] y) {
        y = Scan <num_scan_inputs = 1, body = one (float[3] s, float[3] n) => (float[3] t)
            { a = MatMul (n, x) t = Sub (a, s) }> (h, x) }"""
    assert ops(moved(text)) == ["MatMul", "Scan"]


def test_a_state_that_is_computed_before_the_loop_is_scanned() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] h, float[T,3] x) => (float[3] y, float[T,3] d) {
        y, d = Scan <num_scan_inputs = 1, body = one (float[3] s, float[3] n)
            => (float[3] t, float[3] e) { t = Exp (n) e = Sub (t, s) }> (h, x) }"""
    assert "Exp" in ops(moved(text))


def test_a_map_disappears() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
        g (float[T,3] x) => (float[T,3] y, float[3,T] z) {
        y, z = Scan <num_scan_inputs = 1, scan_output_axes = [0, 1],
            body = one (float[3] n) => (float[3] t, float[3] u)
            { t = Exp (n) u = Neg (n) }> (x) }"""
    assert ops(moved(text)) == ["Exp", "Neg", "Transpose"]


TWO = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[3] h, float[T,3] x, float[S,3] z) => (float[3] y) {
    y = Scan <num_scan_inputs = 2, body = one (float[3] s, float[3] n, float[3] m) => (float[3] t)
        { p = Mul (n, m) a = Exp (p) t = Sub (a, s) }> (h, x, z) }"""


@pytest.mark.parametrize("lengths", UNEQUAL)
def test_lengths_must_agree_as_before(lengths: tuple[int, int]) -> None:
    assert_both_fail(moved(TWO), feeds_of_lengths("h", lengths))


def test_valid_inputs_need_no_guard() -> None:
    assert ops(moved(TWO, assume="valid-inputs")) == ["Mul", "Exp", "Scan"]


def test_a_scan_in_a_function() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[3] h, float[T,3] x) => (float[3] y) { y = own.f (h, x) }
        <domain: "own", opset_import: ["" : 18]> f (h, x) => (y) {
            y = Scan <num_scan_inputs = 1, body = one (float[3] s, float[3] n) => (float[3] t)
                { a = Exp (n) t = Sub (a, s) }> (h, x) }"""
    after = moved(text)
    assert [node.op_type for node in after.functions[0].node] == ["Exp", "Scan"]


def test_an_attribute_of_the_function_around_stays_where_it_is() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[3] h, float[T,3] x) => (float[3] y) { y = own.f <axis = 0> (h, x) }
        <domain: "own", opset_import: ["" : 18]> f <axis> (h, x) => (y) {
            y = Scan <num_scan_inputs = 1, body = one (float[3] s, float[3] n) => (float[3] t)
                { a = Softmax <axis: int = @axis> (n) t = Sub (a, s) }> (h, x) }"""
    assert_refused(text, "nothing-to-move", pipeline="batch-inputs")


@pytest.mark.parametrize("seed", range(4))
def test_random_bodies(seed: int) -> None:
    check_random_scan(seed, "batch-inputs")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 130))
def test_more_random_bodies(seed: int) -> None:
    check_random_scan(seed, "batch-inputs")
