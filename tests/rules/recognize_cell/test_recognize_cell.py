"""recognize-cell: steps of recurrent operators in their spellings, sizes from 0, near misses."""

from __future__ import annotations

import numpy as np
import pytest
from in_both_executors import run_both
from moved_work import ops

from passes.testing import assert_refused, assert_rewrite
from tests.rules.recognize_cell.cells_as_scans import (
    BACKWARDS,
    COLLECTED_BACKWARDS,
    GRU,
    INPUTS,
    LSTM,
    MIXED,
    STEPS,
    UPDATE,
    WIDTH,
    cell,
    drawn,
    everywhere,
    not_a_cell,
    of_any_batch,
    of_two_rows,
    recognized,
    reference,
)
from tests.written import changed

pytestmark = pytest.mark.sampled


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("batch", "time"), [("2", "1"), ("1", "3"), ("3", "T"), ("1", "T")])
def test_static_batches(step: str, batch: str, time: str) -> None:
    after = recognized(cell(step, batch=batch, time=time))
    assert ("If" in ops(after)) == (time == "T")


SECOND_AXES = {
    "[TIME,ROWS,3] x": "[ROWS,TIME,3] x",
    "scan_input_axes = [0]": "scan_input_axes = [1]",
    "[TIME,ROWS,WIDTH] ys": "[ROWS,TIME,WIDTH] ys",
    "scan_output_axes = [0]": "scan_output_axes = [1]",
}
THIRD_AXES = {
    "[TIME,ROWS,3] x": "[ROWS,3,TIME] x",
    "scan_input_axes = [0]": "scan_input_axes = [2]",
    "[TIME,ROWS,WIDTH] ys": "[ROWS,WIDTH,TIME] ys",
    "scan_output_axes = [0]": "scan_output_axes = [2]",
}
SECOND_AND_THIRD_AXIS = {
    "[TIME,ROWS,3] x": "[ROWS,TIME,3] x",
    "scan_input_axes = [0]": "scan_input_axes = [1]",
    "[TIME,ROWS,WIDTH] ys": "[ROWS,WIDTH,TIME] ys",
    "scan_output_axes = [0]": "scan_output_axes = [2]",
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "changes",
    [
        BACKWARDS | COLLECTED_BACKWARDS,
        BACKWARDS,
        COLLECTED_BACKWARDS | SECOND_AXES,
        BACKWARDS | COLLECTED_BACKWARDS | THIRD_AXES,
        SECOND_AND_THIRD_AXIS,
    ],
)
def test_directions_and_axes(step: str, changes: dict[str, str]) -> None:
    recognized(cell(changed(step, changes), time="3"))
    recognized(cell(changed(step, changes)))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("batch", [0, 1, 3, 40])
@pytest.mark.parametrize("time", [0, 1, 3])
def test_any_batch_takes_the_loop_or_the_operator(step: str, batch: int, time: int) -> None:
    before, after = of_any_batch(step)
    assert {"Scan", "If"} <= {*everywhere(after)}
    draw = np.random.default_rng(time)
    feeds = {
        value.name: draw.standard_normal(
            (time, batch, INPUTS) if value.name == "x" else (batch, WIDTH)
        ).astype(np.float32)
        for value in before.graph.input
    }
    if not time:  # onnxruntime has no Scan over nothing
        found = reference(after, feeds)
        for state in ("h", "c")[: len(feeds) - 1]:
            assert np.array_equal(found[f"{state}T"], feeds[f"{state}0"])
        assert found["ys"].shape == (0, batch, WIDTH)
        return
    for one, other in zip(run_both(before, feeds), run_both(after, feeds), strict=True):
        for name in one:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("time", [0, 1, 3])
def test_no_time_gives_the_initial_states(step: str, time: int) -> None:
    before, after = of_two_rows(step)
    draw = np.random.default_rng(time)
    feeds = {
        value.name: draw.standard_normal(
            (time, 2, INPUTS) if value.name == "x" else (2, WIDTH)
        ).astype(np.float32)
        for value in before.graph.input
    }
    expected = reference(before, feeds)
    for found in run_both(after, feeds):
        for name, value in expected.items():
            assert found[name].shape == value.shape
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


