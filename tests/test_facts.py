"""What analysis knows of a loop: trip count, recurrences, invariants, purity, speculation."""

from __future__ import annotations

import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto

from passes import facts, scope
from passes.facts import Trip, TripCount
from passes.loop_form import LoopForm
from passes.model import Model
from passes.names import Names
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


def test_a_condition_that_is_omitted() -> None:
    assert always(loop_model(inputs='n, ""', body="on = Not (go)")), "its result is not looked at"


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


# -- purity -----------------------------------------------------------------------------------


def node(text: str) -> NodeProto:
    return onnx.parser.parse_node(text)


@pytest.mark.parametrize("op", sorted(facts.RANDOM))
def test_random_ops_are_impure(op: str) -> None:
    assert not facts.is_pure(node(f"y = {op} (x)"))


@pytest.mark.parametrize(
    ("text", "pure"),
    [
        ("y = Add (a, b)", True),
        ("y = ai.onnx.Add (a, b)", True),
        ("y = ai.onnx.ml.Scaler (a)", True),
        ("y = com.acme.Dice (a)", False),
        ("y = Dropout (x)", True),
        ("y = Dropout (x, ratio)", True),
        ('y = Dropout (x, ratio, "")', True),
        ("y = Dropout (x, ratio, training)", False),
    ],
)
def test_purity_of_a_node(text: str, pure: bool) -> None:
    assert facts.is_pure(node(text)) is pure


def test_a_random_op_makes_what_holds_it_impure_at_any_depth() -> None:
    def nested(op: str) -> NodeProto:
        return node(f"""
            y = If (c) <then_branch = a () => (float p) {{
              p = If (d) <then_branch = k () => (float q) {{ q = {op} (x) }},
                          else_branch = l () => (float q) {{ q = Abs (x) }}>
            }}, else_branch = b () => (float p) {{ p = Neg (x) }}>
        """)

    assert facts.is_pure(nested("Neg"))
    assert not facts.is_pure(nested("Bernoulli"))


# -- speculation ------------------------------------------------------------------------------


def culprits(graph: str, fixed: tuple[str, ...] = ()) -> list[str]:
    body: GraphProto = onnx.parser.parse_graph(graph)
    return [one.op_type for one in facts.speculatable(body, fixed)]


def test_arithmetic_may_run_on_anything() -> None:
    assert culprits("b (float[2] x) => (float[2] y) { a = Exp (x) y = Div2 (a) }") == ["Div2"]
    assert culprits("b (float[2] x) => (float[2] y) { a = Exp (x) y = Log (a) }") == []


@pytest.mark.parametrize(
    "op", ["Gather (x, i)", "Div (x, i)", "Mod (x, i)", "Reshape (x, i)", "NonZero (x)"]
)
def test_what_fails_or_sizes_its_output_by_values_may_not(op: str) -> None:
    assert culprits(f"b (int64[2] x, int64[2] i) => (y) {{ y = {op} }}") == [op.split()[0]]


@pytest.mark.parametrize(
    "op",
    [
        "Slice (x, k, k)",
        "Slice (x, k, k, k, k)",
        "Squeeze (x, k)",
        "Unsqueeze (x, k)",
        "ReduceSum (x, k)",
        "ReduceMean (x, k)",
        "CumSum (x, k)",
        "Tile (x, k)",
        'Pad (x, k, "", k)',
        "Split (x, k)",
        "LSTM (x, x, x, x, k)",
    ],
)
def test_sizes_axes_and_lengths_must_be_fixed(op: str) -> None:
    name = op.split()[0]
    graph = f"b (float[2,2] x, int64[1] k) => (y) {{ y = {op} }}"
    assert culprits(graph) == [name]
    assert culprits(graph, ("k",)) == []
    constant = "<int64[1] k = {0}>"
    assert culprits(f"b (float[2,2] x) => (y) {constant} {{ y = {op} }}") == []
    written = f"b (float[2,2] x) => (y) {{ k = Constant <value_ints = [0]> () y = {op} }}"
    assert culprits(written) == []


def test_an_omitted_input_is_fixed() -> None:
    assert culprits('b (float[4] x) => (y) { y = Slice (x, s, e, "", s) }', ("s", "e")) == []
    assert culprits('b (x) => (y) { y = LSTM (x, x, x, x, "", x) }') == []


def test_a_cast_may_fail_on_a_string() -> None:
    cast = "y = Cast <to = 1> ({})"
    assert culprits(f"b (float[2] x) => (float[2] y) {{ {cast.format('x')} }}") == []
    assert culprits(f"b (string[2] x) => (float[2] y) {{ {cast.format('x')} }}") == ["Cast"]
    moved = f"b (string[2] x) => (float[2] y) {{ a = Identity (x) {cast.format('a')} }}"
    assert culprits(moved) == ["Cast"]


def test_other_domains_and_nested_loops_may_not() -> None:
    assert culprits("b (float x) => (float y) { y = com.acme.Add (x) }") == ["Add"]
    assert culprits("b (float x) => (float y) { y = com.acme.Constant (x) }") == ["Constant"]
    loop = "Loop <body = b (int64 i, bool go) => (bool on) { on = Not (go) }> (n, c)"
    assert culprits(f"b (float x) => (float y) {{ y = {loop} }}") == ["Loop"]


def typed_culprits(nodes: str, kind: str) -> list[str]:
    text = f"""
        <ir_version: 10, opset_import: ["" : 21]>
        b ({kind}[2] x, {kind}[2] z, bool c) => ({kind}[2] y) {{ {nodes} }}
    """
    graph = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)).graph
    values = [
        value
        for one in scope.graphs_below(graph)
        for value in (*one.input, *one.output, *one.value_info)
    ]
    types = {value.name: value.type for value in values}
    return [one.op_type for one in facts.speculatable(graph, (), types)]


@pytest.mark.parametrize("op", ["Div", "Mod <fmod = 1>", "Pow"])
def test_floats_may_be_divided_and_integers_may_not(op: str) -> None:
    assert typed_culprits(f"y = {op} (x, z)", "float") == []
    assert typed_culprits(f"y = {op} (x, z)", "int64") == [op.split()[0]]


def test_bodies_may_be_speculated_where_all_they_hold_may() -> None:
    branches = """
        y = If (c) <then_branch = p () => (float[2] t) { t = NODE },
                    else_branch = q () => (float[2] e) { e = Neg (x) }>
    """
    assert typed_culprits(branches.replace("NODE", "Exp (x)"), "float") == []
    assert typed_culprits(branches.replace("NODE", "Compress (x, c)"), "float") == ["If"]
    ragged = branches.replace("float[2] t", "float[N] t").replace("NODE", "Exp (k)")
    assert typed_culprits(ragged, "float") == ["If"]


def test_every_speculatable_op_is_an_op() -> None:
    assert all(onnx.defs.has(op) for op in facts.SPECULATABLE)
    assert facts.SPECULATABLE.isdisjoint(facts.RANDOM)


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
