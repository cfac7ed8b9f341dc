"""prune-loop: states and collected values that are not read, or equal to others."""

from __future__ import annotations

import pytest
from onnx import GraphProto, ModelProto, NodeProto

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.session import Session
from passes.testing import as_model, assert_refused, assert_rewrite, options_of
from tests.written import changed

pytestmark = pytest.mark.sampled

PRUNING = {"rules": ("prune-loop",)}


def pruned(model: str | ModelProto, **options: object) -> NodeProto:
    """The loop that is left."""
    after = assert_rewrite(model, pipeline="simplify", options={**PRUNING, **options})
    (node,) = [node for node in after.model.graph.node if node.op_type in ("Loop", "Scan")]
    return node


def states_of(node: NodeProto) -> list[str]:
    body: GraphProto = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    return [value.name for value in body.input][2:]


TWO_STATES = """
<ir_version: 8, opset_import: ["" : 21]>
g (int64 n, float[2] h, float[2] x) => (float[2] a_end, float[2] b_end) {
   a_end, b_end = Loop <body = step (int64 i, bool go, float[2] a, float[2] b)
      => (bool on, float[2] a_out, float[2] b_out) {
      on = Identity (go)
      a_out = Neg (b)
      b_out = Neg (a)
   }> (n, "", h, h)
}
"""


def test_exchanged_states_that_start_alike_stay_alike() -> None:
    assert states_of(pruned(TWO_STATES)) == ["a"]


def test_exchanged_states_that_start_differently_are_two() -> None:
    assert_all_states_stay(changed(TWO_STATES, {"h, h)": "h, x)"}))


def test_states_that_differ_because_of_another_one_are_told_apart() -> None:
    """Only c has another update; a and b differ because of it, one after the other."""
    assert states_of(pruned("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h) => (float[2] a_end, float[2] b_end, float[2] d_end) {
       a_end, b_end, c_end, d_end = Loop <
          body = step (int64 i, bool go, float[2] a, float[2] b, float[2] c, float[2] d)
          => (bool on, float[2] a_out, float[2] b_out, float[2] c_out, float[2] d_out) {
          on = Identity (go)
          a_out = Neg (b)
          b_out = Neg (c)
          c_out = Exp (c)
          d_out = Neg (b)
       }> (n, "", h, h, h, h)
    }
    """)) == ["a", "b", "c"]  # fmt: skip


def test_a_recurrence_of_two_states_that_is_not_read_is_removed() -> None:
    assert states_of(pruned("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h, float[2] x) => (float[2] a_end) {
       a_end, b_end, c_end = Loop <
          body = step (int64 i, bool go, float[2] a, float[2] b, float[2] c)
          => (bool on, float[2] a_out, float[2] b_out, float[2] c_out) {
          on = Identity (go)
          a_out = Neg (a)
          b_out = Sin (c)
          c_out = Cos (b)
       }> (n, "", h, x, x)
    }
    """)) == ["a"]  # fmt: skip


def test_a_state_that_the_next_iteration_reads_stays() -> None:
    assert_all_states_stay("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h, float[2] x) => (float[2] a_end) {
       a_end, b_end = Loop <body = step (int64 i, bool go, float[2] a, float[2] b)
          => (bool on, float[2] a_out, float[2] b_out) {
          on = Identity (go)
          a_out = Neg (b)
          b_out = Sin (b)
       }> (n, "", h, x)
    }
    """)


def test_an_unchanged_state_is_captured() -> None:
    assert states_of(pruned("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h, float[2] x) => (float[2] a_end, float[2] k_end) {
       a_end, k_end = Loop <body = step (int64 i, bool go, float[2] a, float[2] k)
          => (bool on, float[2] a_out, float[2] k_out) {
          on = Identity (go)
          a_out = Mul (a, k)
          k_out = Identity (k)
       }> (n, "", h, x)
    }
    """)) == ["a"]  # fmt: skip


def assert_all_states_stay(text: str) -> None:
    model = as_model(text)
    after = (
        Session([Pass(SCHEDULES["simplify"], options=options_of(PRUNING))], None).run(model).model
    )
    assert after is model


