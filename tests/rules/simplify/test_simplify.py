"""Known branches, loops of one iteration, unread branches, and common subexpressions."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import GraphProto, NodeProto, StringStringEntryProto

from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope as scoping
from passes.session import Result, Session
from passes.testing import as_model, assert_refused, assert_rewrite
from tests.written import changed


def simplified(text: str, *rules: str, **options: Any) -> Result:
    return assert_rewrite(text, pipeline="simplify", options={"rules": rules, **options})


def ops(nodes: Any) -> list[str]:
    return [node.op_type for node in nodes]


def body_of(node: NodeProto) -> GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == "body")


# -- inline-if --------------------------------------------------------------------------------


def test_what_a_branch_calls_its_values_clashes_with_nothing() -> None:
    result = simplified(
        """
        <ir_version: 8, opset_import: ["" : 21]>
        g (float[2] x) => (float[2] y, float[2] z) <bool yes = {1}, bool no = {0}> {
           t = Abs (x)
           y = If (yes) <then_branch = a () => (float[2] p) { u = Neg (t) p = Exp (u) },
                         else_branch = b () => (float[2] q) { q = Neg (t) }>
           z = If (no) <then_branch = a () => (float[2] p) { u = Neg (t) p = Exp (u) },
                        else_branch = b () => (float[2] q) { u = Sin (y) q = Mul (u, t) }>
        }
        """,
        "inline-if",
    )
    graph = result.model.graph
    assert ops(graph.node) == ["Abs", "Neg", "Exp", "Sin", "Mul"]
    assert [node.output[0] for node in graph.node if node.output[0] in "yz"] == ["y", "z"]
    assert [record.note for record in result.report.records] == ["then_branch", "else_branch"]


def test_one_value_may_be_two_outputs_and_an_outer_value_one() -> None:
    result = simplified(
        """
        <ir_version: 8, opset_import: ["" : 21]>
        g (float[2] x) => (float[2] y, float[2] z, float[2] v) <bool yes = {1}> {
           y, z, v = If (yes) <
              then_branch = a () => (float[2] p, float[2] p, float[2] x) { p = Exp (x) },
              else_branch = b () => (float[2] q, float[2] q, float[2] q) { q = Neg (x) }>
        }
        """,
        "inline-if",
    )
    assert ops(result.model.graph.node) == ["Exp", "Identity", "Identity"]


def test_random_numbers_of_the_branch_are_drawn_once() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 21]>
        g (float[2] x) => (float[2] y) <bool yes = {1}> {
           y = If (yes) <then_branch = a () => (float[2] p) {
                            r = RandomUniformLike (x) p = Mul (x, r) },
                         else_branch = b () => (float[2] q) { q = Neg (x) }>
        }
    """
    model = Session([Pass(SCHEDULES["simplify"])], None).run(as_model(text)).model
    assert ops(model.graph.node) == ["RandomUniformLike", "Mul"]


def test_a_default_that_a_caller_may_override_decides_nothing() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 21]>
        g (float[2] x, bool yes) => (float[2] y) <bool yes = {1}> {
           y = If (yes) <then_branch = a () => (float[2] p) { p = Exp (x) },
                         else_branch = b () => (float[2] q) { q = Neg (x) }>
        }
    """
    model = as_model(text)
    assert Session([Pass(SCHEDULES["simplify"])], None).run(model).model is model


def test_annotations_and_types_of_the_branch_go_along() -> None:
    model = as_model("""
        <ir_version: 8, opset_import: ["" : 21]>
        g (float[2] x) => (float[2] y) <bool yes = {1}> {
           y = If (yes) <then_branch = a () => (float[2] p) <float[2] t, float scale = {1}> {
                            t = Abs (x) p = Mul (t, t) },
                         else_branch = b () => (float[2] q) { q = Neg (x) }>
        }
    """)
    branch = model.graph.node[0].attribute[0].g
    entry = StringStringEntryProto(key="SCALE_TENSOR", value="scale")
    branch.quantization_annotation.add(tensor_name="t", quant_parameter_tensor_names=[entry])
    graph = Session([Pass(SCHEDULES["simplify"])]).run(model).model.graph
    assert [value.name for value in graph.value_info] == ["t_1"]
    assert [annotation.tensor_name for annotation in graph.quantization_annotation] == ["t_1"]
    scales = [
        annotation.quant_parameter_tensor_names[0].value
        for annotation in graph.quantization_annotation
    ]
    assert scales == ["if/scale"]


# -- inline-loop ------------------------------------------------------------------------------


def once(trips: str, cond: str) -> str:
    """A Loop that its body ends after the first iteration, if it begins."""
    return f"""