def test_a_batch_that_is_broadcast_keeps_the_loop() -> None:
    """One row of elements for several states."""
    before = cell(LSTM, batch="B")
    before.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "C"
    after = assert_rewrite(before, pipeline="recognize-cell").model
    feeds = {
        "h0": np.ones((4, WIDTH), np.float32),
        "c0": np.ones((4, WIDTH), np.float32),
        "x": np.ones((2, 1, INPUTS), np.float32),
    }
    expected, found = reference(before, feeds), reference(after, feeds)
    assert all(np.array_equal(expected[name], found[name]) for name in expected)


def test_rows_that_are_known_to_differ_are_refused() -> None:
    model = cell(LSTM, batch="4", time="3")
    model.graph.input[2].type.tensor_type.shape.dim[1].dim_value = 1
    body = next(
        attribute.g for attribute in model.graph.node[0].attribute if attribute.name == "body"
    )
    body.input[2].type.tensor_type.shape.dim[0].dim_value = 1
    not_a_cell(model)


def test_a_size_that_only_the_body_declares_is_asked_for() -> None:
    model = cell(LSTM, batch="4", time="3")
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[-2].dim_param = "B"
    result = assert_rewrite(model, pipeline="recognize-cell")
    assert {"If", "LSTM", "Scan"} <= {*everywhere(result.model)}


def test_assumptions_leave_the_if_out() -> None:
    after = recognized(cell(LSTM), assume="non-empty")
    assert "If" not in ops(after)
    (lstm,) = (node for node in after.graph.node if node.op_type == "LSTM")
    assert {attribute.name: attribute.i for attribute in lstm.attribute} == {"hidden_size": WIDTH}