def test_a_state_that_the_condition_reads_stays() -> None:
    node = pruned("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (float[2] h, bool c) => (float[2] y) <float one = {1}, float five = {5}, float zero = {0}> {
       y, count_end, other_end = Loop <
          body = step (int64 i, bool go, float[2] s, float count, float other) =>
          (bool on, float[2] s_out, float more, float rest) {
          s_out = Neg (s) more = Add (count, one) on = Less (more, five) rest = Exp (other) }>
          ("", c, h, zero, one)
    }
    """)
    assert states_of(node) == ["s", "count"]
    assert all(node.output)


def test_a_state_whose_update_may_fail_stays() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h, float[2] x) => (float[2] a_end) {
       a_end, b_end = Loop <body = step (int64 i, bool go, float[2] a, float[2] b)
          => (bool on, float[2] a_out, float[2] b_out) {
          on = Identity (go)
          a_out = Neg (a)
          at = Cast <to = 7> (b)
          c = Gather (b, at)
          b_out = Add (b, c)
       }> (n, "", h, x)
    }
    """
    (sentence,) = assert_refused(text, "may-fail", pipeline="simplify", options=PRUNING)
    assert sentence == "'c' is unused, but might fail"
    assert states_of(pruned(text, assume="valid-inputs")) == ["a"]


def test_a_sum_cannot_fail_where_the_signature_says_that_its_sizes_are_one() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x, float[N] v, float[N] w) => (float[2] y) {
       y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) {
          in_vain = Add (v, w) t = Add (s, n) }> (h, x)
    }
    """
    pruned(text)
    other = changed(text, {"float[N] w": "float[M] w"})
    assert_refused(other, "may-fail", pipeline="simplify", options=PRUNING)
    pruned(other, assume="valid-inputs")


SCANS = """
<ir_version: 8, opset_import: ["" : 21]>
g (float[2] h, float[T,2] x, float[S,2] v) => (float[2] y) {
   y, z = Scan <num_scan_inputs = 3, scan_input_directions = [0, 1, 0],
      body = step (float[2] s, float[2] a, float[2] b, float[2] c) => (float[2] t, float[2] o) {
      t = Add (s, a)
      o = Mul (b, c)
   }> (h, x, x, v)
}
"""


@pytest.mark.parametrize(
    ("inputs", "options", "left"),
    [
        (("[3,2] x", "[3,2] v"), {}, 1),
        (("[T,2] x", "[T,2] v"), {}, 2),
        (("[3,2] x", "[T,2] v"), {}, 2),
        (("[T,2] x", "[S,2] v"), {"assume": "valid-inputs"}, 1),
    ],
)
def test_a_scanned_input_goes_where_its_length_is_known(
    inputs: tuple[str, str], options: dict[str, str], left: int
) -> None:
    x, v = inputs
    text = changed(SCANS, {"[T,2] x": x, "[S,2] v": v})
    assert len(pruned(text, **options).input) == 1 + left


def test_a_captured_value_is_not_hidden_by_the_body() -> None:
    """The body may call a value of its own as the outer one is called in which it starts."""
    node = pruned("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h, float[2] x) => (float[2] y) {
       y, k_end = Loop <body = step (int64 i, bool go, float[2] x, float[2] k) =>
          (bool on, float[2] s_out, float[2] k_out) {
          on = Identity (go) s_out = Mul (x, k) k_out = Identity (k) }> (n, "", h, x)
    }
    """)
    assert states_of(node) == ["x_1"]


def test_inner_bodies_that_use_a_name_for_something_else() -> None:
    """Of two equal states the first is called as an input of an inner body: both stay."""
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h) => (float[2] a_end, float[2] b_end) {
       a_end, b_end = Loop <body = step (int64 i, bool go, float[2] a, float[2] b)
          => (bool on, float[2] a_out, float[2] b_out) {
          on = Identity (go)
          a_out = Loop <body = inner (int64 j, bool go_on, float[2] a)
             => (bool further, float[2] p) {
             further = Identity (go_on)
             q = Add (a, b)
             p = Neg (q)
          }> (n, "", a)
          b_out = Neg (b)
          k = Neg (b)
       }> (n, "", h, h)
    }
    """
    rules = ("prune-loop", "share-subexpressions")
    after = assert_rewrite(text, pipeline="simplify", options={"rules": rules})
    assert after.report.records


def test_a_sequence_that_is_carried_twice_stays_where_no_identity_takes_it() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 13]>
    g (int64 n, float[2] h) => (float[2] y, float[2] z) <int64 zero = {0}> {
       s = SequenceConstruct (h)
       e, f = Loop <body = step (int64 i, bool go, seq(float[2]) a, seq(float[2]) b) =>
          (bool on, seq(float[2]) a_out, seq(float[2]) b_out) {
          on = Identity (go) a_out = SequenceInsert (a, h) b_out = SequenceInsert (b, h)
       }> (n, "", s, s)
       y = SequenceAt (e, zero) z = SequenceAt (f, zero)
    }
    """
    assert_all_states_stay(text)
    assert_all_states_stay(changed(text, {'"" : 13': '"" : 16'}))


