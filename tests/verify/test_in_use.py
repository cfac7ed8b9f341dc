"""Inputs that are drawn for measuring: what multiplies a state lets it neither grow nor vanish."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from passes.ir.model import Model
from passes.measuring.measuring import Settings, _fed
from passes.types.signature import inputs
from passes.verify.inputs.drawer import Drawer
from passes.verify.inputs.in_use import in_use
from tests.written import changed

Drawn = dict[str, npt.NDArray[np.float32]]
GATED = """<ir_version: 10, opset_import: ["" : 21]>
g (float[H,4,8] S0, float[T,H,4,1] as, float[T,H,1,4] qs, float[T,H,4,1] ks, float[T,H,1,8] vs)
    => (float[H,4,8] S, float[T,H,1,8] ys) {
    S, ys = Scan <num_scan_inputs = 4, body = step
        (float[H,4,8] S_in, float[H,4,1] a, float[H,1,4] q, float[H,4,1] k, float[H,1,8] v)
        => (float[H,4,8] S_out, float[H,1,8] y) {
        kept = Mul (a, S_in)  kv = Mul (k, v)  S_out = Add (kept, kv)  y = MatMul (q, S_out)
    }> (S0, as, qs, ks, vs) }"""
DELTA = """<ir_version: 10, opset_import: ["" : 21]>
g (float[4,8] S0, float[T,1] betas, float[T,4,1] ks, float[T,1,8] vs) => (float[4,8] S) {
    S = Scan <num_scan_inputs = 3, body = step
        (float[4,8] S_in, float[1] beta, float[4,1] k, float[1,8] v) => (float[4,8] S_out) {
        t = Transpose <perm = [1, 0]> (k)  old = MatMul (t, S_in)  new = Sub (v, old)
        w = Mul (beta, new)  kw = Mul (k, w)  S_out = Add (S_in, kw)
    }> (S0, betas, ks, vs) }"""
AVERAGE = """<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[2,T,1] as, float[2] h0, float[2] b) => (float[2] h)
    <bool go = {1}, int64[1] one = {1}, int64 zero = {0}, float whole = {1}> {
    h, count = Loop (n, go, h0, zero) <body = step (int64 i, bool c, float[2] h_in, int64 j)
        => (bool c_out, float[2] h_out, int64 j_out) {
        c_out = Identity (c)  j_out = Add (j, i)
        row = Gather <axis = 1> (as, i)  a = Squeeze (row, one)
        ah = Mul (h_in, a)  h_out = Add (ah, b)
    }> }"""


def used(text: str) -> tuple[Drawn, Drawn]:
    """Normal deviates for the inputs of a model, with symbols of size 5; and these as in use."""
    model = Model(onnx.parser.parse_model(text))
    random, drawn = np.random.default_rng(0), Drawn()
    for value in model.proto.graph.input:
        shape = [dim.dim_value or 5 for dim in value.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        drawn[value.name] = np.asarray(random.standard_normal(shape) * 3).astype(dtype)
    return drawn, {name: np.asarray(value) for name, value in in_use(model, drawn).items()}


def is_decay(value: npt.NDArray[np.float32]) -> bool:
    return bool(((value >= 0.9) & (value <= 1)).all()) and len(np.unique(value)) > 1


def test_what_multiplies_a_state_element_by_element_is_a_decay() -> None:
    drawn, found = used(GATED)
    assert is_decay(found["as"])
    assert found["as"].dtype == np.float32
    assert all(np.array_equal(found[name], drawn[name]) for name in ("S0", "ks", "vs"))


def test_a_row_that_reads_a_state_has_norm_1() -> None:
    drawn, found = used(GATED)
    np.testing.assert_allclose(found["qs"], drawn["qs"] / 2, rtol=1e-6)


def test_a_key_that_corrects_a_state_is_a_row_and_its_strength_is_a_decay() -> None:
    drawn, found = used(DELTA)
    np.testing.assert_allclose(found["ks"], drawn["ks"] / 2, rtol=1e-6)
    assert is_decay(found["betas"])
    assert np.array_equal(found["vs"], drawn["vs"])


def test_a_product_with_a_state_by_einsum_is_of_rows() -> None:
    by_einsum = {"old = MatMul (t, S_in)": 'old = Einsum <equation = "ki,kv->iv"> (k, S_in)'}
    assert np.array_equal(used(changed(DELTA, by_einsum))[1]["ks"], used(DELTA)[1]["ks"])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"a = Squeeze (row, one)": "r = Squeeze (row, one)  a = Identity (r)"},
        {"(as, i)": "(as, j)"},
        {"h, count": "t = Transpose <perm = [0, 1, 2]> (as)  h, count", "(as, i)": "(t, i)"},
        {
            "float[2,T,1] as": "float[2] as",
            "row = Gather <axis = 1> (as, i)": "",
            "(row, one)": "(as)",
        },
        {
            "ah = Mul (h_in, a)": """ah = If (c) <
                then_branch = yes () => (float[2] p) { p = Mul (h_in, a) },
                else_branch = no () => (float[2] p) { p = Identity (h_in) }>"""
        },
    ],
)
def test_a_decay_may_be_moved(changes: dict[str, str]) -> None:
    drawn, found = used(changed(AVERAGE, changes))
    assert is_decay(found["as"])
    assert all(np.array_equal(found[name], drawn[name]) for name in ("h0", "b", "n"))


@pytest.mark.parametrize(
    ("nodes", "decay"),
    [
        ("g = Squeeze (row, one)  a = Exp (g)", np.exp),
        ("g = Squeeze (row, one)  m = Neg (g)  a = Exp (m)", lambda g: np.exp(-g)),
        ("g = Squeeze (row, one)  a = Sub (whole, g)", lambda z: 1 - z),
    ],
)
def test_a_decay_may_be_the_result_of(nodes: str, decay: np.ufunc) -> None:
    _, found = used(changed(AVERAGE, {"a = Squeeze (row, one)": nodes}))
    assert is_decay(decay(found["as"]))
    assert not is_decay(found["as"])


def test_a_decay_may_be_carried_unchanged() -> None:
    _, found = used("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[2] a0, float[2] h0, float[T,2] bs) => (float[2] h) {
        a, h = Scan <num_scan_inputs = 1, body = step (float[2] a_in, float[2] h_in, float[2] b)
            => (float[2] a_out, float[2] h_out) {
            a_out = Identity (a_in)  ah = Mul (a_in, h_in)  h_out = Add (ah, b)
        }> (a0, h0, bs) }""")
    assert is_decay(found["a0"])


