"""hoist-invariants: what stays where it is."""

from __future__ import annotations

from hoisted_models import LOOKING_UP, body_of, count, hoisted, loop_in, ops, scan_of

from passes.testing import as_model, assert_refused, assert_rewrite


def test_random_numbers_are_drawn_as_often_as_before() -> None:
    model = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] a, bool which, float[2] h) => (float[2] y, float[3,2] drawn) <int64 trips = {3}> {
   y, drawn = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] d) {
      on = Identity (go)
      e = Exp (a)
      r = RandomNormalLike (e)
      rr = Sub (r, r)
      d = If (which) <
         then_branch = yes () => (float[2] u) { v = RandomUniformLike (e) u = Sub (v, v) },
         else_branch = no () => (float[2] o) { v = RandomUniformLike (e) o = Sub (v, v) }>
      p = Add (s, rr)
      t = Add (p, d)
   }> (trips, "", h)
}
""")
    after = hoisted(model)
    assert ops(after.graph) == ["Exp", "Loop"]
    for op_type in ("RandomNormalLike", "RandomUniformLike"):
        inside = body_of(loop_in(after.graph))
        assert count(after, op_type) == count(model, op_type)
        assert op_type not in ops(after.graph)
        assert "If" in ops(inside)


def test_a_function_that_draws_random_numbers_stays() -> None:
    (sentence,) = assert_refused(
        """
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2] a, float[2] h) => (float[2] y) <int64 trips = {3}> {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) r = local.noise (a) t = Add (s, r) }> (trips, "", h)
}
<domain: "local", opset_import: ["" : 21]>
noise (x) => (r) { r = RandomNormalLike (x) }
""",
        "random",
        pipeline="hoist-invariants",
    )
    assert "noise draws random numbers" in sentence


def test_work_leaves_no_branch_of_a_loop_that_runs_once() -> None:
    body = """
    c = Constant <value_float = 0.0> () m = ReduceSum <keepdims = 0> (s) up = Greater (m, c)
    t = If (up) <then_branch = yes () => (float[2] p) { e = Exp (h) p = Add (e, n) },
                 else_branch = no () => (float[2] q) { q = Add (s, n) }>
    """
    once = scan_of(body, trips=1)
    assert assert_rewrite(once, pipeline="hoist-invariants").model == once
    assert ops(hoisted(scan_of(body)).graph) == ["Exp", "Scan"]


def test_a_sequence_that_is_returned_stays_where_identity_takes_tensors_only() -> None:
    after = hoisted("""
<ir_version: 8, opset_import: ["" : 13]>
g (float[2] a, seq(float[2]) h, int64 n) => (seq(float[2]) y) {
   y = Loop <body = step (int64 i, bool go, seq(float[2]) s) => (bool on, seq(float[2]) t) {
      on = Identity (go) e = Exp (a) t = SequenceConstruct (e, e) }> (n, "", h)
}
""")
    assert ops(after.graph) == ["Exp", "Loop"]


def test_a_sequence_that_is_carried_unchanged_is_captured() -> None:
    after = hoisted("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] a, float[2] h, int64 n) => (float[2] y, seq(float[2]) q) <int64 first = {0}> {
   q0 = SequenceConstruct (a, a)
   y, q = Loop <body = step (int64 i, bool go, float[2] s, seq(float[2]) q_in)
      => (bool on, float[2] t, seq(float[2]) q_in) {
      on = Identity (go) e = SequenceAt (q_in, first) t = Add (s, e) }> (n, "", h, q0)
}
""")
    assert list(loop_in(after.graph).input) == ["n", "", "h"]
    assert count(after, "If") == 1


def test_unread_nodes_stay() -> None:
    model = as_model(LOOKING_UP)
    body = body_of(model.graph.node[0])
    body.node[2].input[0] = "s"
    body.node[3].op_type = "Neg"
    assert assert_rewrite(model, pipeline="hoist-invariants").model == model


def test_sizes_that_are_not_known_count_as_one() -> None:
    model = as_model("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] a, float[4] h, float[3,4] x) => (float[4] y) {
   y = Scan <num_scan_inputs = 1, body = step (float[4] s, float[4] e) => (float[4] t) {
      w = Exp (a) m = Mul (w, e) p = ReduceSum <keepdims = 0> (m) t = Add (s, p) }> (h, x)
}
""")
    assert ops(hoisted(model, max_bytes=16).graph) == ["Exp", "Scan"]
    assert_refused(model, "over-budget", pipeline="hoist-invariants", options={"max_bytes": 15})