def test_strings_that_differ_do_not_start_alike() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n) => (string[1] y, string[1] z) <string[1] one = {"a"}, string[1] other = {"b"}> {
       y, z = Loop <body = step (int64 i, bool go, string[1] a, string[1] b) =>
          (bool on, string[1] a_out, string[1] b_out) {
          on = Identity (go) a_out = StringConcat (a, a) b_out = StringConcat (b, b)
       }> (n, "", one, other)
    }
    """
    assert_all_states_stay(text)
    same = as_model(changed(text, {'{"b"}': '{"a"}'}))
    after = (
        Session([Pass(SCHEDULES["simplify"], options=options_of(PRUNING))], None).run(same).model
    )
    assert len(after.graph.node[0].output) == 1


def test_in_a_function() -> None:
    after = assert_rewrite(
        """
    <ir_version: 8, opset_import: ["" : 21, "local" : 1]>
    g (int64 n, float[2] h, float[2] w) => (float[2] y) { y = local.f (n, h, w) }
    <domain: "local", opset_import: ["" : 21]> f (n, h, w) => (y) {
       y, k_end, r = Loop <body = step (int64 i, bool go, float[2] s, float[2] k, float[2] q) =>
          (bool on, float[2] s_out, float[2] k_out, float[2] q_out) {
          on = Identity (go) s_out = Mul (s, k) k_out = Identity (k) q_out = Exp (q)
       }> (n, "", h, w, w)
    }
    """,
        pipeline="simplify",
        options=PRUNING,
    )
    assert list(after.model.functions[0].node[0].input) == ["n", "", "h"]


def test_random_numbers_are_drawn_as_often_as_before() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, float[2] h, float[2] x) => (float[2] a_end) {
       a_end, b_end = Loop <body = step (int64 i, bool go, float[2] a, float[2] b)
          => (bool on, float[2] a_out, float[2] b_out) {
          on = Identity (go)
          r = RandomNormal <shape = [2], seed = 1.0> ()
          a_out = Add (a, r)
          q = RandomNormal <shape = [2], seed = 1.0> ()
          b_out = Add (b, q)
       }> (n, "", h, x)
    }
    """
    model = as_model(text)
    after = Session([Pass(SCHEDULES["simplify"])], None).run(model).model
    body = next(
        attribute.g for attribute in after.graph.node[0].attribute if attribute.name == "body"
    )
    assert [node.op_type for node in body.node].count("RandomNormal") == 2


def test_a_chain_of_loops_of_which_only_the_last_is_read() -> None:
    """Each loop collects for the next one only."""
    loop = """
        h_next, x_next = Scan <num_scan_inputs = 1,
            body = step (float[2] s, float[2] n) => (float[2] t, float[2] o) {
            t = Add (s, n)
            o = Tanh (n)
        }> (h, x_this)
    """
    loops = [changed(loop, {"_next": f"{i + 1}", "_this": f"{i}"}) for i in range(40)]
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x0) => (float[2] h1) { CHAIN_OF_LOOPS }
    """
    model = as_model(changed(text, {"CHAIN_OF_LOOPS": "".join(loops)}))
    after = (
        Session([Pass(SCHEDULES["simplify"], options=options_of(PRUNING))], None).run(model).model
    )
    assert [list(node.output) for node in after.graph.node] == [["h1"]]


@pytest.mark.parametrize(
    ("loop", "gone"),
    [
        (
            "Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {"
            ' on = Less (i, n) t = Neg (s) }> (n, "", h)',
            True,
        ),
        # a while might never end
        (
            "Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {"
            ' on = Less (i, n) t = Neg (s) }> ("", yes, h)',
            False,
        ),
        (
            "Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] n) => (float[2] t) {"
            " t = Add (s, n) }> (h, x)",
            True,
        ),
        (
            "Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] n) => (float[2] t) {"
            " r = RandomNormalLike (n) t = Add (s, r) }> (h, x)",
            False,
        ),
        # lengths may differ
        (
            "Scan <num_scan_inputs = 2, body = b (float[2] s, float[2] n, float[2] m) =>"
            " (float[2] t) { t = Add (s, n) }> (h, x, v)",
            False,
        ),
    ],
)
def test_a_loop_that_is_not_read(loop: str, gone: bool) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 21]>
    g (int64 n, bool yes, float[2] h, float[T,2] x, float[T,2] v) => (float[2] y) {
       y = Neg (h)
       in_vain = LOOP
    }
    """
    text = changed(text, {"LOOP": loop})
    after = Session([Pass(SCHEDULES["simplify"], options=options_of(PRUNING))], None).run(
        as_model(text)
    )
    assert (len(after.model.graph.node) == 1) == gone
    if gone:
        assert_rewrite(text, pipeline="simplify", options=PRUNING)
