"""Who defines and who reads what in one graph."""

from __future__ import annotations

import onnx

from passes.ir.graph_index import OUTPUT, GraphIndex
from passes.ir.model import Model
from passes.ir.places import scopes

GRAPH = """
    <ir_version: 8, opset_import: ["" : 16]>
    g (float[2] x, bool c) => (float[2] y, float[2] b) <float[2] w = {1, 2}> {
      a = Identity (x)
      b = Identity (a)
      s = Add (b, w)
      y = If (c) <then_branch = then () => (float[2] t) { t = Add (b, s) },
                  else_branch = other () => (float[2] b) { b = Neg (s) }>
    }
"""


def test_readers_stand_in_bodies_too_and_outputs_read() -> None:
    index = GraphIndex(onnx.parser.parse_model(GRAPH).graph)
    assert index.readers["s"] == [3], "once, though both branches read it"
    assert index.readers["b"] == [2, 3, OUTPUT]
    assert "t" not in index.readers
    assert index.positions == {"a": 0, "b": 1, "s": 2, "y": 3}


def test_identities_hand_on_a_value() -> None:
    index = GraphIndex(onnx.parser.parse_model(GRAPH).graph)
    assert index.source("b") == "x"
    assert index.source("s") == "s"
    assert index.source("elsewhere") == "elsewhere"


def test_a_name_means_what_the_innermost_scope_defines() -> None:
    model = Model(onnx.parser.parse_model(GRAPH))
    (main,) = scopes(model.proto)
    then, other = main.inner(3)
    for scope, op in ((main, "Identity"), (then, "Identity"), (other, "Neg")):
        producer = model.visible_producer(scope, "b")
        assert producer is not None
        assert producer.op_type == op
    assert model.home(other, "b") is other
    assert model.home(then, "w") == main
    assert model.visible_producer(then, "w") is None, "an initializer"
    assert model.home(then, "nothing") is None
