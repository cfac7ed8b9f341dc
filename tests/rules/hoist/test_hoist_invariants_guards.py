"""hoist-invariants: work that may fail, before loops that may not run."""

from __future__ import annotations

import numpy as np
import pytest
from hoisted_models import LOOKING_UP, count, hoisted, ops, run

from passes.testing import as_model, assert_refused, assert_rewrite
from tests.written import changed


def test_a_node_fails_only_where_the_loop_runs() -> None:
    after = hoisted(LOOKING_UP)
    feeds = {"table": np.ones((4, 2), np.float32), "h": np.ones(2, np.float32)}
    final, rows = run(after, n=0, row=99, **feeds)
    assert final.tolist() == [1, 1]
    assert rows.shape[0] == 0
    assert run(after, n=2, row=1, **feeds)[1].tolist() == [[1, 1], [1, 1]]
    with pytest.raises(Exception, match="out of data bounds"):
        run(after, n=1, row=99, **feeds)


@pytest.mark.parametrize(
    "kind",
    [
        "float",
        "double",
        "float16",
        "bfloat16",
        "bool",
        "int8",
        "uint16",
        "uint64",
        "int64",
    ],
)
def test_every_type_is_guarded(kind: str) -> None:
    assert count(hoisted(changed(LOOKING_UP, {"float": kind})), "If") == 1


def test_strings_are_guarded() -> None:
    """A Loop that collects some keeps them."""
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, string[4,2] table, int64 row, string[2] h) => (string[2] y, int64[T] z) {
   y, z = Loop <body = step (int64 i, bool go, string[2] s) => (bool on, string[2] t, int64 o) {
      on = Identity (go)
      r = Gather (table, row)
      o = Neg (i)
      t = Identity (r)
   }> (n, "", h)
}
""")
    assert count(after, "If") == 1


@pytest.mark.parametrize("opset", [9, 10, 11, 13, 16, 18, 26])
def test_every_opset_is_spelled(opset: int) -> None:
    text = changed(LOOKING_UP, {'"" : 21': f'"" : {opset}'})
    if opset < 11:
        text = changed(text, {"t = Identity (s)": "t = Add (s, r)"})
    assert count(hoisted(text), "If") == 1


def test_before_opset_9_nothing_asks_for_the_trip_count() -> None:
    text = changed(LOOKING_UP, {'"" : 21': '"" : 8', "t = Identity (s)": "t = Add (s, r)"})
    (sentence,) = assert_refused(text, "may-fail", pipeline="hoist-invariants")
    assert "Gather may fail" in sentence


def test_a_trip_count_may_be_a_vector_of_one() -> None:
    after = hoisted(changed(LOOKING_UP, {"int64 n": "int64[1] n"}))
    feeds = {"table": np.ones((4, 2), np.float32), "h": np.ones(2, np.float32)}
    assert run(after, n=[0], row=99, **feeds)[1].shape[0] == 0
    assert run(after, n=[3], row=3, **feeds)[1].shape == (3, 2)


def test_nan_and_infinity_of_work_that_is_not_needed_do_not_get_through() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[2] a, float[2] h) => (float[2] y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) z = Sub (a, a) w = Div (a, z) t = Mul (s, w) }> (n, "", h)
}
""")
    assert ops(after.graph) == ["Sub", "Div", "Loop"]
    infinite = np.array([np.inf, np.nan], np.float32)
    assert run(after, n=0, a=infinite, h=np.ones(2, np.float32))[0].tolist() == [1, 1]
    assert np.isnan(run(after, n=1, a=infinite, h=np.ones(2, np.float32))[0]).all()


def test_a_static_size_behind_the_trip_count_proves_that_the_loop_runs() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[3,2] x, float[4,2] table, int64 row, float[2] h) => (float[2] y)
<int64 zero = {0}> {
   shape = Shape (x)
   n = Gather (shape, zero)
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) r = Gather (table, row) t = Add (s, r) }> (n, "", h)
}
""")
    assert ops(after.graph) == ["Shape", "Gather", "Gather", "Loop"]


def test_a_loop_that_never_runs_is_left_alone() -> None:
    model = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] a, float[2] h) => (float[2] y) <int64 none = {0}> {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) w = Exp (a) t = Add (s, w) }> (none, "", h)
}
""")
    result = assert_rewrite(model, pipeline="hoist-invariants")
    assert result.model == model
    assert not result.report.records


def test_nested_loops_each_ask_for_their_trip_count() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, int64 m, float[4,2] table, int64 row, float[2] h) => (float[2] y) {
   y = Loop <body = outer (int64 i, bool go, float[2] p) => (bool on, float[2] q) {
      on = Identity (go)
      q = Loop <body = inner (int64 j, bool go_on, float[2] s) => (bool more, float[2] t) {
         more = Identity (go_on) r = Gather (table, row) t = Add (s, r) }> (m, "", p)
   }> (n, "", h)
}
""")
    assert count(after, "If") == 2
    assert ops(after.graph)[-2:] == ["If", "Loop"]
    feeds = {"table": np.ones((4, 2), np.float32), "h": np.ones(2, np.float32)}
    for n, m in ((0, 3), (3, 0), (0, 0)):
        assert run(after, n=n, m=m, row=99, **feeds)[0].tolist() == [1, 1]
    assert run(after, n=2, m=3, row=0, **feeds)[0].tolist() == [7, 7]


def test_a_captured_value_has_the_type_of_the_outer_one_not_of_what_hid_it() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[M] k, float[2] a, float[2] h) => (float[2] y, float[M] k_end) {
   y, k_end = Loop <body = step (int64 i, bool go, float[2] k, float[M] k_in)
      => (bool on, float[2] t, float[M] k_in) {
      on = Identity (go) ak = Add (a, k_in) m = ReduceSum <keepdims = 0> (ak) t = Add (k, m) }>
      (n, "", h, k)
}
""")
    assert ops(after.graph) == ["Greater", "If", "Loop", "Identity"]


def test_a_function_guards_at_its_top_at_any_ir_version() -> None:
    after = hoisted("""
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
g (int64 n, float[4,2] table, int64 row, float[2] h) => (float[2] y) {
   y = local.walk (n, table, row, h)
}
<domain: "local", opset_import: ["" : 17]>
walk (n, table, row, h) => (y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) r = Gather (table, row) t = Add (s, r) }> (n, "", h)
}
""")
    (function,) = after.functions
    assert [node.op_type for node in function.node] == ["Constant", "Greater", "If", "Loop"]
    assert not function.value_info


def test_up_to_ir_3_a_guard_lists_its_constants() -> None:
    after = hoisted("""
<ir_version: 3, opset_import: ["" : 9]>
g (int64 n, float[4,2] table, int64 row, float[2] h) => (float[2] y) {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) r = Gather (table, row) t = Add (s, r) }> (n, "", h)
}
""")
    assert ops(after.graph) == ["Greater", "If", "Loop"]
