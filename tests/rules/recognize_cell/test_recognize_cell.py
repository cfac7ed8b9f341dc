"""recognize-cell: steps of recurrent operators in their spellings, sizes from 0, near misses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx
import pytest
from in_both_executors import run_both, tensors
from moved_work import ops

from passes.choices import RuleOptions
from passes.engine.schedules import SCHEDULES
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

pytestmark = pytest.mark.sampled

WIDTH, INPUTS = 2, 3

#: An LSTM step for any number of rows, steps and states; `cell` chooses them and adds the weights.
LSTM = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[ROWS,WIDTH] h0, float[ROWS,WIDTH] c0, float[TIME,ROWS,3] x)
=> (float[ROWS,WIDTH] hT, float[ROWS,WIDTH] cT, float[TIME,ROWS,WIDTH] ys)
{
    hT, cT, ys = Scan <num_scan_inputs = 1,
        scan_input_axes = [0], scan_input_directions = [0],
        scan_output_axes = [0], scan_output_directions = [0],
        body = step (float[ROWS,WIDTH] h_in, float[ROWS,WIDTH] c_in, float[ROWS,3] x_t)
        => (float[ROWS,WIDTH] h_out, float[ROWS,WIDTH] c_out, float[ROWS,WIDTH] y)
        {
            a = MatMul (x_t, W)  b = MatMul (h_in, R)  ab = Add (a, b)  s = Add (ab, bias)
            i0, o0, f0, g0 = Split <axis = 1, num_outputs = 4> (s)
            i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)
            fc = Mul (f, c_in)  ig = Mul (i, g)  c_out = Add (fc, ig)
            t = Tanh (c_out)  h_out = Mul (o, t)
            y = Identity (h_out)
        }> (h0, c0, x)
}
"""
SUMS = "a = MatMul (x_t, W)  b = MatMul (h_in, R)  ab = Add (a, b)  s = Add (ab, bias)"
SPLIT = "i0, o0, f0, g0 = Split <axis = 1, num_outputs = 4> (s)"
ACTIVATED = "i = Sigmoid (i0)  o = Sigmoid (o0)  f = Sigmoid (f0)  g = Tanh (g0)"

#: A GRU step that resets the state after the product.
GRU = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[ROWS,WIDTH] h0, float[TIME,ROWS,3] x)
=> (float[ROWS,WIDTH] hT, float[TIME,ROWS,WIDTH] ys)
{
    hT, ys = Scan <num_scan_inputs = 1,
        scan_input_axes = [0], scan_input_directions = [0],
        scan_output_axes = [0], scan_output_directions = [0],
        body = step (float[ROWS,WIDTH] h_in, float[ROWS,3] x_t)
        => (float[ROWS,WIDTH] h_out, float[ROWS,WIDTH] y)
        {
            a = MatMul (x_t, W)  aa = Add (a, bias)  b = MatMul (h_in, R)
            az, ar, an = Split <axis = 1, num_outputs = 3> (aa)
            bz, br, bn = Split <axis = 1, num_outputs = 3> (b)
            z0 = Add (az, bz)  z = Sigmoid (z0)  r0 = Add (ar, br)  r = Sigmoid (r0)
            n0 = Mul (r, bn)  n1 = Add (an, n0)  n = Tanh (n1)
            d = Sub (h_in, n)  k = Mul (z, d)  h_out = Add (n, k)
            y = Identity (h_out)
        }> (h0, x)
}
"""
UPDATE = "d = Sub (h_in, n)  k = Mul (z, d)  h_out = Add (n, k)"
#: The same in another spelling.
MIXED = """one = Constant <value = float {1}> ()  rest = Sub (one, z)
    p = Mul (rest, n)  q = Mul (z, h_in)  h_out = Add (p, q)"""


def drawn(width: int, gates: int, scale: float) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(7)
    wide = gates * width
    shapes = {"W": (INPUTS, wide), "R": (width, wide), "bias": (wide,)}
    return {
        name: (scale * draw.standard_normal(shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def weights(gates: int) -> dict[str, np.ndarray]:
    return drawn(WIDTH, gates, 1.0)


def cell(
    text: str,
    *,
    batch: str = "2",
    time: str = "T",
    width: int = WIDTH,
    given: Mapping[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """A model of these sizes; those of its weights that are no inputs are initializers."""
    sizes = {"ROWS": batch, "TIME": time, "WIDTH": str(width)}
    model = as_model(changed(text, {name: size for name, size in sizes.items() if name in text}))
    elem = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    inputs = {value.name for value in model.graph.input}
    for name, value in (weights(4 if "c_out" in text else 3) if given is None else given).items():
        if name not in inputs and re.search(rf"\b{name}\b", text):
            tensor = onnx.numpy_helper.from_array(value.astype(elem), name)
            model.graph.initializer.append(tensor)
    return model


def fed(text: str, inputs: str) -> str:
    """The model with more inputs."""
    return changed(text, {"[TIME,ROWS,3] x)": f"[TIME,ROWS,3] x, {inputs})"})


def everywhere(model: onnx.ModelProto) -> list[str]:
    """The ops of the main graph and of branches."""
    found = ops(model)
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "If":
                found += [node.op_type for node in attribute.g.node]
    return found


def recognized(model: onnx.ModelProto, **options: object) -> onnx.ModelProto:
    """The outcome, verified, in which the loop is gone."""
    result = assert_rewrite(model, pipeline="recognize-cell", options=options)
    found = everywhere(result.model)
    assert "Scan" not in found, [refusal.sentence for refusal in result.report.refusals]
    assert {"LSTM", "GRU"} & {*found}
    return result.model


def not_a_cell(model: onnx.ModelProto) -> None:
    assert_refused(model, "not-a-cell", pipeline="recognize-cell")


@cache
def of_any_batch(step: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model for any number of rows, before and after."""
    before = cell(step, batch="B")
    return before, assert_rewrite(before, pipeline="recognize-cell").model


@cache
def of_two_rows(step: str) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A model for any time, before and after."""
    before = cell(step)
    return before, recognized(before)


STEPS = [pytest.param(LSTM, id="LSTM"), pytest.param(GRU, id="GRU")]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("batch", "time"), [("2", "1"), ("1", "3"), ("3", "T"), ("1", "T")])
def test_static_batches(step: str, batch: str, time: str) -> None:
    after = recognized(cell(step, batch=batch, time=time))
    assert ("If" in ops(after)) == (time == "T")


BACKWARDS = {"scan_input_directions = [0]": "scan_input_directions = [1]"}
COLLECTED_BACKWARDS = {"scan_output_directions = [0]": "scan_output_directions = [1]"}
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


def reference(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return tensors(ReferenceExecutor(), model, feeds)


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
    session = Session(SCHEDULES["recognize-cell"], None, RuleOptions(), None)
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
    ],
)
def test_updates_of_a_gru(update: str) -> None:
    after = recognized(cell(changed(GRU, {UPDATE: update})))
    assert "GRU" in everywhere(after)


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
