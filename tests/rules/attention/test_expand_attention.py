"""Linear attention in plain operators gives what onnxruntime's kernel gives."""

from __future__ import annotations

import itertools

import pytest

from passes.testing import assert_rewrite

pytestmark = pytest.mark.sampled

#: Heads of query, key and states: alike, shared states, shared queries, a shared key.
HEADS = [(2, 2, 2), (4, 2, 2), (2, 2, 4), (1, 1, 4), (4, 1, 2), (2, 4, 4)]
RULES = ["linear", "gated", "delta", "gated_delta"]


@pytest.mark.parametrize(("rule", "heads"), itertools.product(RULES, HEADS))
def test_heads_and_rules(rule: str, heads: tuple[int, int, int]) -> None:
    """Decays by row where keys are shared, a rate for all states where queries are."""
    queries, keys, states = heads
    gates = states * 3 if keys < states else states
    rates = 1 if queries < states else states
    decay, rate = "g" if "gated" in rule else '""', "b" if "delta" in rule else '""'
    result = assert_rewrite(
        f"""<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
        attention (float[B,T,{queries * 3}] q, float[B,T,{keys * 3}] k, float[B,T,{states * 2}] v,
                   float[B,{states},3,2] S0, float[B,T,{gates}] g, float[B,T,{rates}] b)
               => (float[B,T,{max(queries, states) * 2}] y, float[B,{states},3,2] S) {{
            y, S = com.microsoft.LinearAttention <
                q_num_heads = {queries}, kv_num_heads = {states}, update_rule = "{rule}"
            > (q, k, v, S0, {decay}, {rate})
        }}""",
        pipeline="expand-attention",
    )
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
