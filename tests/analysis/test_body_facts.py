"""What is known of the body of a loop: recurrences, invariants, stable shapes."""

from __future__ import annotations

import onnx

from passes.analysis.bodies import body_facts
from passes.loops.form import LoopForm
from tests.analysis.test_trip_count import site_of


def form_of(text: str) -> LoopForm:
    """A loop in ONNX text, opset 16."""
    return LoopForm.from_node(onnx.parser.parse_node(text), 16)


# -- recurrences and invariants ---------------------------------------------------------------


def test_values_that_feed_each_other_are_one_recurrence() -> None:
    form = form_of("""
        p, q, r, k, z = Scan <num_scan_inputs = 1,
          body = b (float a, float b, float c, float d, float e)
            => (float a2, float b2, float c2, float d, float o) {
              a2 = Add (b, e)
              b2 = Neg (a)
              c2 = Add (c, a)
              o = Mul (c2, d)
            }> (u, v, w, k0, x)
    """)
    assert body_facts.recurrences(form) == [frozenset("ab"), frozenset("c"), frozenset("d")]


def test_a_value_that_is_only_overwritten_is_no_recurrence() -> None:
    form = form_of("""
        p, z = Scan <num_scan_inputs = 1, body = b (float last, float e) => (float now, float o)
          { now = Neg (e) o = Add (last, now) }> (u, x)
    """)
    assert body_facts.recurrences(form) == []


def test_a_recurrence_through_what_a_nested_body_captures() -> None:
    form = form_of("""
        p = Scan <num_scan_inputs = 1, body = b (float s, bool e) => (float t) {
          t = If (e) <then_branch = y () => (float a) { a = Neg (s) },
                      else_branch = n () => (float a) { a = Constant <value_float = 0.0> () }>
        }> (u, x)
    """)
    assert body_facts.recurrences(form) == [frozenset("s")]


def test_dependencies_lead_from_carried_outputs_back_to_their_inputs() -> None:
    graph = body_facts.dependencies(
        form_of("""
        y, z = Scan <num_scan_inputs = 1,
            body = step (float[2] s, float[2] e) => (float[2] t, float[2] o) {
            t = Add (s, e)
            o = Neg (t)
        }> (h, x)
        """)
    )
    assert set(graph.edges) == {("s", "t"), ("e", "t"), ("t", "o"), ("t", "s")}


def invariant(body: str) -> list[str]:
    form = form_of(f"""
        y = Loop <body = b (int64 i, bool go, float s) => (bool on, float t)
          {{ on = Identity (go) {body} }}> (n, c, h)
    """)
    return [node.output[0] for node in body_facts.invariant_nodes(form)]


def test_what_sees_only_captured_values_is_invariant() -> None:
    assert invariant("a = Neg (w) b = Add (a, w) t = Add (s, b)") == ["a", "b"]


def test_what_sees_the_iteration_number_is_not() -> None:
    assert invariant("j = Cast <to = 1> (i) a = Neg (w) t = Add (j, a)") == ["a"]


def test_what_is_computed_from_a_random_value_is_not() -> None:
    assert invariant("r = RandomNormal <shape = [1]> () a = Neg (r) t = Add (s, a)") == []


def test_what_captures_a_carried_value_in_a_nested_body_is_not() -> None:
    branches = (
        "If (flag) <then_branch = y () => (float a) { a = Neg (V) },"
        " else_branch = n () => (float a) { a = Abs (w) }>"
    )
    assert invariant(f"t = {branches.replace('V', 's')}") == []
    assert invariant(f"k = {branches.replace('V', 'w')} t = Add (k, s)") == ["k"]


# -- shapes -----------------------------------------------------------------------------------


def keeps(state: str, body: str) -> bool:
    text = f"""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[N] h, int64 n, bool c) => (float[M] y) {{
          y = Loop <body = b (int64 i, bool go, {state} s) => (bool on, t)
            {{ on = Identity (go) {body} }}> (n, c, h)
        }}
    """
    return body_facts.keeps_shape(*site_of(text))["s"]


def test_a_shape_is_stable_where_inference_says_so() -> None:
    assert keeps("float[3]", "t = Neg (s)")
    assert keeps("float[N]", "t = Neg (s)")
    assert not keeps("float[3]", "t = Concat <axis = 0> (s, s)")
    assert not keeps("float[]", "t = Neg (s)"), "of an unknown rank nothing is known"
    assert not keeps("float[?]", "t = Concat <axis = 0> (s, s)")
