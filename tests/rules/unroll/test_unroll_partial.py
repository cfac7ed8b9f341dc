"""Partial unrolling: every remainder, both executors, and the order of what is collected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from typer.testing import CliRunner

import passes
from passes.__main__ import app
from passes.testing import as_model, assert_rewrite

EXPORTED = Path(__file__).parents[3] / "golden_models" / "exported"
LOOP = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] h, int64 trips) => (float[N] y, float[T,N] z, int64[T] c) {
   y, z, c = Loop <body = step (int64 i, bool go, float[N] s)
      => (bool on, float[N] t, float[N] o, int64 n)
   <float half = {0.5}, int64 two = {2}> {
      on = Identity (go) at = Cast <to = 1> (i) m = Mul (s, half) t = Add (m, at)
      o = Neg (t) n = Mul (i, two)
   }> (trips, "", h)
}
"""


def scan(length: str) -> str:
    """A Scan that reads and collects the last element first."""
    return f"""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[{length},2] x) => (float[2] y, float[2,{length}] z) {{
   y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
      scan_output_directions = [1],
      body = step (float[2] s, float[2] n) => (float[2] t, float[2] o) {{
         t = Add (s, n) o = Mul (t, n) }}> (h, x)
}}
"""


def test_quantization_annotations_are_kept_in_both_loops() -> None:
    model = as_model(LOOP)
    scale = onnx.StringStringEntryProto(key="SCALE_TENSOR", value="half")
    model.graph.node[0].attribute[0].g.quantization_annotation.add(
        tensor_name="m", quant_parameter_tensor_names=[scale]
    )
    after = passes.unroll(model, opset=21, factor=2, verify=False).model
    found = {
        annotation.tensor_name: annotation.quant_parameter_tensor_names[0].value
        for node in after.graph.node
        if node.op_type == "Loop"
        for annotation in node.attribute[0].g.quantization_annotation
    }
    assert found == dict.fromkeys(["m/it0", "m/it1", "m/rest"], "loop/half")


@pytest.mark.parametrize("factor", [1, 2, 3, 4])
def test_every_trip_count_gives_the_same(factor: int) -> None:
    before = as_model(LOOP)
    result = passes.unroll(before, opset=21, factor=factor)
    assert [node.op_type for node in result.model.graph.node].count("Loop") == 2
    runs = [
        onnxruntime.InferenceSession(model.SerializeToString()) for model in (before, result.model)
    ]
    for trips in range(-1, 10):
        feeds = {"h": np.array([1, 2, 3], np.float32), "trips": np.array(trips)}
        expected, actual = (run.run(None, feeds) for run in runs)
        for one, other in zip(expected, actual, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("length", ["T", "7"])
def test_a_scan_is_lowered_first(length: str) -> None:
    assert_rewrite(scan(length), pipeline="unroll-partial", options={"factor": 3})


def test_a_factor_above_the_trip_count_writes_everything_out() -> None:
    result = assert_rewrite(scan("3"), pipeline="unroll-partial", options={"factor": 5})
    assert "Loop" not in {node.op_type for node in result.model.graph.node}


def test_weights_are_shared_by_copies_and_rest() -> None:
    model = assert_rewrite(LOOP, pipeline="unroll-partial", options={"factor": 2}).model
    assert [tensor.name for tensor in model.graph.initializer].count("loop/half") == 1
    bodies = [node.attribute[0].g for node in model.graph.node if node.op_type == "Loop"]
    assert all("half" not in tensor.name for body in bodies for tensor in body.initializer)


def test_a_factor_below_one_is_an_error() -> None:
    with pytest.raises(ValueError, match="factor"):
        passes.unroll(as_model(LOOP), factor=0)


def test_sequences_are_carried_where_identity_takes_only_tensors() -> None:
    file = EXPORTED / "torch" / "script_list_stacked.opset13.onnx"
    result = assert_rewrite(onnx.load(file), pipeline="unroll-partial", options={"factor": 2})
    assert [node.op_type for node in result.model.graph.node].count("Loop") == 2


def test_the_command_takes_a_factor(tmp_path: Path) -> None:
    model, out = tmp_path / "loop.onnx", tmp_path / "out.onnx"
    onnx.save(as_model(LOOP), model)
    call = ["unroll", str(model), "-o", str(out), "--factor", "2", "--verify-budget", "60"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    assert [node.op_type for node in onnx.load(out).graph.node].count("Loop") == 2


def test_types_of_values_in_the_body_go_along_to_copies_and_rest() -> None:
    model = as_model(LOOP)
    body = next(
        attribute.g for attribute in model.graph.node[0].attribute if attribute.name == "body"
    )
    body.value_info.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, ["N"]))
    after = assert_rewrite(model, pipeline="unroll-partial", options={"factor": 2}).model
    loops = [node.attribute[0].g for node in after.graph.node if node.op_type == "Loop"]
    assert [[value.name for value in loop.value_info] for loop in loops] == [
        ["m/it0", "m/it1"],
        ["m/rest"],
    ]


TWO = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[T,2] x) => (float[2] y) {
   n = Neg (h)
   a = Scan <num_scan_inputs = 1, body = one (float[2] s, float[2] e) => (float[2] t) {
      t = Add (s, e) }> (n, x)
   y = Scan <num_scan_inputs = 1, body = two (float[2] s, float[2] e) => (float[2] t) {
      t = Mul (s, e) }> (a, x)
}
"""


@pytest.mark.parametrize(("path", "final"), [("main/scan_1", "a"), ("main/scan_2", "y")])
def test_only_means_the_loops_of_the_model_as_it_was_read(path: str, final: str) -> None:
    """The Scan becomes a Loop, which stands elsewhere, before it is unrolled."""
    options = {"factor": 2, "only": (path,)}
    result = assert_rewrite(TWO, pipeline="unroll-partial", options=options)
    nodes = result.model.graph.node
    assert [node.op_type for node in nodes].count("Scan") == 1
    loops = [node for node in nodes if node.op_type == "Loop"]
    assert len(loops) == 2
    assert final in loops[1].output


@pytest.mark.slow
def test_only_leaves_the_conversion_of_a_scan_8_alone() -> None:
    model = onnx.load(EXPORTED.parent / "binary" / "gru.onnx")
    result = passes.unroll(model, only=["main/scan_0"], factor=2, verify_budget=20)
    assert {"Scan"}.isdisjoint(node.op_type for node in result.model.graph.node)


def test_a_trip_count_that_follows_from_sizes_is_static() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 16]>
        g (float[3,2] x, float[2] h) => (float[2] y) <int64 axis = {0}> {
          sizes = Shape (x)
          count = Gather (sizes, axis)
          y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t)
            { on = Identity (go) t = Add (s, s) }> (count, "", h)
        }
    """
    result = assert_rewrite(text, pipeline="unroll-partial", options={"factor": 4})
    assert not any(node.op_type == "Loop" for node in result.model.graph.node)
