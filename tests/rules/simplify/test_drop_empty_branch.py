"""drop-empty-branch: Ifs whose second branch returns no rows where the first would, too."""

from __future__ import annotations

import pytest

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite, options_of
from tests.written import changed

ALONE = {"rules": ("drop-empty-branch",)}
NO_ROWS = "<int64[2] none = {0, 3}> { q = ConstantOfShape (none) }"
#: A branch for some rows of `x`, and one for no rows.
BRANCHES = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[T,3] x, float[T,3] other, float w, float[1,3] row) => (float[N,M] y)
   <int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] two = {2},
    float[3,3] matrix = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
   shape = Shape (x)
   count = Gather <axis = 0> (shape, zero)
   some = Greater (count, zero)
   y = If (some) <
      then_branch = run () => (float[P,Q] p) { p = Neg (x) },
      else_branch = idle () => (float[R,S] q)
         <int64[2] none = {0, 3}> { q = ConstantOfShape (none) }>
}
"""


def some_rows(nodes: str) -> dict[str, str]:
    """A change of `BRANCHES`: other nodes in the branch for some rows."""
    return {"p = Neg (x)": nodes}


def no_rows(branch: str) -> dict[str, str]:
    """Another branch for no rows, with its initializers."""
    return {NO_ROWS: branch}


def left(text: str) -> bool:
    """Whether the If stays."""
    result = Session([Pass(SCHEDULES["simplify"], options=options_of(ALONE))], None).run(
        as_model(text)
    )
    return any(node.op_type == "If" for node in result.model.graph.node)


@pytest.mark.parametrize(
    "nodes",
    [
        "p = Neg (x)",
        "a = Mul (x, w) p = Add (a, row)",
        "p = MatMul (x, matrix)",
        "p = Gemm (x, matrix, row)",
        "p = Softmax <axis = 1> (x)",
        "a = Concat <axis = 0> (x, x) p = Clip (a, w)",
        "a = Transpose (x) b = Exp (a) p = Transpose (b)",
        "a = Unsqueeze (x, first) b = Sqrt (a) p = Squeeze (b, first)",
        "to = Constant <value_ints = [-1, 3]> () a = Abs (x) p = Reshape (a, to)",
        "at = Constant <value_ints = [2, 0, 1]> () p = Gather <axis = 1> (x, at)",
        "a = Slice (x, first, two) p = Tanh (a)",
        "a = IsNaN (x) p = Where (a, x, x)",
    ],
)
def test_the_branch_for_some_rows_is_written(nodes: str) -> None:
    text = changed(BRANCHES, some_rows(nodes))
    result = assert_rewrite(text, pipeline="simplify", options=ALONE, budget=20)
    assert "If" not in {node.op_type for node in result.model.graph.node}


@pytest.mark.parametrize(
    "idle",
    [
        NO_ROWS,
        "{ q = Constant <value : tensor = float[0,3] {}> () }",
        "{ q = ConstantOfShape (shape) }",
        "{ q = Identity (x) }",
        "{ q = MatMul (x, matrix) }",
    ],
)
def test_the_other_branch_may_compute_no_rows_in_any_way(idle: str) -> None:
    text = changed(BRANCHES, no_rows(idle))
    result = assert_rewrite(text, pipeline="simplify", options=ALONE, budget=20)
    assert [node.op_type for node in result.model.graph.node] == ["Neg"]


def test_nodes_that_only_the_if_read_are_removed() -> None:
    computed = {"some = Greater": "zeros = ConstantOfShape (shape) some = Greater"}
    zeros = changed(BRANCHES, computed | no_rows("{ q = Identity (zeros) }"))
    result = assert_rewrite(zeros, pipeline="simplify", options=ALONE, budget=20)
    assert [node.op_type for node in result.model.graph.node] == ["Neg"]


@pytest.mark.parametrize(
    "test",
    [
        "some = Greater (count, one)",
        "some = Less (zero, count)",
        "less = Sub (count, one) some = Greater (less, zero)",
        "rank = Size (shape) some = Greater (rank, zero)",
        "some = Greater (zero, count)",
        "a = Cast <to = 1> (count) b = Cast <to = 1> (zero) some = Greater (a, b)",
    ],
)
def test_a_condition_that_is_true_for_no_rows_too_is_left_alone(test: str) -> None:
    assert left(changed(BRANCHES, {"some = Greater (count, zero)": test}))


@pytest.mark.parametrize(
    ("nodes", "idle"),
    [
        ("p = Neg (row)", "{ q = Identity (row) }"),  # one row, whatever T is
        ("p = Neg (x)", "<int64[2] one_row = {1, 3}> { q = ConstantOfShape (one_row) }"),
        ("p = Transpose (x)", NO_ROWS),
        ("p = Concat <axis = 0> (x, row)", NO_ROWS),
    ],
)
def test_branches_that_may_differ_are_refused(nodes: str, idle: str) -> None:
    text = changed(BRANCHES, some_rows(nodes) | no_rows(idle))
    assert_refused(text, "may-differ", pipeline="simplify", options=ALONE)
    assert left(text)


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Gather <axis = 0> (x, zero) p = Add (x, a)",  # there is no first row
        "p = RandomUniformLike (x)",
        "a = ReduceMax (x, two) p = Sub (x, a)",  # fails: there is no such axis
        "a = ReduceMax <keepdims = 1> (x) p = Add (x, a)",  # of nothing
        "t = Transpose (x) a = MatMul (t, x) b = MatMul (x, a) p = Identity (b)",  # sums of nothing
    ],
)
def test_a_branch_that_may_fail_or_differ_for_no_rows_is_refused(nodes: str) -> None:
    text = changed(BRANCHES, some_rows(nodes))
    report = (
        Session([Pass(SCHEDULES["simplify"], options=options_of(ALONE))], None)
        .run(as_model(text))
        .report
    )
    assert {record.code for record in report.refusals} <= {"may-fail", "may-differ"}
    assert left(text)


@pytest.mark.parametrize(
    ("nodes", "idle"),
    [
        ("p = Neg (x)", "{ q = Identity (other) }"),
        ("a = Add (x, other) p = Identity (x)", NO_ROWS),
    ],
)
def test_sizes_that_inputs_declare_by_one_symbol_are_equal(nodes: str, idle: str) -> None:
    assert not left(changed(BRANCHES, some_rows(nodes) | no_rows(idle)))


def test_a_branch_that_fails_for_no_rows_stays() -> None:
    idle = "{ a = Gather <axis = 0> (x, zero) q = Identity (x) }"
    assert_refused(changed(BRANCHES, no_rows(idle)), "may-fail", pipeline="simplify", options=ALONE)


def test_an_if_in_a_scan_is_dropped_and_one_in_a_loop_stays() -> None:
    scan = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[B,3] h, float[T] x) => (float[B,3] y) <int64 zero = {0}> {
       y = Scan <num_scan_inputs = 1, body = step (float[B,3] s, float n) => (float[B,3] t) {
          shape = Shape (s)
          count = Gather <axis = 0> (shape, zero)
          some = Greater (count, zero)
          t = If (some) <
             then_branch = a () => (float[K,3] p) { p = Neg (s) },
             else_branch = b () => (float[0,3] q) <int64[2] none = {0, 3}> {
                q = ConstantOfShape (none)
             }>
       }> (h, x)
    }
    """
    loop = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[B,3] h, float[T] x) => (float[B,3] y) <int64 zero = {0}, int64 three = {3}> {
       y = Loop <body = step (int64 i, bool go, float[B,3] s) => (bool on, float[B,3] t) {
          on = Identity (go)
          shape = Shape (s)
          count = Gather <axis = 0> (shape, zero)
          some = Greater (count, zero)
          t = If (some) <
             then_branch = a () => (float[K,3] p) { p = Neg (s) },
             else_branch = b () => (float[0,3] q) <int64[2] none = {0, 3}> {
                q = ConstantOfShape (none)
             }>
       }> (three, "", h)
    }
    """
    result = assert_rewrite(scan, pipeline="simplify", options=ALONE, budget=20)
    assert "If" not in str(result.model)
    assert (
        not Session([Pass(SCHEDULES["simplify"], options=options_of(ALONE))], None)
        .run(as_model(loop))
        .report.records
    )


def test_a_branch_with_a_body_is_left_alone() -> None:
    nodes = """p = Scan <num_scan_inputs = 1, body = step (float[3] n) => (float[3] o) {
        o = Neg (n) }> (x)"""
    report = (
        Session([Pass(SCHEDULES["simplify"], options=options_of(ALONE))], None)
        .run(as_model(changed(BRANCHES, some_rows(nodes))))
        .report
    )
    assert not report.records


def test_strings_stay() -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (string[T,3] x) => (string[3,N] y) <int64 zero = {0}> {
       shape = Shape (x)
       count = Gather <axis = 0> (shape, zero)
       some = Greater (count, zero)
       y = If (some) <then_branch = run () => (string[3,P] p) { p = Transpose (x) },
                      else_branch = idle () => (string[3,Q] q) { q = Transpose (x) }>
    }"""
    assert_refused(text, "may-fail", pipeline="simplify", options=ALONE)
