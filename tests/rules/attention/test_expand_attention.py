"""expand-attention: linear attention in plain operators agrees with onnxruntime's kernel."""

from __future__ import annotations

import itertools

import pytest

from passes.testing import assert_rewrite
from tests.written import changed

pytestmark = pytest.mark.sampled

#: Heads of query, key and states: alike, shared states, shared queries, a shared key.
HEADS = [(2, 2, 2), (4, 2, 2), (2, 2, 4), (1, 1, 4), (4, 1, 2), (2, 4, 4)]
RULES = ["linear", "gated", "delta", "gated_delta"]


@pytest.mark.parametrize(("rule", "heads"), itertools.product(RULES, HEADS))
def test_heads_and_rules(rule: str, heads: tuple[int, int, int]) -> None:
    """Decays by row where keys are shared, a rate for all states where queries are."""
    text = """
    <ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
    attention (float[B,T,QUERIES] q, float[B,T,KEYS] k, float[B,T,VALUES] v,
               float[B,HEADS,3,2] S0, float[B,T,GATES] g, float[B,T,RATES] b)
        => (float[B,T,RESULTS] y, float[B,HEADS,3,2] S) {
        y, S = com.microsoft.LinearAttention <
            q_num_heads = Q_HEADS, kv_num_heads = KV_HEADS, update_rule = "gated_delta"
        > (q, k, v, S0, g, b)
    }
    """
    queries, keys, states = heads
    sizes = {
        "QUERIES": queries * 3,
        "KEYS": keys * 3,
        "VALUES": states * 2,
        "HEADS,": f"{states},",
        "GATES": states * 3 if keys < states else states,
        "RATES": 1 if queries < states else states,
        "RESULTS": max(queries, states) * 2,
        "Q_HEADS": queries,
        "KV_HEADS": states,
    }
    inputs = {
        "linear": '(q, k, v, S0, "", "")',
        "gated": '(q, k, v, S0, g, "")',
        "delta": '(q, k, v, S0, "", b)',
        "gated_delta": "(q, k, v, S0, g, b)",
    }
    ruled = {'"gated_delta"': f'"{rule}"', "(q, k, v, S0, g, b)": inputs[rule]}
    text = changed(text, {name: str(size) for name, size in sizes.items()} | ruled)
    result = assert_rewrite(text, pipeline="expand-attention")
    assert "LinearAttention" not in str(result.model)


def test_a_function_of_that_name_stays() -> None:
    model = """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
        g (float[1,2,4] q) => (float[1,2,4] y) {
            y = com.microsoft.LinearAttention <q_num_heads = 1, kv_num_heads = 1> (q, q, q)
        }
        <domain: "com.microsoft", opset_import: ["" : 18]>
        LinearAttention <q_num_heads, kv_num_heads> (q, k, v) => (y) { y = Neg (q) }"""
    assert assert_rewrite(model, model, pipeline="expand-attention")


@pytest.mark.parametrize("target", ["scan-only", "loop-only", "no-control-flow", "tract"])
def test_no_other_target_has_the_operator(target: str) -> None:
    import passes
    from passes.testing import as_model

    model = as_model(
        """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
        g (float[1,4,4] x) => (float[1,4,4] y) {
            y = com.microsoft.LinearAttention <
                q_num_heads = 1, kv_num_heads = 1, update_rule = "linear"
            > (x, x, x)
        }"""
    )
    result = passes.optimize(model, target=target)
    assert "LinearAttention" not in str(result.model)
    assert result.report.checked.verdict == "verified"