<ir_version: 8, opset_import: ["" : 21]>
g (bool c, float[2] h) => (float[2] y, float[N,2] z)
<int64 trips = {{{trips}}}, bool yes = {{1}}> {{
   y, z = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] o) {{
      sum = ReduceMax <keepdims = 0> (s) zero = Sub (sum, sum) on = Less (sum, zero)
      t = Add (s, h) o = Mul (t, h) }}> (trips, {cond}, h)
}}
"""


@pytest.mark.parametrize(("trips", "cond"), [("1", '""'), ("1", "yes"), ("0", "c"), ("-3", "yes")])
def test_a_loop_of_one_iteration_and_of_none(trips: str, cond: str) -> None:
    result = simplified(once(trips, cond), "inline-loop")
    assert "Loop" not in ops(result.model.graph.node)


@pytest.mark.parametrize(("trips", "cond"), [("1", "c"), ("2", "yes")])
def test_a_loop_that_may_run_otherwise_stays(trips: str, cond: str) -> None:
    model = as_model(once(trips, cond))
    assert (
        Session([Pass(SCHEDULES["simplify"], options=RuleOptions(rules=("inline-loop",)))], None)
        .run(model)
        .model
        is model
    )


# -- prune-if ---------------------------------------------------------------------------------


def test_an_if_keeps_an_output_and_what_draws() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 21]>
        g (bool c, float[2] x) => (float[2] y) {
           y = Neg (x)
           one, two = If (c) <
              then_branch = a () => (float[2] p, float[2] r) {
                 p = RandomUniformLike (x) r = Sin (x) },
              else_branch = b () => (float[2] q, float[2] s) { q = Neg (x) s = Cos (x) }>
        }
    """
    model = Session([Pass(SCHEDULES["simplify"])], None).run(as_model(text)).model
    (node,) = [node for node in model.graph.node if node.op_type == "If"]
    assert len(node.output) == 1
    drawn = [node.op_type for _, graph in scoping.subgraphs(node) for node in graph.node]
    assert drawn.count("RandomUniformLike") == 1


@pytest.mark.parametrize(
    ("counting", "stays"),
    [
        ("r = Range (zero, n, two)", False),
        ("r = Range (n, zero, minus)", False),
        ("r = Range (zero, n, n)", True),  # fails where n is 0
        ("r = Range (zero, n, nought)", True),
        ("r = Range (zero, n, half)", True),
        ("r = Range (zero, ns, two)", True),  # no scalar
    ],
)
def test_what_counts_for_nobody_goes_where_its_step_is_fixed(counting: str, stays: bool) -> None:
    zero = "float zero = {0}" if "half" in counting else "int64 zero = {0}"
    kind = "float" if "half" in counting else "int64"
    text = f"""
        <ir_version: 8, opset_import: ["" : 21]>
        g (bool c, float[2] x, {kind} n, int64[1] ns) => (float[2] y)
           <{zero}, int64 two = {{2}}, int64 minus = {{-1}}, int64 nought = {{0}},
            float half = {{0.5}}> {{
           y = If (c) <then_branch = a () => (float[2] p) {{ {counting} p = Neg (x) }},
                       else_branch = b () => (float[2] q) {{ q = Abs (x) }}>
        }}
    """
    model = (
        Session([Pass(SCHEDULES["simplify"], options=RuleOptions(rules=("prune-if",)))], None)
        .run(as_model(text))
        .model
    )
    assert ("Range" in str(model)) == stays


# -- one round ----------------------------------------------------------------------------------


def test_what_goes_with_a_loop_was_not_rewritten_in_the_same_round() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 21]>
        g (float[2,2] x, float[2] n) => (float[2] y) <bool no = {0}> {
           turned = Transpose (x)
           u = If (no) <then_branch = a () => (float[2,2] p) { p = Abs (turned) },
                        else_branch = b () => (float[2,2] q) { q = MatMul (turned, x) }>
           y = Scan <num_scan_inputs = 1, body = each (float n_t) => (float y_t) {
              unread = Exp (u)
              y_t = Neg (n_t)
           }> (n)
        }
    """
    result = assert_rewrite(text, pipeline="simplify", options={"assume": "valid-inputs"})
    assert [node.op_type for node in result.model.graph.node] == ["Scan"]


# -- share-subexpressions ---------------------------------------------------------------------


SHARED = """
<ir_version: 8, opset_import: ["" : 21]>
g (float[2] h, float[3,2] x, float[2] w) => (float[2] y) {
   y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) {
      t = Add (s, n)
   }> (h, x)
}
"""


def shared(nodes: str) -> GraphProto:
    """The body with these nodes after share-subexpressions."""
    return body_after_sharing(changed(SHARED, {"t = Add (s, n)": nodes}))


def body_after_sharing(text: str) -> GraphProto:
    return body_of(simplified(text, "share-subexpressions").model.graph.node[0])


def test_a_chain_of_identities_of_an_outer_value() -> None:
    body = body_after_sharing("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x, float[2] w) => (float[2] y, float[3,2] v) {
       y, v = Scan <num_scan_inputs = 1,
          body = step (float[2] s, float[2] n) => (float[2] t, float[2] c) {
          a = Identity (w)
          b = Identity (a)
          c = Identity (b)
          m = Mul (n, b)
          t = Add (s, m)
       }> (h, x)
    }
    """)
    assert [list(node.input) for node in body.node] == [["w"], ["n", "w"], ["s", "m"]]


