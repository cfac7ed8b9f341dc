"""Peeling: every trip count, both ends, both kinds of loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.testing import as_model, assert_rewrite
from tests.written import changed

pytestmark = pytest.mark.sampled

LOOP = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, int64 trips) => (float[2] y, float[T,2] z, int64[T] c) {
   y, z, c = Loop <body = step (int64 i, bool go, float[2] s)
      => (bool on, float[2] t, float[2] o, int64 n) <float[2] w = {0.5, 2}> {
      on = Identity (go) at = Cast <to = 1> (i) m = Mul (s, w) t = Add (m, at)
      o = Neg (t) n = Add (i, i) }> (trips, "", h)
}
"""
WHILE = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float limit) => (float[2] y, float[T,2] z)
<bool yes = {1}> {
   y, z = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t, float[2] o) {
      t = Add (s, s) o = Neg (t) n = ReduceSum <keepdims = 0> (t) on = Less (n, limit)
   }> ("", yes, h)
}
"""
ENDS = pytest.mark.parametrize("end", ["first", "last"])


#: A Scan of a state, collected in both directions and on another axis.
SCAN = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[T,2] x) => (float[2] y, float[2,T] z, float[T,2] v) {
   y, z, v = Scan <num_scan_inputs = 1, scan_input_directions = [0],
      scan_output_axes = [1, 0], scan_output_directions = [1, 0],
      body = step (float[2] s, float[2] n) => (float[2] t, float[2] o, float[2] p)
      <float[2] w = {2, 3}> {
         m = Mul (n, w)
         t = Add (s, m)
         o = Mul (t, n)
         p = Neg (t)
      }> (h, x)
}
"""
BACKWARDS = {"scan_input_directions = [0]": "scan_input_directions = [1]"}


def of_length(length: str) -> dict[str, str]:
    """A change of `SCAN`."""
    return {"[T,2]": f"[{length},2]", "[2,T]": f"[2,{length}]"}


def peeled(
    model: ModelProto | str, end: str, *, budget: float = 60.0, **options: object
) -> ModelProto:
    said = {"peel": end, **options}
    return assert_rewrite(model, pipeline="peel", options=said, budget=budget).model


def ran(model: ModelProto, feeds: dict[str, object]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return list(session.run(None, feeds))


@ENDS
def test_every_trip_count_gives_the_same(end: str) -> None:
    before = as_model(LOOP)
    after = peeled(before, end)
    for trips in range(-1, 5):
        feeds = {"h": np.array([1, 2], np.float32), "trips": np.array(trips)}
        for one, other in zip(ran(before, feeds), ran(after, feeds), strict=True):
            np.testing.assert_array_equal(one, other)


@ENDS
@pytest.mark.parametrize("length", ["T", "1", "2", "5"])
@pytest.mark.parametrize("direction", [{}, BACKWARDS], ids=["forwards", "backwards"])
def test_a_scan_in_both_directions(end: str, length: str, direction: dict[str, str]) -> None:
    peeled(changed(SCAN, of_length(length) | direction), end)


@pytest.mark.slow
def test_a_while_has_a_first_iteration() -> None:
    before = as_model(WHILE)
    after = peeled(before, "first", budget=15)  # on some drawn limits it never ends
    assert [node.op_type for node in after.graph.node].count("Loop") == 1
    for trips in (1, 2, 5):
        limit = np.array(2.0**trips, np.float32)
        feeds = {"h": np.array([2, -1], np.float32), "limit": limit}
        for one, other in zip(ran(before, feeds), ran(after, feeds), strict=True):
            np.testing.assert_array_equal(one, other)


@ENDS
def test_weights_are_shared_by_the_iteration_and_the_loop(end: str) -> None:
    after = peeled(changed(SCAN, of_length("4")), end)
    left = next(node for node in after.graph.node if node.op_type == "Scan")
    body = next(attribute.g for attribute in left.attribute if attribute.name == "body")
    assert [tensor.name for tensor in after.graph.initializer].count("scan/w") == 1
    assert not [
        tensor for tensor in body.initializer if tensor.dims == [2] and tensor.data_type == 1
    ]


@ENDS
def test_states_that_change_their_shape_still_fail(end: str) -> None:
    """A Scan may not; the iteration that is peeled off may not either."""
    after = peeled(
        """
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] h, float[3,M] x) => (float[K] y) {
   y = Scan <num_scan_inputs = 1, body = step (float[A] s, float[B] n) => (float[C] t) {
      t = Add (s, n) }> (h, x)
}
""",
        end,
    )
    feeds = {"h": np.ones(1, np.float32), "x": np.ones((3, 2), np.float32)}
    with pytest.raises(Exception, match=r"Gather|shape"):
        ran(after, feeds)


@ENDS
def test_lengths_that_differ_still_fail(end: str) -> None:
    after = peeled(
        """
<ir_version: 10, opset_import: ["" : 21]>
g (float h, float[T] x, float[T] v) => (float y) {
   y = Scan <num_scan_inputs = 2, body = step (float s, float n, float m) => (float t) {
      a = Add (s, n) t = Add (a, m) }> (h, x, v)
}
""",
        end,
    )
    x, h = np.ones(2, np.float32), np.array(1, np.float32)
    assert ran(after, {"h": h, "x": x, "v": x})[0] == 5
    for other in (np.ones(3, np.float32), np.ones(0, np.float32)):
        with pytest.raises(Exception, match="Gather"):
            ran(after, {"h": h, "x": x, "v": other})


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 26])
@ENDS
def test_every_opset(opset: int, end: str) -> None:
    text = changed(SCAN, BACKWARDS | {'"" : 21': f'"" : {opset}'})
    if opset < 13:
        text = changed(text, {"ir_version: 10": "ir_version: 4"})
    peeled(changed(text, of_length("3")) if opset == 9 else text, end)


def test_loops_at_every_depth_are_peeled_once() -> None:
    after = peeled(
        """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h) => (float[2] y)
<int64 three = {3}> {
   y = Loop <body = outer (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go)
      t = Loop <body = inner (int64 j, bool going, float[2] a) => (bool still, float[2] b) {
         still = Identity (going) b = Add (a, a) }> (three, "", s)
   }> (three, "", h)
}
""",
        "first",
    )
    loops = [node for node in after.graph.node if node.op_type == "Loop"]
    assert len(loops) == 2  # the rest of the inner loop in the first iteration, and the outer one


def test_the_command_peels(tmp_path: Path) -> None:
    model, out = tmp_path / "loop.onnx", tmp_path / "out.onnx"
    onnx.save(as_model(LOOP), model)
    call = ["unroll", str(model), "-o", str(out), "--peel", "last", "--verify-budget", "60"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    with pytest.raises(ValueError, match="peel"):
        passes.unroll(as_model(LOOP), peel="middle")
