"""Axes of size 1 that are put in and taken out again."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from passes.bodies.moving import without_pairs
from passes.testing import as_model


def model(nodes: str) -> ModelProto:
    return as_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,4] x) => (float[N,4] y) <int64[1] one = {{1}}, int64[1] two = {{2}}> {{
        {nodes} }}"""
    )


def shortened(nodes: str) -> list[str]:
    """The ops that are left; what they answer must be the same."""
    before, after = model(nodes), model(nodes)
    del after.graph.node[:]
    after.graph.node.extend(without_pairs(before.graph.node, ["y"]))
    x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
    answers = [ReferenceEvaluator(one).run(None, {"x": x})[0] for one in (before, after)]
    np.testing.assert_array_equal(*answers)
    return [node.op_type for node in after.graph.node]


@pytest.mark.parametrize(
    ("nodes", "left"),
    [
        ("a = Unsqueeze (x, one) b = Squeeze (a, one) y = Neg (b)", ["Neg"]),
        ("a = Unsqueeze (x, one) b = Relu (a) c = Squeeze (b, one) y = Neg (c)", ["Relu", "Neg"]),
        (
            "a = Unsqueeze (x, one) b = Squeeze (a, one) c = Unsqueeze (b, two) d = Relu (c)"
            " e = Squeeze (d, two) y = Add (e, b)",
            ["Relu", "Add"],
        ),
        (
            "a = Unsqueeze (x, one) b = Relu (a) c = Tanh (b) d = Squeeze (c, one) y = Add (d, x)",
            ["Relu", "Tanh", "Add"],
        ),
    ],
)
def test_a_pair_goes(nodes: str, left: list[str]) -> None:
    assert shortened(nodes) == left


@pytest.mark.parametrize(
    "nodes",
    [
        # somebody else reads what is in between
        "a = Unsqueeze (x, one) b = Relu (a) c = Squeeze (b, one) d = ReduceSum (b) y = Add (c, d)",
        # the axes of the outcome are the model's business
        "a = Unsqueeze (x, one) y = Squeeze (a, one)",
        "a = Unsqueeze (x, one) b = Softmax <axis = 0> (a) c = Squeeze (b, one) y = Neg (c)",
        "a = Unsqueeze (x, two) b = Transpose <perm = [0, 2, 1]> (a) c = Squeeze (b, one)"
        " y = Neg (c)",
    ],
)
def test_other_nodes_stay(nodes: str) -> None:
    assert shortened(nodes) == [node.op_type for node in model(nodes).graph.node]


def test_of_a_node_between_only_the_second_output_is_read() -> None:
    proto = as_model("""<ir_version: 8, opset_import: ["" : 17]>
        g (float[3] x, int64[1] axes, int64[1] k) => (int64[3] y) {
            a = Unsqueeze (x, axes)  v, i = TopK (a, k)  z = Squeeze (i, axes)  y = Neg (z) }""")
    left = without_pairs(proto.graph.node, ["y"])
    assert [node.op_type for node in left] == ["Unsqueeze", "TopK", "Squeeze", "Neg"]
