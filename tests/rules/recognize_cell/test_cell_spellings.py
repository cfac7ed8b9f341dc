"""The spellings of an LSTM and a GRU that become the operator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from in_both_executors import run_both
from moved_work import ops

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import assert_refused, assert_rewrite
from tests.rules.recognize_cell.cells_as_scans import (
    ACTIVATED,
    BACKWARDS,
    COLLECTED_BACKWARDS,
    GRU,
    INPUTS,
    LSTM,
    MIXED,
    SPLIT,
    SUMS,
    UPDATE,
    WIDTH,
    cell,
    drawn,
    everywhere,
    fed,
    recognized,
    reference,
    weights,
)
from tests.written import changed

pytestmark = pytest.mark.sampled

# -- spellings of an LSTM


def separate(template: str) -> str:
    """An LSTM that computes each gate apart; `template` has `@` for its letter."""
    sums = "  ".join(template.replace("@", gate) for gate in "iofg")
    return changed(LSTM, {SUMS: sums, SPLIT: ""})


def separate_weights() -> dict[str, np.ndarray]:
    """The weights of each gate, and transposed."""
    held = {}
    for number, gate in enumerate("iofg"):
        cut = slice(number * WIDTH, (number + 1) * WIDTH)
        for name, value in weights(4).items():
            held[f"{name[0]}{gate}"] = value[..., cut]
            held[f"{name[0]}{gate}t"] = np.ascontiguousarray(value[..., cut].T)
    return held


@pytest.mark.parametrize(
    "template",
    [
        "a@ = MatMul (x_t, W@)  r@ = MatMul (h_in, R@)  s@ = Add (r@, a@)  @0 = Add (b@, s@)",
        "a@ = Gemm (x_t, W@, b@)  r@ = Gemm (h_in, R@)  @0 = Add (a@, r@)",
        "a@ = Gemm <transB = 1> (x_t, W@t, b@)  @0 = Gemm <transB = 1> (h_in, R@t, a@)",
        "w@ = Transpose <perm = [1, 0]> (W@t)  a@ = MatMul (x_t, w@)  r@ = MatMul (h_in, R@)"
        "  @0 = Sum (b@, a@, r@)",
    ],
    ids=["MatMul", "Gemm", "transB", "Transpose"],
)
def test_gates_with_weights_of_their_own(template: str) -> None:
    recognized(cell(separate(template), given=separate_weights()))


ONE = weights(4)
BOTH = {"K": np.concatenate([ONE["W"], ONE["R"]]), "bias": ONE["bias"]}
TURNED = {"K": np.concatenate([ONE["R"], ONE["W"]]), "bias": ONE["bias"]}
ROW = {**ONE, "row": ONE["bias"][np.newaxis]}


@pytest.mark.parametrize(
    ("sums", "held"),
    [
        ("xh = Concat <axis = 1> (x_t, h_in)  s = Gemm (xh, K, bias)", BOTH),
        ("hx = Concat <axis = -1> (h_in, x_t)  m = MatMul (hx, K)  s = Add (m, bias)", TURNED),
        ("a = MatMul (x_t, W)  aa = Add (a, bias)  b = Gemm (h_in, R, bias)  s = Add (b, aa)", ONE),
        ("a = MatMul (x_t, W)  b = MatMul (h_in, R)  s = Add (a, b)", ONE),
        ("a = MatMul (x_t, W)  b = MatMul (h_in, R)  ab = Add (a, b)  s = Add (row, ab)", ROW),
    ],
    ids=["joined Gemm", "joined MatMul", "two biases", "no bias", "a bias of rank 2"],
)
def test_joined_weights(sums: str, held: dict[str, np.ndarray]) -> None:
    after = recognized(cell(changed(LSTM, {SUMS: sums}), given=held))
    assert "Transpose" not in everywhere(after)  # the weights were made beforehand


def test_gates_cut_by_slices_of_computed_bounds() -> None:
    cuts = """
            shape = Shape (s)  axis = Constant <value_ints = [1]> ()  wide = Gather (shape, axis)
            one = Constant <value_ints = [1]> ()   two = Constant <value_ints = [2]> ()
            three = Constant <value_ints = [3]> () four = Constant <value_ints = [4]> ()
            none = Constant <value_ints = [0]> ()  quarter = Div (wide, four)
            i_from = Mul (quarter, none)   i_to = Mul (quarter, one)
            o_from = Mul (quarter, one)    o_to = Mul (quarter, two)
            f_from = Mul (quarter, two)    f_to = Mul (quarter, three)
            g_from = Mul (quarter, three)  g_to = Mul (quarter, four)
            i0 = Slice (s, i_from, i_to, axis)  o0 = Slice (s, o_from, o_to, axis)
            f0 = Slice (s, f_from, f_to, axis)  g0 = Slice (s, g_from, g_to, axis)"""
    step = changed(LSTM, {SPLIT: cuts})
    recognized(cell(step))
    recognized(cell(step, batch="3", time="3"))


def test_activations_before_the_cut() -> None:
    split = """sizes = Constant <value_ints = [6, 2]> ()
            gates, g0 = Split <axis = 1> (s, sizes)"""
    activated = """on = Sigmoid (gates)
            f, i, o = Split <axis = -1, num_outputs = 3> (on)  g = Tanh (g0)"""
    recognized(cell(changed(LSTM, {SPLIT: split, ACTIVATED: activated})))


@pytest.mark.parametrize(
    "order", ["i0, o0, f0, g0", "i0, f0, o0, g0", "g0, f0, i0, o0", "f0, o0, g0, i0"]
)
def test_gates_in_any_order(order: str) -> None:
    recognized(cell(changed(LSTM, {"i0, o0, f0, g0": order})))


def test_weights_as_inputs() -> None:
    step = fed(LSTM, "float[3,8] W, float[2,8] R, float[8] bias")
    for gates in ("i0, o0, f0, g0", "f0, o0, g0, i0"):
        after = recognized(cell(changed(step, {"i0, o0, f0, g0": gates})))
        assert "Transpose" in everywhere(after)


@pytest.mark.slow
def test_some_weights_as_inputs() -> None:
    recognized(cell(fed(LSTM, "float[8] bias")))
    held = separate_weights()
    step = separate("a@ = Gemm (x_t, W@, b@)  r@ = Gemm (h_in, R@)  @0 = Add (a@, r@)")
    recognized(cell(fed(step, "float[3,2] Wf, float[2] bg"), given=held))
    step = separate("a@ = Gemm <transB = 1> (x_t, W@t, b@)  @0 = Gemm <transB = 1> (h_in, R@t, a@)")
    recognized(cell(fed(step, "float[2,3] Wft, float[2] bo"), given=held))


def test_large_weights_as_inputs_are_not_worth_it() -> None:
    """To rearrange them takes longer than a few steps."""
    held = drawn(100, 4, 1.0)
    step = fed(LSTM, "float[3,400] W, float[100,400] R")
    for time in ("T", "127"):
        model = cell(step, given=held, width=100, time=time)
        assert_refused(model, "not-worth-it", pipeline="recognize-cell")
    session = Session([Pass(SCHEDULES["recognize-cell"])], None)
    for model in (
        cell(step, given=held, width=100, time="128"),
        cell(LSTM, given=held, width=100, time="127"),
    ):
        assert "LSTM" in ops(session.run(model).model)


def test_constants_of_the_body() -> None:
    model = cell(LSTM)
    body = next(
        attribute.g for attribute in model.graph.node[0].attribute if attribute.name == "body"
    )
    body.initializer.append(model.graph.initializer.pop(0))
    bias = model.graph.initializer.pop(1)
    body.node.insert(0, onnx.helper.make_node("Constant", [], ["bias"], value=bias))
    recognized(model)


def test_outputs_that_are_not_read_are_not_written() -> None:
    model = cell(LSTM)
    del model.graph.output[1:]
    recognized(model)
    model = cell(LSTM)
    del model.graph.output[:2]
    recognized(model)


@pytest.mark.parametrize(
    "activated",
    [
        {"g = Tanh (g0)": "g = Sigmoid (g0)"},
        {"ig = Mul (i, g)": "ig = Mul (i, i)"},
        {"t = Tanh (c_out)": "t = Sigmoid (c_out)"},
        {"Sigmoid": "LeakyRelu <alpha = 0.25>", "Tanh": "Elu"},
        {"Sigmoid": "HardSigmoid <alpha = 0.25, beta = 0.5>", "Tanh": "Softsign"},
    ],
)
def test_other_activations(activated: dict[str, str]) -> None:
    after = recognized(cell(changed(LSTM, activated)))
    assert "LSTM" in everywhere(after)


def test_two_peepholes_of_a_gate_are_added() -> None:
    seen = """p = Constant <value = float[2] {0.5, -0.25}> ()
            q = Constant <value = float[2] {1, 2}> ()
            ip = Mul (p, c_in)  iq = Mul (c_in, q)  i1 = Sum (i0, ip, iq)  i = Sigmoid (i1)"""
    recognized(cell(changed(LSTM, {"i = Sigmoid (i0)": seen})))


def test_a_coupled_gate_whose_weights_are_inputs() -> None:
    """The gate i is 1 minus f: the sigmoid of the negated sum, with negated weights."""
    step = fed(LSTM, "float[3,8] W, float[2,8] R, float[8] bias")
    rest = "one = Constant <value = float {1}> ()  i = Sub (one, f)"
    order = {"i = Sigmoid (i0)  o": "o", "g = Tanh (g0)": f"g = Tanh (g0)  {rest}"}
    after = recognized(cell(changed(step, order)))
    assert everywhere(after).count("Neg") == 3


def test_a_vector_state_keeps_its_rank() -> None:
    """No axis of a batch: the outcome has the same shapes, also over no elements."""
    text = changed(LSTM, {"[ROWS,": "[", "ROWS,": "", "axis = 1": "axis = 0"})
    before = cell(text)
    after = recognized(before)
    for time in (0, 1, 3):
        ones = {name: np.ones(WIDTH, np.float32) for name in ("h0", "c0")}
        feeds = {**ones, "x": np.ones((time, INPUTS), np.float32)}
        expected = reference(before, feeds)
        for found in run_both(after, feeds):
            for name, value in expected.items():
                assert found[name].shape == value.shape
                np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


def test_an_rnn_is_refused_where_the_loop_is_faster() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (float[ROWS,WIDTH] h0, float[TIME,ROWS,3] x) => (float[ROWS,WIDTH] hT)
    {
        hT = Scan <num_scan_inputs = 1,
            body = step (float[ROWS,WIDTH] h_in, float[ROWS,3] x_t) => (float[ROWS,WIDTH] h_out)
            {
                a = MatMul (x_t, W)  b = MatMul (h_in, R)  ab = Add (a, b)  h_out = Tanh (ab)
            }> (h0, x)
    }"""
    for width, rows, faster in ((2, 2, True), (2, 3, False), (40, 1, True), (40, 2, False)):
        held = drawn(width, 1, 0.1)
        model = cell(text, batch=str(rows), width=width, time="3", given=held)
        if faster:
            assert "RNN" in ops(assert_rewrite(model, pipeline="recognize-cell").model)
        else:
            assert_refused(model, "not-worth-it", pipeline="recognize-cell")
    wide = cell(text, batch="1", width=65, time="3", given=drawn(65, 1, 0.1))
    assert_refused(wide, "not-worth-it", pipeline="recognize-cell")


