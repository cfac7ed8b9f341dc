"""Names and scopes: what a name means where, what bodies capture, how names are changed."""

from __future__ import annotations

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from passes.ir import scope
from passes.ir.names import Names
from passes.ir.operators import is_onnx_domain

#: An If in a Loop body: `w` is captured through two bodies, `x` is hidden by an input.
NESTED = """
<ir_version: 8, opset_import: ["" : 16]>
g (int64 n, bool c, float[2] x, float[2] w) => (float[2] y) {
  y = Loop <body = step (int64 i, bool go, float[2] x) => (bool on, float[2] next) {
    on = Identity (go)
    next = If (on) <
      then_branch = yes () => (float[2] sum) { t = Mul (x, w) sum = Add (t, x) },
      else_branch = no () => (float[2] same) { t = Neg (x) same = Neg (t) }
    >
  }> (n, c, x)
}
"""


def parsed(text: str) -> ModelProto:
    return onnx.parser.parse_model(text)


def body_of(node: NodeProto, name: str = "body") -> GraphProto:
    return dict(scope.subgraphs(node))[name]


def test_a_body_captures_what_it_reads_and_does_not_define() -> None:
    loop = parsed(NESTED).graph.node[0]
    body = body_of(loop)
    branch = body_of(body.node[1], "then_branch")
    assert scope.captures(branch) == ["x", "w"]
    assert scope.captures(body) == ["w"], "its own input hides the outer x"


def test_a_node_reads_its_inputs_then_what_its_bodies_capture() -> None:
    loop = parsed(NESTED).graph.node[0]
    assert scope.free_names(loop) == ["n", "c", "x", "w"]


def test_an_omitted_input_is_no_name() -> None:
    assert scope.free_names(helper.make_node("Clip", ["x", "", "hi"], ["y"])) == ["x", "hi"]


def test_a_body_output_may_be_an_outer_value() -> None:
    graph = onnx.parser.parse_graph("b () => (float outside) { }")
    assert scope.captures(graph) == ["outside"]


def test_initializers_of_a_body_are_its_own_sparse_ones_too() -> None:
    graph = onnx.parser.parse_graph(
        "b (float x) => (float y) <float w = {1}> { t = Add (x, w) y = Add (t, s) }"
    )
    assert scope.captures(graph) == ["s"]
    sparse = graph.sparse_initializer.add(dims=[1])
    sparse.values.name = "s"
    assert scope.captures(graph) == []
    assert scope.initializer_names(graph) == {"w", "s"}


def test_graphs_in_a_list_are_bodies_too() -> None:
    branch = onnx.parser.parse_graph("b () => (float y) { y = Neg (outer) }")
    node = helper.make_node("Switch", ["x"], ["y"], domain="local", cases=[branch, branch])
    assert [name for name, _ in scope.subgraphs(node)] == ["cases[0]", "cases[1]"]
    assert scope.free_names(node) == ["x", "outer"]


def test_functions_capture_nothing_and_have_no_initializers() -> None:
    model = parsed("""
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float x) => (float y) { y = local.f (x) }
        <domain: "local", opset_import: ["" : 16]> f (a) => (b) { b = Neg (a) }
    """)
    _, function = scope.scopes(model)
    assert function.path == "local.f"
    assert list(function.chain()) == [function], "nothing encloses a function"
    assert scope.initializer_names(function.owner) == set()
    assert scope.defined(function.owner) == {"a", "b"}


def test_overloads_are_told_apart() -> None:
    model = parsed("""
        <ir_version: 10, opset_import: ["" : 16, "local" : 1]>
        g (float x) => (float y) { y = Neg (x) }
        <domain: "local", overload: "one", opset_import: ["" : 16]> f (a) => (b) { b = Neg (a) }
        <domain: "local", overload: "two", opset_import: ["" : 16]> f (a) => (b) { b = Abs (a) }
    """)
    assert [scope.path for scope in scope.scopes(model)] == ["main", "local.f:one", "local.f:two"]


def test_walk_gives_inner_nodes_first_and_their_paths() -> None:
    assert [place.path for place in scope.walk_model(parsed(NESTED))] == [
        "main/loop_0.body/identity_0",
        "main/loop_0.body/if_1.then_branch/mul_0",
        "main/loop_0.body/if_1.then_branch/add_1",
        "main/loop_0.body/if_1.else_branch/neg_0",
        "main/loop_0.body/if_1.else_branch/neg_1",
        "main/loop_0.body/if_1",
        "main/loop_0",
    ]


def test_nodes_of_the_same_name_have_one_path_but_two_keys() -> None:
    model = parsed(NESTED)
    model.graph.node.append(model.graph.node[0])
    for node in model.graph.node:
        node.name = "twin"
    branches = [found for found in scope.walk_model(model) if found.node.op_type == "Mul"]
    assert {found.path for found in branches} == {"main/twin.body/if_1.then_branch/mul_0"}
    assert [found.scope.key for found in branches] == [
        (0, 0, "body", 1, "then_branch"),
        (0, 1, "body", 1, "then_branch"),
    ]


def test_the_chain_leads_outward() -> None:
    (inner,) = [found for found in scope.walk_model(parsed(NESTED)) if found.node.op_type == "Mul"]
    assert [found.path for found in inner.scope.chain()] == [
        "main/loop_0.body/if_1.then_branch",
        "main/loop_0.body",
        "main",
    ]


