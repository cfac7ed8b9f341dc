"""Dequantized values whose elements are moved, and which a rewrite lets a body read."""

from __future__ import annotations

import pytest
from onnx import ModelProto

from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope as scoping
from passes.session import Session
from passes.testing import as_model, assert_rewrite
from tests.written import changed

SCAN = """
<ir_version: 10, opset_import: ["" : 21]>
g (uint8[3,T] q, float[3] h) => (float[3] y)
<float scale = {0.5}, uint8 zero = {3}> {
   d = DequantizeLinear (q, scale, zero)
   x = Transpose <perm = [1, 0]> (d)
   y = Scan <num_scan_inputs = 1, body = step (float[3] s, float[3] e) => (float[3] t) {
      t = Add (s, e) }> (h, x)
}
"""
SCALAR = """
<ir_version: 10, opset_import: ["" : 21]>
g (uint8[1] q, int64 trips) => (float[T] z)
<float scale = {0.5}, uint8 zero = {3}> {
   z = Loop <body = step (int64 i, bool go) => (bool on, float o) {
      on = Identity (go)
      d = DequantizeLinear (q, scale, zero) x = Squeeze (d) o = Identity (x)
   }> (trips, "")
}
"""
FUNCTION = """
<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
g (uint8[3,2] q, float[3] h) => (float[3] y) { y = f.steps (q, h) }
<domain: "f", opset_import: ["" : 21]>
steps (q, h) => (y) {
   scale = Constant <value = float {0.5}> ()
   zero = Constant <value = uint8 {3}> ()
   d = DequantizeLinear (q, scale, zero)
   x = Transpose <perm = [1, 0]> (d)
   y = Scan <num_scan_inputs = 1, body = step (float[3] s, float[3] e) => (float[3] t) {
      t = Add (s, e) }> (h, x)
}
"""


def lowered(text: str, pipeline: str = "lower", **options: object) -> ModelProto:
    """Rewritten, and run in onnxruntime, too, which would crash."""
    return assert_rewrite(as_model(text), pipeline=pipeline, options=options).model


def gathered(model: ModelProto) -> list[str]:
    """What is read as the only row of a list."""
    places = list(scoping.walk_model(model))
    rows = {
        place.node.output[0]: place.node for place in places if place.node.op_type == "Unsqueeze"
    }
    lists = (place.node.input[0] for place in places if place.node.op_type == "Gather")
    return [rows[name].input[0] for name in lists if name in rows]


def test_a_loop_reads_it_behind_a_gather() -> None:
    assert gathered(lowered(SCAN)) == ["x"]


def test_what_is_not_moved_is_read_as_it_is() -> None:
    assert gathered(lowered(changed(SCAN, {"Transpose <perm = [1, 0]>": "Tanh"}))) == []


def test_what_bodies_read_before_stays() -> None:
    """There, onnxruntime crashes anyway."""
    captured = changed(
        SCAN, {"t = Add (s, e)": "m = ReduceSum <keepdims = 0> (x) n = Add (s, e) t = Add (m, n)"}
    )
    before = as_model(captured)
    result = Session([Pass(SCHEDULES["lower"], 21)], None).run(before)
    assert gathered(result.model) == []


@pytest.mark.parametrize("end", ["first", "last"])
def test_a_branch_reads_scalars_too(end: str) -> None:
    assert len(gathered(lowered(SCALAR, "peel", peel=end))) == 1


def test_in_a_function() -> None:
    assert gathered(lowered(FUNCTION)) == ["x"]