@pytest.mark.parametrize(
    "changes",
    [
        {"a = Squeeze (row, one)": "g = Squeeze (row, one)  a = Sigmoid (g)"},
        {"ah = Mul (h_in, a)": "ah = Add (h_in, a)"},
        {"ah = Mul (h_in, a)": "ab = Mul (a, b)  ah = Add (h_in, ab)"},
    ],
)
def test_what_multiplies_no_state_stays_as_drawn(changes: dict[str, str]) -> None:
    drawn, found = used(changed(AVERAGE, changes))
    assert all(np.array_equal(found[name], drawn[name]) for name in drawn)


def test_whole_numbers_stay_as_drawn() -> None:
    drawn, found = used("""<ir_version: 10, opset_import: ["" : 21]>
        g (int64[2] h0, int64[T,2] xs) => (int64[2] h) {
        h = Scan <num_scan_inputs = 1, body = step (int64[2] h_in, int64[2] x)
            => (int64[2] h_out) { h_out = Mul (h_in, x) }> (h0, xs) }""")
    assert np.array_equal(found["xs"], drawn["xs"])


def test_a_default_that_is_not_overridden_stays_so() -> None:
    model = onnx.parser.parse_model(changed(AVERAGE, {"float[2,T,1] as": "float[2,1,1] as"}))
    model.graph.initializer.append(
        onnx.numpy_helper.from_array(np.ones((2, 1, 1), np.float32), "as")
    )
    assert list(in_use(Model(model), {"n": np.array(1)})) == ["n"]


def test_measuring_feeds_inputs_as_they_are_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passes.measuring.measuring.OnnxRuntimeExecutor.available", lambda: False)
    model = Model(onnx.parser.parse_model(GATED))
    drawer = Drawer(tuple(inputs(model.proto.graph)))
    (feeds,) = _fed(model, drawer, [{"H": 2, "T": 16}], Settings())
    assert np.shape(feeds["as"]) == (16, 2, 4, 1)
    assert is_decay(np.asarray(feeds["as"]))