def test_rename_free_goes_through_bodies_and_stops_where_the_name_is_hidden() -> None:
    loop = parsed(NESTED).graph.node[0]
    scope.rename_free(loop, {"w": "weight", "x": "start"})
    assert list(loop.input) == ["n", "c", "start"]
    branch = body_of(body_of(loop).node[1], "then_branch")
    assert list(branch.node[0].input) == ["x", "weight"], "this x is the body's own"
    assert scope.free_names(loop) == ["n", "c", "start", "weight"]


def test_rename_free_of_nothing_changes_nothing() -> None:
    loop = parsed(NESTED).graph.node[0]
    before = loop.SerializeToString()
    scope.rename_free(loop, {})
    scope.rename_free(loop, {"t": "no", "next": "no", "on": "no"})
    assert loop.SerializeToString() == before, "what bodies define is not free"


def test_rename_captures_reaches_the_outputs() -> None:
    graph = onnx.parser.parse_graph("b () => (float outside) { }")
    scope.rename_captures(graph, {"outside": "elsewhere"})
    assert scope.output_names(graph) == ["elsewhere"]


def test_rename_captures_reaches_quantization_annotations() -> None:
    graph = onnx.parser.parse_graph("b () => (float y) { y = Neg (outside) }")
    note = graph.quantization_annotation.add(tensor_name="outside")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    scope.rename_captures(graph, {"outside": "elsewhere", "scale": "factor"})
    assert note.tensor_name == "elsewhere"
    assert note.quant_parameter_tensor_names[0].value == "factor"


def test_rename_all_gives_every_definition_a_new_name_at_any_depth() -> None:
    body = body_of(parsed(NESTED).graph.node[0])
    before = scope.all_names([body])
    scope.rename_all(body, Names(before).fresh)
    assert scope.captures(body) == ["w"], "captured names stay"
    assert scope.input_names(body) == ["i_1", "go_1", "x_1"]
    first, second = (body_of(body.node[1], name) for name in ("then_branch", "else_branch"))
    assert scope.captures(first) == ["x_1", "w"]
    assert scope.defined(first).isdisjoint(scope.defined(second)), "siblings shared the name t"
    assert before & scope.all_names([body]) == {"w"}


def test_rename_all_takes_everything_along_that_names_a_value() -> None:
    graph = onnx.parser.parse_graph(
        "b (float x) => (float y) <float[1] w = {1}, float t> { t = Add (x, w) y = Add (t, s) }"
    )
    sparse = graph.sparse_initializer.add(dims=[1])
    sparse.values.name = "s"
    note = graph.quantization_annotation.add(tensor_name="t")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    scope.rename_all(graph, lambda name: f"{name}_new")
    assert [value.name for value in graph.value_info] == ["t_new"]
    assert [tensor.name for tensor in graph.initializer] == ["w_new"]
    assert sparse.values.name == "s_new"
    assert note.tensor_name == "t_new"
    assert note.quant_parameter_tensor_names[0].value == "w_new"
    assert scope.captures(graph) == []


def test_rename_all_asks_for_names_in_an_order_that_does_not_depend_on_them() -> None:
    def order(text: str) -> list[str]:
        asked: list[str] = []
        scope.rename_all(onnx.parser.parse_graph(text), lambda name: asked.append(name) or name)
        return asked

    assert order("b (float a, float b) => (float c) { d = Add (a, b) c = Neg (d) }") == list("abdc")
    assert order("b (float z, float y) => (float x) { w = Add (z, y) x = Neg (w) }") == list("zywx")


def test_all_names_counts_every_depth_and_what_only_a_value_info_says() -> None:
    model = parsed(NESTED)
    body = body_of(model.graph.node[0])
    body.value_info.append(helper.make_tensor_value_info("stale", TensorProto.INT8, [9]))
    names = scope.all_names([model.graph])
    assert names == {*"ncxwyit", "go", "on", "next", "sum", "same", "stale"}
    assert Names(names).fresh("stale") == "stale_1", "it would get the wrong type"


def test_thirty_bodies_deep() -> None:
    text = "float[2] y0) { y0 = Add (x, w) }"
    for depth in range(1, 30):
        text = f"float[2] y{depth}) {{ y{depth} = If (c) <then_branch = b () => ({text}"
        text += ", else_branch = e () => (float[2] z) { z = Neg (w) }>}"
    model = parsed(
        f'<ir_version: 8, opset_import: ["" : 16]> g (bool c, float[2] x, float[2] w) => ({text}'
    )
    node = model.graph.node[0]
    assert scope.free_names(node) == ["c", "x", "w"]
    scope.rename_free(node, {"x": "deep"})
    assert scope.free_names(node) == ["c", "deep", "w"]
    deepest = next(scope.walk_model(model))
    assert deepest.path.count("then_branch") == 29
    assert list(deepest.node.input) == ["deep", "w"]


def test_the_standard_domain_has_two_spellings() -> None:
    assert [is_onnx_domain(one) for one in ("", "ai.onnx", "ai.onnx.ml")] == [
        True,
        True,
        False,
    ]


def test_names_are_never_given_twice() -> None:
    names = Names(["a", "a_1"])
    assert [names.fresh("a"), names.fresh("a"), names.fresh("b"), names.fresh("b")] == [
        "a_2",
        "a_3",
        "b",
        "b_1",
    ]
    assert names.fresh("") != names.fresh("")