def test_attributes_and_omitted_inputs_tell_nodes_apart() -> None:
    nodes = (
        "w0 = ReduceMax <keepdims = 0> (w)"
        " a = Softmax <axis = 0> (n) b = Softmax <axis = -1> (n) c = Softmax <axis = 0> (n)"
        ' e = Clip (n, "", w0) f = Clip (n, w0) g = Clip (n, "", w0)'
        " t1 = Sum (a, b, c, e, f, g) t = Add (s, t1)"
    )
    body = shared(nodes)
    assert ops(body.node) == ["ReduceMax", "Softmax", "Softmax", "Clip", "Clip", "Sum", "Add"]


def test_constants_are_equal_by_what_they_hold() -> None:
    body = shared(
        "a = Constant <value_floats = [1.0, 2.0]> () b = Constant <value = float[2] {1, 2}> ()"
        " c = Add (n, a) d = Add (n, b) e = Mul (c, d) t = Add (s, e)"
    )
    assert ops(body.node) == ["Constant", "Add", "Mul", "Add"]
    assert list(body.node[2].input) == ["c", "c"]


def test_a_name_that_an_inner_body_uses_for_something_else_stands_for_nothing() -> None:
    """The inner body calls its state `a`; there `b` must not be read as `a`."""
    body = shared(
        "a = Mul (n, w) b = Mul (n, w)"
        " u = Scan <num_scan_inputs = 1, body = inner (float[2] a, float e) => (float[2] v)"
        " { v = Mul (a, b) }> (s, n)"
        " c = Add (a, b) t = Add (c, u)"
    )
    inner = body_of(next(node for node in body.node if node.op_type == "Scan"))
    assert list(inner.node[0].input) == ["a", "b"]


def test_two_outputs_that_are_one_value_keep_a_node_each() -> None:
    body = body_after_sharing("""
    <ir_version: 8, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x, float[2] w) => (float[2] y, float[3,2] v, float[3,2] z) {
       y, v, z = Scan <num_scan_inputs = 1,
          body = step (float[2] s, float[2] n) => (float[2] t, float[2] a, float[2] b) {
          a = Mul (n, w)
          b = Mul (n, w)
          t = Add (s, a)
       }> (h, x)
    }
    """)
    assert ops(body.node) == ["Mul", "Add", "Identity"]
    assert scoping.output_names(body) == ["t", "a", "b"]


def test_random_and_unknown_nodes_are_not_shared() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 21, "local" : 1]>
        g (bool c, float[2] x) => (float[2] y) {
           y = If (c) <then_branch = a () => (float[2] p) {
                 r = RandomUniformLike <seed = 1.0> (x) q = RandomUniformLike <seed = 1.0> (x)
                 u = local.f (x) v = local.f (x) p = Sum (r, q, u, v) },
              else_branch = b () => (float[2] o) { o = Neg (x) }>
        }
        <domain: "local", opset_import: ["" : 21]> f (a) => (b) { b = Bernoulli (a) }
    """
    model = as_model(text)
    assert Session([Pass(SCHEDULES["simplify"])], None).run(model).model is model


# -- refusals ---------------------------------------------------------------------------------


def test_an_if_that_stays_is_told_where_no_control_flow_is_wanted() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 21]>
        g (bool c, float r, float[2] x) => (float[2] y) {
           y = If (c) <then_branch = a () => (float[2] p) { p = Exp (x) },
                       else_branch = b () => (float[2] q) { q = Dropout (x, r, c) }>
        }
    """
    (sentence,) = assert_refused(
        text, "condition-unknown", pipeline="optimize-no-control-flow", options={"flat": True}
    )
    assert sentence == "the branch depends on 'c', which is known only at run time"
