"""lower-scan where the golden models do not reach: functions, captures, which loops, guards."""

from __future__ import annotations

import numpy as np
import onnx
from in_both_executors import assert_both_fail

import passes
from passes.testing import assert_rewrite

TWO = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] h, float[T,2] x, float[2] w) => (float[2] y, float[T,2] z) {
       y = Scan <num_scan_inputs = 1, body = first (float[2] s, float[2] n) => (float[2] t) {
          p = Mul (n, w) t = Add (s, p) }> (h, x)
       v = Scan <num_scan_inputs = 1, body = second (float[2] n) => (float[2] o) {
          o = Sub (n, y) }> (x)
       z = Identity (v) }"""

IN_FUNCTION = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    g (float[2] h, float[T,2] x) => (float[2] y, float[2,T] z) { y, z = own.f (h, x) }
    <domain: "own", opset_import: ["" : 17]>
    f (a, b) => (c, d) {
       c, d = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
          body = step (float[2] s, float[2] n) => (float[2] t, float[2] o) {
             t = Add (s, n) o = Mul (t, s) }> (a, b) }"""


def ops(model: onnx.ModelProto) -> list[str]:
    graphs = [model.graph, *model.functions]
    return [node.op_type for graph in graphs for node in graph.node]


def test_every_scan_becomes_a_loop_with_its_captures() -> None:
    after = assert_rewrite(TWO, pipeline="lower").model
    assert ops(after).count("Loop") == 2
    assert "Scan" not in ops(after)


def test_inside_a_function() -> None:
    after = assert_rewrite(IN_FUNCTION, pipeline="lower").model
    assert "Scan" not in ops(after)
    assert "Loop" in [node.op_type for node in after.functions[0].node]


def test_only_the_loops_that_are_named() -> None:
    model = onnx.parser.parse_model(TWO)
    after = passes.lower(model, only=["main/scan_1"]).model
    assert ops(after).count("Loop") == 1
    assert ops(after).count("Scan") == 1


def test_unequal_lengths_fail_as_in_the_scan() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[T,2] a, float[U,2] b) => (float[V,2] z) {
           z = Scan <num_scan_inputs = 2, body = step (float[2] m, float[2] n) => (float[2] o) {
              o = Add (m, n) }> (a, b) }"""
    after = assert_rewrite(text, pipeline="lower").model
    feeds = {"a": np.ones((3, 2), np.float32), "b": np.ones((4, 2), np.float32)}
    assert_both_fail(after, feeds)
