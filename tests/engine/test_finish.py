"""What is written has nothing that nothing reads, and names for its new nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import GraphProto, ModelProto, NodeProto

import passes
from passes.ir import scope
from passes.testing import as_model
from tests.written import changed

GRU = Path(__file__).parents[2] / "golden_models" / "binary" / "gru.onnx"

# `vain` and `unused` are read by nobody in the model as it is given, either.
LOOP = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 n, bool c) => (float[2] y) <int64 trips = {2}, float[1] vain = {1}> {
   unused = Neg (h)
   start = Abs (h)
   [decoder] last = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t)
      <float[2] w = {1, 2}> {
      on = Identity (go) kind = Shape (s) t = Add (s, w) }> (trips, "", start)
   y = Neg (last)
}
"""


def nodes_of(model: ModelProto) -> list[NodeProto]:
    return [place.node for place in scope.walk_model(model)]


def graphs_of(model: ModelProto) -> Iterator[scope.Owner]:
    for _, owner in scope.owners(model):
        yield from scope.graphs_below(owner)


def unread(model: ModelProto) -> set[str]:
    """What nothing reads."""
    found: set[str] = set()
    for graph in graphs_of(model):
        made = {name for node in graph.node for name in node.output if name}
        if isinstance(graph, GraphProto):
            made |= scope.initializer_names(graph)
        found |= made - scope.all_reads(graph.node) - set(scope.output_names(graph))
    return found


def test_new_nodes_are_named_by_the_loop_and_their_operator() -> None:
    model = passes.unroll(as_model(LOOP), verify=False).model
    named = {node.output[0]: node.name for node in model.graph.node}
    assert named == {
        "unused": "",
        "start": "",
        "t/it0": "t/it0",
        "last": "decoder/add",
        "y": "",
    }


@pytest.mark.parametrize("command", [passes.upgrade, passes.lower, passes.optimize])
def test_names_are_there_are_unique_and_the_same_each_time(command: object) -> None:
    assert callable(command)
    once, again = (command(GRU, verify=False).model for _ in range(2))
    names = [node.name for node in nodes_of(once)]
    given = {node.output[0] for node in nodes_of(onnx.load(GRU)) if not node.name}
    unnamed = {node.output[0] for node in nodes_of(once) if not node.name}
    assert unnamed <= given
    assert len(set(filter(None, names))) == len(list(filter(None, names)))
    assert names == [node.name for node in nodes_of(again)]


def test_what_is_read_no_more_goes_and_what_never_was_stays() -> None:
    """The trip count, and the copies of a Shape; not what the model itself has in vain."""
    before = as_model(LOOP)
    after = passes.unroll(before, verify=False).model
    assert unread(before) == {"unused", "vain", "kind"}
    assert unread(after) == {"unused", "vain"}
    assert {tensor.name for tensor in after.graph.initializer} >= {"vain"}


def test_what_may_fail_stays() -> None:
    """The outcome is to fail where the model does."""
    text = changed(LOOP, {"kind = Shape (s)": "kind = Reshape (s, n1) n1 = Identity (n)"})
    text = changed(text, {"kind = Reshape (s, n1) n1 = Identity (n)": "kind = Gather (s, n)"})
    after = passes.unroll(as_model(text), verify=False).model
    assert [node.op_type for node in after.graph.node].count("Gather") == 2


def test_what_never_was_read_stays_beside_a_name_that_is() -> None:
    """Another body reads a value of the same name."""
    text = """<ir_version: 9, opset_import: ["" : 19]>
    g (float[N] x, bool go, int64 m) => (float[N] y, float[N] z) {
        three = Constant <value_int = 3> ()
        y = Loop (three, "", x) <body = one (int64 i, bool c, float[N] s) => (bool c1, float[N] a) {
            c1 = Identity (c)
            a = Add (s, s)
        }>
        z = Loop (m, go, x) <body = two (int64 i, bool c, float[N] s) => (bool c1, float[N] b) {
            c1 = Identity (c)
            a = Relu (s)
            b = Identity (s)
        }>
    }"""
    after = passes.unroll(as_model(text), verify=False).model
    assert [node.op_type for node in nodes_of(after)].count("Relu") == 1


def test_what_says_how_a_constant_is_quantized_goes_with_it() -> None:
    """Its scale has no other reader."""
    before = as_model("""<ir_version: 9, opset_import: ["" : 19]>
    g (float[2] x, bool c) => (float[2] y) {
        y, unread = If (c) <
            then_branch = a () => (float[2] p, float[2] q) <float[2] w = {1, 2}, float s = {3}> {
                p = Neg (x)
                q = Add (p, w)
            }, else_branch = b () => (float[2] r, float[2] t) {
                r = Abs (x)
                t = Identity (r)
            }>
    }""")
    branch = next(graph for _, graph in scope.subgraphs(before.graph.node[0]))
    said = branch.quantization_annotation.add(tensor_name="w")
    said.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="s")
    after = passes.simplify(before, verify=False).model
    branch = next(graph for _, graph in scope.subgraphs(after.graph.node[0]))
    assert ([node.op_type for node in branch.node], len(branch.output)) == (["Neg"], 1)
    assert not branch.initializer
    assert not branch.quantization_annotation