# -- near misses


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i = Sigmoid (i0)", "i = Tanh (i0)"),
        ("f = Sigmoid (f0)", "f = HardSigmoid (f0)"),
        ("o = Sigmoid (o0)", "o = Relu (o0)"),
        ("t = Tanh (c_out)", "t = Tanh (c_in)"),
        ("t = Tanh (c_out)", "t = Identity (c_out)"),
        ("c_out = Add (fc, ig)", "c_out = Sub (fc, ig)"),
        ("c_out = Add (fc, ig)", "c_out = Max (fc, ig)"),
        ("fc = Mul (f, c_in)", "fc = Mul (f, h_in)"),
        ("fc = Mul (f, c_in)", "fc = Add (f, c_in)"),
        ("fc = Mul (f, c_in)", "fc = Identity (c_in)"),
        ("fc = Mul (f, c_in)", "fc = Mul (c_in, c_in)"),
        ("ig = Mul (i, g)", "ig = Identity (g)"),
        ("h_out = Mul (o, t)", "h_out = Mul (t, t)"),
        ("h_out = Mul (o, t)", "h_out = Add (o, t)"),
        ("a = MatMul (x_t, W)", "x_n = Neg (x_t)  a = MatMul (x_n, W)"),
        ("b = MatMul (h_in, R)", "b = MatMul (c_in, R)"),
        ("b = MatMul (h_in, R)", "b0 = MatMul (h_in, R)  b = Relu (b0)"),
        ("ab = Add (a, b)", "ab = Mul (a, b)"),
        ("ab = Add (a, b)", "ab0 = Add (a, b)  ab = Add (ab0, b)"),
        ("ab = Add (a, b)", "ab = Identity (a)"),
        ("ab = Add (a, b)", "ab = Identity (b)"),
        ("Split <axis = 1, num_outputs = 4>", "Split <axis = 0, num_outputs = 4>"),
        ("i = Sigmoid (i0)", "ip = Add (i0, c_in)  i = Sigmoid (ip)"),
        ("b = MatMul (h_in, R)", "b = Gemm <alpha = 2.0> (h_in, R)"),
        ("s = Add (ab, bias)", "half = Constant <value = float {2}> ()  s = Add (ab, half)"),
    ],
)  # fmt: skip
def test_near_misses_of_an_lstm(old: str, new: str) -> None:
    batch = "4" if "axis = 0" in new else "2"
    not_a_cell(cell(changed(LSTM, {old: new}), batch=batch))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n = Tanh (n1)", "n2 = Tanh (n1)  n = Sigmoid (n2)"),
        ("z = Sigmoid (z0)", "z = Tanh (z0)"),
        ("r = Sigmoid (r0)", "r = Tanh (r0)"),
        ("n0 = Mul (r, bn)", "n0 = Mul (z0, bn)"),
        ("n0 = Mul (r, bn)", "n0 = Add (r, bn)"),
        ("n0 = Mul (r, bn)", "n0 = Identity (bn)"),
        ("n0 = Mul (r, bn)", "n0 = Mul (r, an)"),
        ("n0 = Mul (r, bn)", "n0 = Mul (r, h_in)"),
        ("n1 = Add (an, n0)", "n1 = Sub (an, n0)"),
        ("d = Sub (h_in, n)", "d = Sub (n, h_in)"),
        ("d = Sub (h_in, n)", "d = Add (h_in, n)"),
        ("d = Sub (h_in, n)", "d = Sub (h_in, z)"),
        ("h_out = Add (n, k)", "h_out = Add (h_in, k)"),
        ("h_out = Add (n, k)", "h_out = Sub (n, k)"),
        ("k = Mul (z, d)", "k = Mul (r, d)  unread = Identity (z)"),
        ("k = Mul (z, d)", "k = Identity (d)"),
        (UPDATE, changed(MIXED, {"float {1}": "float {2}"})),
        (UPDATE, changed(MIXED, {"Sub (one, z)": "Sub (z, one)"})),
        (UPDATE, changed(MIXED, {"Sub (one, z)": "Sub (one, r)"})),
        (UPDATE, changed(MIXED, {"Mul (rest, n)": "Mul (rest, h_in)"})),
    ],
)  # fmt: skip
def test_near_misses_of_a_gru(old: str, new: str) -> None:
    model = cell(changed(GRU, {old: new}))
    if "Mul (r, d)" in new:  # z is what the gate r is: a GRU all the same
        recognized(model)
    else:
        not_a_cell(model)


def test_one_minus_a_softsign_is_no_gate() -> None:
    update = "d = Sub (n, h_in)  k = Mul (z, d)  h_out = Add (k, h_in)"
    not_a_cell(cell(changed(GRU, {"Sigmoid": "Softsign", UPDATE: update})))


@pytest.mark.slow
def test_swapped_gates_are_told_apart() -> None:
    """What i and f do when they change places is another function, and is written as that."""
    one, other = (
        recognized(cell(changed(LSTM, {"i0, o0, f0, g0": names}), time="3"))
        for names in ("i0, o0, f0, g0", "f0, o0, i0, g0")
    )
    feeds = {
        "h0": np.ones((2, WIDTH), np.float32),
        "c0": np.ones((2, WIDTH), np.float32),
        "x": np.ones((3, 2, INPUTS), np.float32),
    }
    for first, second in zip(run_both(one, feeds), run_both(other, feeds), strict=True):
        assert not np.allclose(first["ys"], second["ys"])


def test_another_collected_value_is_refused() -> None:
    for name in ("h_in", "t", "i"):
        model = cell(changed(LSTM, {"y = Identity (h_out)": f"y = Identity ({name})"}))
        assert_refused(model, "collected", pipeline="recognize-cell")


def test_float16_is_refused() -> None:
    model = cell(changed(LSTM, {"float[": "float16["}))
    assert_refused(model, "element-type", pipeline="recognize-cell")


