"""What analysis knows of a loop: trip count, recurrences, invariants, stable shapes."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto

from passes.analysis.trip_count import facts
from passes.analysis.trip_count.facts import Trip, TripCount
from passes.ir import scope
from passes.ir.model import Model
from passes.ir.names import Names
from passes.loops.form import LoopForm
from passes.rule import Site

STEP = "step (float[2] s, float[2] e) => (float[2] t, float[2] o) { t = Add (s, e) o = Neg (t) }"


def site_of(text: str, op: str = "Loop") -> tuple[Site, LoopForm]:
    """The (innermost) loop of a model in ONNX text."""
    return site_in(onnx.parser.parse_model(text), op)


def site_in(proto: ModelProto, op: str = "Loop") -> tuple[Site, LoopForm]:
    model = Model(proto)
    place = next(at for at in scope.walk_model(proto) if at.node.op_type == op)
    *_, top = place.scope.chain()
    opset = model.opset(top.owner)
    site = Site(model, place, opset, opset, Names(), model.types)
    return site, LoopForm.from_node(place.node, opset)


def form_of(text: str) -> LoopForm:
    """A loop in ONNX text, opset 16."""
    return LoopForm.from_node(onnx.parser.parse_node(text), 16)


# -- trip count -------------------------------------------------------------------------------


def scan_over(dims: str, opset: int = 16, attributes: str = "num_scan_inputs = 1") -> TripCount:
    text = f"""
        <ir_version: 8, opset_import: ["" : {opset}]>
        g (float[2] h, float{dims} x) => (float[2] y, float[A,B] z)
        {{ y, z = Scan <{attributes}, body = {STEP}> (h, x) }}
    """
    return facts.trip_count(*site_of(text, "Scan"))


def test_a_scan_runs_as_often_as_its_axis_is_long() -> None:
    assert scan_over("[5,2]") == TripCount(Trip.STATIC, 5)
    assert scan_over("[T,2]") == TripCount(Trip.SYMBOLIC, "T")
    assert scan_over("[?,2]") == TripCount(Trip.DYNAMIC)
    assert scan_over("[]") == TripCount(Trip.DYNAMIC)


def test_the_axis_counts_from_either_end() -> None:
    scanned = "num_scan_inputs = 1, scan_input_axes = "
    assert scan_over("[2,7]", attributes=scanned + "[1]") == TripCount(Trip.STATIC, 7)
    assert scan_over("[2,7]", attributes=scanned + "[-1]") == TripCount(Trip.STATIC, 7)
    assert scan_over("[7,2]", attributes=scanned + "[-2]") == TripCount(Trip.STATIC, 7)


def test_one_scanned_input_of_known_length_is_enough() -> None:
    count = facts.trip_count(
        *site_of(
            """
            <ir_version: 8, opset_import: ["" : 16]>
            g (float[T] a, float[4] b) => (float[U] z) {
              z = Scan <num_scan_inputs = 2,
                body = add (float e, float f) => (float o) { o = Add (e, f) }> (a, b)
            }
            """,
            "Scan",
        )
    )
    assert count == TripCount(Trip.STATIC, 4)


@pytest.mark.parametrize(("lengths", "at_most"), [('""', False), ("lens", True)])
def test_the_lengths_of_a_scan_8_may_end_it_earlier(lengths: str, at_most: bool) -> None:
    text = f"""
        <ir_version: 3, opset_import: ["" : 8]>
        g (int64[3] lens, float[3,2] h, float[3,T,2] x) => (float[3,2] y, float[3,T,2] z)
        {{ y, z = Scan <num_scan_inputs = 1, body = {STEP}> ({lengths}, h, x) }}
    """
    count = facts.trip_count(*site_of(text, "Scan"))
    assert count == TripCount(Trip.SYMBOLIC, "T", at_most)
    assert str(count) == ("<= T" if at_most else "T")


def loop_model(
    *,
    maximum: str = "int64 n = {5}",
    start: str = "bool c = {1}",
    body: str = "on = Identity (go)",
    inputs: str = "n, c",
    more: str = "",
    condition: str = "on",
) -> str:
    """A Loop over `maximum` with the condition `body` computes as `on`."""
    return f"""
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[2] h, bool any, int64 many{more}) => (float[2] y) <{maximum}, {start}> {{
          y = Loop <body = b (int64 i, bool go, float[2] s) => (bool {condition}, float[2] t)
            {{ {body} t = Neg (s) }}> ({inputs}, h)
        }}
    """


def trips(text: str) -> str:
    return str(facts.trip_count(*site_of(text)))


def test_a_loop_with_a_constant_trip_count() -> None:
    assert facts.trip_count(*site_of(loop_model())) == TripCount(Trip.STATIC, 5)
    assert trips(loop_model(maximum="int64[1] n = {5}")) == "5"
    assert trips(loop_model(maximum="int64 n = {-3}")) == "0", "M <= 0 runs none"
    assert trips(loop_model(maximum="int64 n = {9223372036854775807}")) == str((1 << 63) - 1)


def test_a_loop_with_a_computed_trip_count() -> None:
    assert trips(loop_model(inputs="many, c")) == "dynamic"
    assert trips(loop_model(inputs='"", c')) == "dynamic", "for ever"


def test_a_default_that_a_caller_may_override_is_no_constant() -> None:
    model = onnx.parser.parse_model(loop_model(more=", int64 n"))
    assert str(facts.trip_count(*site_in(model))) == "dynamic"
    model.ir_version = 3
    assert str(facts.trip_count(*site_in(model))) == "5", "up to IR 3 it cannot be overridden"


def test_a_condition_may_end_a_loop_earlier() -> None:
    computed = loop_model(body="on = Not (go)")
    assert trips(computed) == "<= 5"
    assert facts.trip_count(*site_of(computed)).known is not Trip.STATIC
    assert trips(loop_model(inputs="n, any")) == "<= 5", "it may be false at first"
    assert trips(loop_model(start="bool c = {0}")) == "<= 5"


# -- condition --------------------------------------------------------------------------------


def always(text: str) -> bool:
    return facts.condition_always_true(*site_of(text))


def test_a_condition_that_is_passed_through() -> None:
    assert always(loop_model())
    assert always(loop_model(body="a = Identity (go) on = Identity (a)"))
    assert always(loop_model(body="", condition="go"))


def test_a_condition_that_is_made_of_true_ones() -> None:
    assert always(
        loop_model(
            body="yes = Constant <value_int = 1> () y = Cast <to = 9> (yes)"
            " a = And (go, y) b = Cast <to = 9> (a) on = And (b, go)"
        )
    )
    assert not always(loop_model(body="no = Not (go) on = And (go, no)"))


def test_a_condition_that_is_omitted() -> None:
    assert always(loop_model(inputs='n, ""'))
    assert not always(loop_model(inputs='n, ""', body="on = Not (go)")), "the body ends the loop"


def test_a_condition_that_is_the_constant_true() -> None:
    assert always(loop_model(body="on = Constant <value = bool {1}> ()"))
    assert not always(loop_model(body="on = Constant <value = bool {0}> ()"))
    assert always(loop_model(body="on = Identity (c)")), "c is captured"
    assert always(loop_model(start="bool c = {1}, bool d = {1}", body="on = Identity (d)"))
    assert not always(loop_model(start="bool c = {1}, bool d = {0}", body="on = Identity (d)"))


def test_a_condition_that_is_an_initializer_of_the_body() -> None:
    def model(value: int) -> str:
        return f"""
            <ir_version: 8, opset_import: ["" : 16]>
            g (float[2] h, int64 n) => (float[2] y) <bool c = {{1}}> {{
              y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t)
                <bool on = {{{value}}}> {{ t = Neg (s) }}> (n, c, h)
            }}
        """

    assert always(model(1))
    assert not always(model(0))


def test_a_body_input_that_is_called_like_the_initial_condition_is_another_value() -> None:
    """`c` inside is what the loop carries: false, after the first iteration."""
    assert not always(
        """
        <ir_version: 8, opset_import: ["" : 16]>
        g (bool other, int64 n) => (bool y) <bool c = {1}> {
          y = Loop <body = b (int64 i, bool go, bool c) => (bool on, bool d)
            { on = Identity (c) d = Not (c) }> (n, c, other)
        }
        """
    )


def test_a_condition_that_an_attribute_of_the_function_gives_is_not_known() -> None:
    assert not always(
        """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float[2] h, int64 n) => (float[2] y) { y = local.f <go_on = bool {1}> (h, n) }
        <domain: "local", opset_import: ["" : 16]> f <go_on> (h, n) => (y) {
          c = Constant <value = bool {1}> ()
          y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t)
            { on = Constant <value: tensor = @go_on> () t = Neg (s) }> (n, c, h)
        }
        """
    )


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
    assert facts.recurrences(form) == [frozenset("ab"), frozenset("c"), frozenset("d")]


def test_a_value_that_is_only_overwritten_is_no_recurrence() -> None:
    form = form_of("""
        p, z = Scan <num_scan_inputs = 1, body = b (float last, float e) => (float now, float o)
          { now = Neg (e) o = Add (last, now) }> (u, x)
    """)
    assert facts.recurrences(form) == []


def test_a_recurrence_through_what_a_nested_body_captures() -> None:
    form = form_of("""
        p = Scan <num_scan_inputs = 1, body = b (float s, bool e) => (float t) {
          t = If (e) <then_branch = y () => (float a) { a = Neg (s) },
                      else_branch = n () => (float a) { a = Constant <value_float = 0.0> () }>
        }> (u, x)
    """)
    assert facts.recurrences(form) == [frozenset("s")]


def test_dependencies_lead_from_carried_outputs_back_to_their_inputs() -> None:
    graph = facts.dependencies(form_of(f"y, z = Scan <num_scan_inputs = 1, body = {STEP}> (h, x)"))
    assert set(graph.edges) == {("s", "t"), ("e", "t"), ("t", "o"), ("t", "s")}


def invariant(body: str) -> list[str]:
    form = form_of(f"""
        y = Loop <body = b (int64 i, bool go, float s) => (bool on, float t)
          {{ on = Identity (go) {body} }}> (n, c, h)
    """)
    return [node.output[0] for node in facts.invariant_nodes(form)]


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
    return facts.keeps_shape(*site_of(text))["s"]


def test_a_shape_is_stable_where_inference_says_so() -> None:
    assert keeps("float[3]", "t = Neg (s)")
    assert keeps("float[N]", "t = Neg (s)")
    assert not keeps("float[3]", "t = Concat <axis = 0> (s, s)")
    assert not keeps("float[]", "t = Neg (s)"), "of an unknown rank nothing is known"
    assert not keeps("float[?]", "t = Concat <axis = 0> (s, s)")
