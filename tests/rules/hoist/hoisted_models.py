"""Models for the tests of hoist-invariants, and their outcomes."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import GraphProto, ModelProto, NodeProto

from passes.ir import scope
from passes.testing import as_model, assert_rewrite


def scan_of(nodes: str, weight: str = "", trips: int = 3) -> ModelProto:
    """A Scan with this body."""
    return as_model(f"""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2,2] a, float[2] h, float[{trips},2] x) => (float[2] y) {{
   y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) <{weight}> {{
      {nodes}
   }}> (h, x)
}}
""")


#: A Loop that reads the same row of a table in each of its n iterations.
LOOKING_UP = """
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[4,2] table, int64 row, float[2] h) => (float[2] y, float[T,2] z) {
   y, z = Loop <body = step (int64 i, bool go, float[2] s)
      => (bool on, float[2] t, float[2] o) {
      on = Identity (go)
      r = Gather (table, row)
      o = Identity (r)
      t = Identity (s)
   }> (n, "", h)
}
"""


def hoisted(model: ModelProto | str, **options: object) -> ModelProto:
    return assert_rewrite(model, pipeline="hoist-invariants", options=options).model


def loop_in(graph: GraphProto) -> NodeProto:
    return next(node for node in graph.node if node.op_type in ("Loop", "Scan"))


def body_of(node: NodeProto) -> GraphProto:
    return next(attribute.g for attribute in node.attribute if attribute.name == "body")


def ops(graph: GraphProto) -> list[str]:
    return [node.op_type for node in graph.node]


def count(model: ModelProto, op_type: str) -> int:
    return sum(place.node.op_type == op_type for place in scope.walk_model(model))


def run(model: ModelProto, **feeds: object) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {name: np.asarray(value) for name, value in feeds.items()})
