"""inline-if: which Ifs are conditions, and which must stay."""

from __future__ import annotations

import pytest

import passes
from passes.testing import as_model
from tests.written import changed

CONDITION = """
<ir_version: 8, opset_import: ["" : 21]>
g (bool c, bool b, bool d, int64 i, bool[1] wide, bool[3] many, float[8] x) => (bool y) {
   y = If (c) <then_branch = t () => (p) { THEN }, else_branch = e () => (q) { ELSE }>
}
"""


def ops(text: str) -> list[str]:
    model = passes.simplify(as_model(text), rules=("inline-if",)).model
    return [node.op_type for node in model.graph.node]


@pytest.mark.parametrize(
    ("then", "otherwise", "why"),
    [
        ("p = Identity (b)", "q = Identity (d)", "neither branch is known"),
        ("p = Gather (many, i)", "q = Identity (c)", "the index may be out of range"),
        ("m = Div (i, i) p = Cast <to = 9> (m)", "q = Identity (c)", "it may divide by 0"),
        ("m = MatMul (x, x) p = Cast <to = 9> (m)", "q = Identity (c)", "a product takes work"),
        ("m = RandomNormalLike (i) p = Cast <to = 9> (m)", "q = Identity (c)", "it is random"),
    ],
)
def test_an_if_stays_whose_branch_may_not_run_in_any_case(
    then: str, otherwise: str, why: str
) -> None:
    assert ops(changed(CONDITION, {"THEN": then, "ELSE": otherwise})) == ["If"], why


@pytest.mark.parametrize("swapped", [False, True])
def test_an_if_stays_whose_branches_return_other_shapes(swapped: bool) -> None:
    then, otherwise = ("wide", "c")[:: -1 if swapped else 1]
    text = changed(CONDITION, {"bool y": "y", "THEN": f"p = Identity ({then})"})
    assert ops(changed(text, {"ELSE": f"q = Identity ({otherwise})"})) == ["If"]


def test_a_loop_that_only_declares_that_a_value_is_single_proves_nothing() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (int64 n, bool c, bool[N] s0) => (bool[M] y) <bool yes = {1}> {
       y = Loop <body = step (int64 i, bool go, bool s) => (bool on, bool t) {
          on = Identity (go)
          t = If (c) <then_branch = a () => (p) { p = Not (s) },
                      else_branch = b () => (q) { q = Identity (c) }>
       }> (n, yes, s0)
    }
    """
    model = passes.simplify(as_model(text), rules=("inline-if",)).model
    body = next(one.g for one in model.graph.node[0].attribute if one.name == "body")
    assert [node.op_type for node in body.node] == ["Identity", "If"]
