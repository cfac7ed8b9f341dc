"""Scans that the kernel computes, and those that differ from them in one thing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import passes
from passes.testing import as_model, assert_rewrite
from tests.rules.in_both_executors import run_both

pytestmark = pytest.mark.sampled

OPTIONS = {"allow_reassociation": "yes", "contrib": "yes"}

STEP = {
    "decay": "decays = Exp (g_t) decay = Unsqueeze (decays, both)",
    "kept": "kept = Mul (decay, S_in)",
    "seen": "seen_row = MatMul (k_row, kept)",
    "missing": "missing = Sub (v_row, seen_row)",
    "rate": "rate = Unsqueeze (b_t, both)",
    "scaled": "scaled = Mul (rate, missing)",
    "change": "change = MatMul (k_column, scaled)",
    "after": "S_out = Add (kept, change)",
    "read": "read = MatMul (q_row, S_out)",
}


def delta_rule(**changed: str) -> str:
    """The gated delta rule, but for what is `changed` of its step."""
    return f"""<ir_version: 8, opset_import: ["" : 18]>
    attention (float[2,16,32] S0, float[T,2,16] q, float[T,2,16] k, float[T,2,32] v, float[T,2] g,
               float[T,2] b) => (float[2,16,32] S, float[T,2,32] y)
    <int64[1] last = {{-1}}, int64[1] before_last = {{-2}}, int64[2] both = {{-1, -2}}> {{
        S, y = Scan <num_scan_inputs = 5, body = step (
            float[2,16,32] S_in, float[2,16] q_t, float[2,16] k_t, float[2,32] v_t,
            float[2] g_t, float[2] b_t
        ) => (float[2,16,32] S_out, float[2,32] y_t) {{
            k_row = Unsqueeze (k_t, before_last)
            k_column = Unsqueeze (k_t, last)
            v_row = Unsqueeze (v_t, before_last)
            q_row = Unsqueeze (q_t, before_last)
            {" ".join((STEP | changed).values())}
            y_t = Squeeze (read, before_last)
        }}> (S0, q, k, v, g, b)
    }}"""


def feeds() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"q": (20, 2, 16), "k": (20, 2, 16), "v": (20, 2, 32), "g": (20, 2), "b": (20, 2)}
    drawn = {one: rng.standard_normal(shape) / 4 for one, shape in shapes.items()}
    drawn["S0"] = np.zeros((2, 16, 32))
    return {name: value.astype(np.float32) for name, value in drawn.items()}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"decay": "", "kept": "kept = Identity (S_in)"},
        {"rate": "", "scaled": "scaled = Identity (missing)"},
        {
            "seen": "values = Mul (v_row, rate)",
            "missing": "keys = Mul (k_row, rate) seen_row = MatMul (keys, kept)",
            "scaled": "scaled = Sub (values, seen_row)",
            "decay": f"{STEP['decay']} {STEP['rate']}",
            "rate": "",
        },
        {"missing": "w = Neg (v_row) missing = Sub (w, seen_row)"},
        {"read": "half = Mul (q_row, rate) read = MatMul (half, S_out)"},
        {"read": "first = MatMul (q_row, S_out) read = Add (first, v_row)"},
    ],
    ids=lambda changed: " ".join(changed) or "as it is",
)
def test_what_is_recognised(changed: dict[str, str]) -> None:
    result = assert_rewrite(delta_rule(**changed), pipeline="recognize-attention", options=OPTIONS)
    assert [node.op_type for node in result.model.graph.node].count("LinearAttention") == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"read": "read = MatMul (q_row, S_in)"},
        {"read": "one = MatMul (q_row, S_out) two = MatMul (k_row, S_out) read = Add (one, two)"},
        {"seen": "seen_row = MatMul (q_row, kept)"},
        {"seen": "seen_row = MatMul (k_row, S_in)"},
        {"missing": "missing = Add (v_row, seen_row)"},
        {
            "after": "more = MatMul (k_column, v_row) both_of = Add (change, more) "
            "S_out = Add (kept, both_of)"
        },
        {"after": "S_out = Sub (kept, change)"},
        {"kept": "less = Neg (S_in) kept = Mul (decay, less)"},
        {"decay": "some = Exp (g_t) decays = Neg (some) decay = Unsqueeze (decays, both)"},
        {"scaled": "grown = Mul (rate, seen_row) scaled = Sub (v_row, grown)"},
    ],
    ids=lambda changed: " ".join(changed.values()),
)
def test_what_differs_in_one_thing(changed: dict[str, str]) -> None:
    model = as_model(delta_rule(**changed))
    result = passes.optimize(
        model, rules=["recognize-attention"], allow_reassociation=True, contrib=True
    )
    assert result.model == model


@pytest.mark.parametrize(("name", "value"), itertools.product("qkvg", [np.nan, np.inf]))
def test_what_is_no_number_reaches_no_step_before(name: str, value: float) -> None:
    model = as_model(delta_rule())
    result = passes.optimize(model, allow_reassociation=True, contrib=True, verify=False)
    assert "LinearAttention" in str(result.model)
    fed = feeds()
    fed[name][7].flat[0] = value
    for before, after in zip(run_both(model, fed), run_both(result.model, fed), strict=True):
        assert np.isfinite(after["y"][:7]).all()
        for output, expected in before.items():
            assert (np.isfinite(after[output]) == np.isfinite(expected)).all()
            known = np.isfinite(expected)
            np.testing.assert_allclose(after[output][known], expected[known], rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_there_and_back() -> None:
    model = as_model(delta_rule())
    once = passes.optimize(model, allow_reassociation=True, contrib=True)
    back = passes.optimize(once.model, target="scan-only")
    assert "LinearAttention" in str(once.model)
    assert "LinearAttention" not in str(back.model)
    assert back.report.checked.verdict == "verified"
    for before, after in zip(run_both(model, feeds()), run_both(back.model, feeds()), strict=True):
        np.testing.assert_allclose(after["y"], before["y"], rtol=1e-3, atol=1e-5)


def test_only_onnxruntime_has_it() -> None:
    with pytest.raises(ValueError, match="contrib goes with target onnxruntime, not tract"):
        passes.optimize(as_model(delta_rule()), target="tract", contrib=True)
