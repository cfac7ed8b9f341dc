"""select-branches: what the branch that is not taken must not do, and where the rule runs."""

from __future__ import annotations

import numpy as np
import pytest

import passes
from passes.session import Result
from passes.testing import as_model, assert_refused, assert_rewrite
from passes.verify.reference import ReferenceExecutor
from tests.written import changed

RULE = "select-branches"

UNLIKE = """
<ir_version: 10, opset_import: ["" : 21]>
g (bool c, float[2] x) => (float[2] y) {
   y = If (c) <then_branch = a () => (float[2] p) { p = Log (x) },
               else_branch = b () => (float[2] q) { q = Neg (x) }>
}
"""


def rewritten(text: str, **options: object) -> Result:
    return assert_rewrite(text, pipeline=RULE, options=options)


def ops(result: Result) -> list[str]:
    return [node.op_type for node in result.model.graph.node]


def test_no_nan_of_the_branch_that_is_not_taken_gets_through() -> None:
    model = rewritten(UNLIKE).model
    x = np.array([-1, 0], np.float32)
    (y,) = ReferenceExecutor().run(model, {"c": np.array(False), "x": x}).outputs.values()
    assert np.asarray(y).tolist() == [1, 0]
    (y,) = ReferenceExecutor().run(model, {"c": np.array(True), "x": x}).outputs.values()
    assert np.isnan(y[0])
    assert np.isneginf(y[1])


def test_negative_zeros_get_through() -> None:
    model = rewritten(UNLIKE).model
    x = np.array([0, 1], np.float32)
    (y,) = ReferenceExecutor().run(model, {"c": np.array(False), "x": x}).outputs.values()
    assert np.signbit(y).tolist() == [True, True]


@pytest.mark.parametrize(
    ("target", "stays"), [("no-control-flow", False), ("onnxruntime", True), ("scan-only", True)]
)
def test_an_if_saves_work_where_it_runs(target: str, stays: bool) -> None:
    result = passes.optimize(as_model(UNLIKE), target=target)
    assert ("If" in ops(result)) is stays


def test_by_name_it_runs_in_any_command() -> None:
    result = passes.simplify(as_model(UNLIKE), rules=(RULE,))
    assert "If" not in ops(result)


SYMBOLS = """
<ir_version: 10, opset_import: ["" : 21]>
g (bool c, int64[N] x, int64[N] z, bool[N] m) => (int64[K] y) <int64[N] k> {
   k = Compress (x, m)
   y = If (c) <then_branch = a () => (int64[N] p) { p = Add (x, z) },
               else_branch = b () => (int64[N] q) { q = Neg (z) }>
}
"""


def test_sizes_of_inputs_with_one_symbol_are_equal() -> None:
    assert ops(rewritten(SYMBOLS))[1:] == ["Add", "Neg", "Where"]


def test_symbols_that_the_model_declares_inside_are_not_proven() -> None:
    text = changed(SYMBOLS, {"Neg (z)": "Neg (k)"})
    assert_refused(text, "may-differ", pipeline=RULE)
    assert_refused(changed(text, {"Add (x, z)": "Add (x, k)"}), "may-fail", pipeline=RULE)


def test_what_a_branch_declares_proves_nothing() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (bool c, int64[M] x, int64[2] z) => (int64[2] y) {
       y = If (c) <then_branch = a () => (int64[2] p) { p = Neg (x) },
                   else_branch = b () => (int64[2] q) { q = Abs (z) }>
    }
    """
    assert_refused(text, "may-differ", pipeline=RULE)


def test_loops_stay_in_their_branches() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (bool c, int64 n, int64[2] x) => (int64[2] y) {
       y = If (c) <
          then_branch = a () => (int64[2] p) {
             p = Loop <body = step (int64 i, bool go, int64[2] s) => (bool on, int64[2] t) {
                on = Identity (go) t = Add (s, s) }> (n, "", x)
          },
          else_branch = b () => (int64[2] q) { q = Neg (x) }>
    }
    """
    assert_refused(text, "may-fail", pipeline=RULE)


def test_a_call_that_draws_random_numbers_stays() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21, "my" : 1]>
    g (bool c, float[2] x) => (float[2] y) {
       y = If (c) <then_branch = a () => (float[2] p) { p = my.noise (x) },
                   else_branch = b () => (float[2] q) { q = Neg (x) }>
    }
    <domain: "my", opset_import: ["" : 21]>
    noise (x) => (y) { r = RandomNormalLike (x) y = Add (x, r) }
    """
    assert_refused(text, "random", pipeline=RULE)


def test_outputs_that_nothing_names_and_branches_in_any_order() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (bool c, int64[2] x) => (int64[2] z) {
       "", z = If (c) <
          else_branch = b () => (int64[2] q, int64[2] s) { q = Neg (x) s = Abs (x) },
          then_branch = a () => (int64[2] p, int64[2] r) { p = Neg (x) r = Neg (x) }>
    }
    """
    result = rewritten(text)
    assert ops(result) == ["Abs", "Neg", "Where"] or ops(result) == ["Neg", "Abs", "Where"]
    (choice,) = [node for node in result.model.graph.node if node.op_type == "Where"]
    made = {node.output[0]: node.op_type for node in result.model.graph.node}
    assert [made.get(name) for name in choice.input] == [None, "Neg", "Abs"]


@pytest.mark.sampled(3)  # each opset, each type
@pytest.mark.parametrize("opset", [8, 11, 13, 16, 21])
@pytest.mark.parametrize("kind", ["float", "double", "bool", "int64", "int32", "uint8", "float16"])
def test_every_type_at_every_opset(opset: int, kind: str) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (bool c, float[N,2] x, float[N,2] z) => (float[N,2] y) {
       y = If (c) <then_branch = a () => (float[N,2] p) { p = Identity (x) },
                   else_branch = b () => (float[N,2] q) { q = Transpose <perm = [0, 1]> (z) }>
    }
    """
    text = changed(text, {'"" : 21': f'"" : {opset}', "float": kind})
    assert "If" not in ops(rewritten(text))
