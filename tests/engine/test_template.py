"""Nodes that differ in their names only: the rule is asked once, its template does the rest."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from passes.converters.opset import considers, rewrite
from passes.engine.rewriting import Engine
from passes.engine.rounds import Round
from passes.ir.model import Model
from passes.rule import Edit, Filled, Rule, Site, Template, Templated

NEGATED = """
<ir_version: 8, opset_import: ["" : 17]>
g (bool c, float[2] x) => (float[2] y, float[2] z) {
  one = Neg <slope = 1.0> (x)
  two = Neg <slope = 1.0> (one)
  y = Neg <slope = 2.0> (two)
  z = If (c) <then_branch = a () => (float[2] p) { p = Neg <slope = 1.0> (y) },
              else_branch = b () => (float[2] q) { q = Neg <slope = 1.0> (x) }>
}
"""


def minus(site: Site) -> TensorProto:
    """One -1 for each graph."""
    scale = next(attribute.f for attribute in site.node.attribute)
    return numpy_helper.from_array(np.array([-scale], np.float32), site.fresh("minus"))


class Product:
    """Neg as a product with a constant of the graph; counts how often it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, site: Site) -> Edit:
        self.asked.append(site.path)
        tensor = minus(site)
        node = helper.make_node("Mul", [site.node.input[0], tensor.name], site.node.output)
        template = Template("Mul", (), 1, (0, minus), 1, False, "as a product", True)
        return Templated((node,), (tensor,), note="as a product", template=template)


def applied(rule: Product) -> Round:
    rules = [Rule("toy", rule, lambda node, opset, target: node.op_type == "Neg")]
    return Engine(rules).round(Model(onnx.parser.parse_model(NEGATED)))


def test_the_rule_is_asked_once_for_nodes_that_are_alike() -> None:
    rule = Product()
    outcome = applied(rule)
    assert rule.asked == ["main/neg_0", "main/neg_2"]
    assert [rewrite.place.path for rewrite in outcome.rewritten] == [
        "main/neg_0",
        "main/neg_1",
        "main/neg_2",
        "main/if_3.then_branch/neg_0",
        "main/if_3.else_branch/neg_0",
    ]


def test_each_graph_gets_the_constants_once() -> None:
    graph = applied(Product()).proto.graph
    values = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in graph.initializer}
    assert sorted(values.values()) == [[-2.0], [-1.0]]
    read = [values[node.input[1]] for node in graph.node[:3]]
    assert read == [[-1.0], [-1.0], [-2.0]]
    branches = [attribute.g for attribute in graph.node[3].attribute]
    assert [len(branch.initializer) for branch in branches] == [1, 1]
    assert len({branch.initializer[0].name for branch in branches} | set(values)) == 4


def test_the_record_of_each_says_what_took_its_place() -> None:
    outcome = applied(Product())
    second = outcome.rewritten[1]
    assert isinstance(second.written, Filled)
    assert second.place.node.op_type == "Neg", "as it was"
    (node,) = second.edit.nodes
    assert node == outcome.proto.graph.node[1]
    assert [tensor.name for tensor in second.edit.initializers] == [node.input[1]]


UPSAMPLES = """
<ir_version: 4, opset_import: ["" : 8]>
g (float[1,1,2,2] x) => (float[1,1,2,2] z, float[1,1,4,4] w) {
  y = Upsample <scales = [1.0, 1.0, 1.0, 1.0]> (x)
  z = Upsample <scales = [1.0, 1.0, 1.0, 1.0]> (y)
  w = Upsample <scales = [1.0, 1.0, 2.0, 2.0]> (z)
}
"""


def converted(text: str, target: int) -> Round:
    model: ModelProto = onnx.parser.parse_model(text)
    return Engine([Rule("opset", rewrite, considers)], target).round(Model(model))


def test_conversions_share_a_template_where_attributes_are_equal() -> None:
    outcome = converted(UPSAMPLES, 9)
    nodes: list[NodeProto] = list(outcome.proto.graph.node)
    first, same, other = (rewrite.written for rewrite in outcome.rewritten)
    assert isinstance(first, Filled)
    assert isinstance(other, Filled)
    assert first is same
    assert first is not other
    assert nodes[0].input[1] == nodes[1].input[1] != nodes[2].input[1]
    assert [list(node.output) for node in nodes] == [["y"], ["z"], ["w"]]


def test_a_template_leaves_an_omitted_input_omitted() -> None:
    template = Template("Add", (), 2, (1, ""), 1, True, "", True)
    node = helper.make_node("Sub", ["a", "b"], ["c", "d"], name="kept")
    Filled(template, (1, ""), ()).write(node)
    assert node == helper.make_node("Add", ["b", ""], ["c"], name="kept")


def test_what_rests_on_a_type_is_asked_for_each_node() -> None:
    """The bounds of Clip have the type of its input."""
    text = """
        <ir_version: 8, opset_import: ["" : 10]>
        g (float[2] x, double[2] y) => (float[2] p, double[2] q) {
          p = Clip <min = 0.0, max = 1.0> (x)
          q = Clip <min = 0.0, max = 1.0> (y)
        }
    """
    outcome = converted(text, 11)
    assert all(isinstance(rewrite.written, Edit) for rewrite in outcome.rewritten)
    types = {tensor.name: tensor.data_type for tensor in outcome.proto.graph.initializer}
    assert [types[node.input[1]] for node in outcome.proto.graph.node] == [1, 11]