@pytest.mark.parametrize("gates", [3, 4], ids=["GRU", "LSTM"])
def test_long_sums_may_differ_by_what_they_round(gates: int) -> None:
    held = drawn(64, gates, 1.0)
    recognized(cell(LSTM if gates == 4 else GRU, given=held, width=64, time="3"))


@pytest.mark.parametrize(("step", "most"), [(LSTM, 32), (GRU, 16)], ids=["LSTM", "GRU"])
def test_many_rows_stay_in_the_loop(step: str, most: int) -> None:
    recognized(cell(step, batch=str(most)))
    model = cell(step, batch=str(most + 1))
    assert_refused(model, "not-worth-it", pipeline="recognize-cell")


@pytest.mark.parametrize(("rows", "taken"), [(8, True), (9, False)])
def test_a_wide_gru_pays_for_fewer_rows(rows: int, taken: bool) -> None:
    model = cell(GRU, given=drawn(129, 3, 0.1), width=129, batch=str(rows), time="3")
    if taken:
        recognized(model)
    else:
        assert_refused(model, "not-worth-it", pipeline="recognize-cell")


@pytest.mark.slow
def test_cells_with_the_same_names_each_have_their_own_weights() -> None:
    """In the main graph and in both branches, of which one computes a weight of its own."""
    model = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (bool k, float[B,2] h0, float[B,2] c0, float[T,B,3] x, float[3,8] W, float[2,8] R)
    => (float[T,B,2] ys, float[T,B,2] zs)
    {
        h, c, ys = Scan <num_scan_inputs = 1, scan_output_directions = [1], body = step
            (float[B,2] h_in, float[B,2] c_in, float[B,3] x_t)
            => (float[B,2] h_out, float[B,2] c_out, float[B,2] y)
            {
                a = MatMul (x_t, W)  b = MatMul (h_in, R)  s = Add (a, b)
                i0, o0, f0, g0 = Split <axis = 1, num_outputs = 4> (s)
                i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)
                fc = Mul (f, c_in)  ig = Mul (i, g)  c_out = Add (fc, ig)
                t = Tanh (c_out)  h_out = Mul (o, t)  y = Identity (h_out)
            }> (h0, c0, x)
        zs = If (k) <
            then_branch = own () => (float[T,B,2] p)
            {
                V = Neg (W)
                p1, p2, p = Scan <num_scan_inputs = 1, scan_input_directions = [1],
                    scan_output_directions = [1], body = step
                    (float[B,2] h_in, float[B,2] c_in, float[B,3] x_t)
                    => (float[B,2] h_out, float[B,2] c_out, float[B,2] y)
                    {
                        a = MatMul (x_t, V)  b = MatMul (h_in, R)  s = Add (a, b)
                        i0, o0, f0, g0 = Split <axis = 1, num_outputs = 4> (s)
                        i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)
                        fc = Mul (f, c_in)  ig = Mul (i, g)  c_out = Add (fc, ig)
                        t = Tanh (c_out)  h_out = Mul (o, t)  y = Identity (h_out)
                    }> (h0, c0, x)
            },
            else_branch = other () => (float[T,B,2] p)
            {
                p1, p2, p = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = step
                    (float[B,2] h_in, float[B,2] c_in, float[B,3] x_t)
                    => (float[B,2] h_out, float[B,2] c_out, float[B,2] y)
                    {
                        a = MatMul (x_t, W)  b = MatMul (h_in, R)  s = Add (a, b)
                        i0, o0, f0, g0 = Split <axis = 1, num_outputs = 4> (s)
                        i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)
                        fc = Mul (f, c_in)  ig = Mul (i, g)  c_out = Add (fc, ig)
                        t = Tanh (c_out)  h_out = Mul (o, t)  y = Identity (h_out)
                    }> (h, c, x)
            }>
    }
    """
    result = assert_rewrite(model, pipeline="recognize-cell")
    made = [record for record in result.report.records if record.outcome == "rewritten"]
    assert [one.op for one in made] == ["Scan"] * 3