# -- spellings of a GRU


@pytest.mark.parametrize(
    "update",
    [
        UPDATE,
        MIXED,
        "d = Sub (n, h_in)  k = Mul (d, z)  h_out = Sub (n, k)",
        changed(MIXED, {"Mul (rest, n)": "Mul (n, rest)", "Add (p, q)": "Add (q, p)"}),
        changed(MIXED, {"float {1}": "float[2] {1, 1}"}),
        changed(MIXED, {"Mul (rest, n)": "Mul (z, n)", "Mul (z, h_in)": "Mul (rest, h_in)"}),
        "d = Sub (n, h_in)  k = Mul (z, d)  h_out = Add (k, h_in)",
        "d = Sub (h_in, n)  k = Mul (z, d)  h_out = Sub (h_in, k)",
        "k = Mul (z, n)  d = Sub (n, k)  q = Mul (z, h_in)  h_out = Add (d, q)",
    ],
)
def test_updates_of_a_gru(update: str) -> None:
    after = recognized(cell(changed(GRU, {UPDATE: update})))
    assert "GRU" in everywhere(after)


@pytest.mark.slow
def test_a_bias_that_is_reset_with_the_state() -> None:
    product = "b = MatMul (h_in, R)"
    late = changed(GRU, {product: "b0 = MatMul (h_in, R)  b = Add (b0, bias)"})
    recognized(cell(late))
    recognized(cell(fed(late, "float[6] bias")))
    recognized(cell(changed(GRU, {product: "b = Gemm (h_in, R, bias)"})))


@pytest.mark.parametrize("update", [UPDATE, MIXED])
def test_a_gru_that_resets_the_state(update: str) -> None:
    reset_first = {
        "b = MatMul (h_in, R)": "b = MatMul (h_in, Rzr)",
        "bz, br, bn = Split <axis = 1, num_outputs = 3> (b)":
            "bz, br = Split <axis = 1, num_outputs = 2> (b)",
        "n0 = Mul (r, bn)": "rh = Mul (r, h_in)  n0 = MatMul (rh, Rn)",
        UPDATE: update,
    }  # fmt: skip
    held = weights(3)
    r = held.pop("R")
    held |= {"Rzr": r[:, :4], "Rn": r[:, 4:]}
    text = changed(GRU, reset_first | BACKWARDS | COLLECTED_BACKWARDS)
    after = recognized(cell(text, given=held, time="3"))
    (gru,) = (node for node in after.graph.node if node.op_type == "GRU")
    assert "linear_before_reset" not in {attribute.name for attribute in gru.attribute}
