"""Unrolling where ONNX text cannot say it, and what holds for every unrolled loop."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

import passes
from passes.ir.draft import ITERATION_KEY
from passes.testing import as_model, assert_refused, assert_rewrite
from tests.written import changed


def scan_of(weight: str, nodes: str) -> ModelProto:
    return as_model(f"""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[3,2] x) => (float[2] y) {{
   y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) {weight} {{
      {nodes}
   }}> (h, x)
}}
""")


def body_of(model: ModelProto) -> GraphProto:
    return next(
        attribute.g for attribute in model.graph.node[0].attribute if attribute.name == "body"
    )


def unrolled(model: ModelProto | str, **options: object) -> ModelProto:
    return assert_rewrite(model, pipeline="unroll", options=options).model


def iteration_of(node: NodeProto) -> str:
    return next((entry.value for entry in node.metadata_props if entry.key == ITERATION_KEY), "")


def test_weights_are_shared_whether_initializers_or_nodes() -> None:
    model = scan_of(
        "<float[2] w = {2, 3}>",
        "c = Constant <value_floats = [4.0, 5.0]> () m = Mul (n, w) a = Add (s, m) t = Mul (a, c)",
    )
    after = unrolled(model)
    weights = [
        tensor for tensor in after.graph.initializer if tensor.data_type == TensorProto.FLOAT
    ]
    assert sorted(weight.name for weight in weights) == ["scan/c", "scan/w"]
    assert {node.op_type for node in after.graph.node} == {"Split", "Squeeze", "Mul", "Add"}


def test_nodes_say_their_iteration_and_keep_name_and_documentation() -> None:
    model = scan_of("", "t = Add (s, n)")
    add = body_of(model).node[0]
    add.name, add.doc_string = "sum", "adds"
    adds = [node for node in unrolled(model).graph.node if node.op_type == "Add"]
    assert [node.name for node in adds] == ["sum/it0", "sum/it1", "sum/it2"]
    assert [iteration_of(node) for node in adds] == ["it0", "it1", "it2"]
    assert {node.doc_string for node in adds} == {"adds"}


def test_types_of_values_go_along_but_not_symbols_of_the_body() -> None:
    model = scan_of("", "m = Mul (n, n) t = Add (s, m)")
    value = helper.make_tensor_value_info("m", TensorProto.FLOAT, ["in_body"])
    body_of(model).value_info.append(value)
    infos = {value.name: value for value in unrolled(model).graph.value_info}
    assert set(infos) == {"m/it0", "m/it1", "m/it2"}
    assert not infos["m/it0"].type.tensor_type.shape.dim[0].dim_param


def test_a_sparse_weight_stays_sparse_and_is_shared() -> None:
    model = scan_of("", "m = Mul (n, w) t = Add (s, m)")
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [2.0])
    indices = helper.make_tensor("at", TensorProto.INT64, [1], [1])
    body_of(model).sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    after = unrolled(model)
    assert [node.op_type for node in after.graph.node].count("Constant") == 1


def test_quantization_annotations_follow_their_values() -> None:
    model = scan_of("<float[2] w = {2, 3}, float scale = {1}>", "m = Mul (n, w) t = Add (s, m)")
    for name in ("w", "m"):
        entry = onnx.StringStringEntryProto(key="SCALE_TENSOR", value="scale")
        body_of(model).quantization_annotation.add(
            tensor_name=name, quant_parameter_tensor_names=[entry]
        )
    graph = unrolled(model).graph
    said = {
        annotation.tensor_name: annotation.quant_parameter_tensor_names[0].value
        for annotation in graph.quantization_annotation
    }
    assert said == dict.fromkeys(["scan/w", "m/it0", "m/it1", "m/it2"], "scan/scale")
    assert "scan/scale" in {tensor.name for tensor in graph.initializer}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "uint64", "float16", "bfloat16"])
def test_every_type_is_read_and_collected(dtype: str) -> None:
    text = """
<ir_version: 10, opset_import: ["" : 21]>
g (TYPE[2,3] x) => (TYPE[3,2] z) {
   z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_directions = [1],
      body = step (TYPE[2] n) => (TYPE[2] o) { o = Identity (n) }> (x)
}
"""
    unrolled(changed(text, {"TYPE": dtype}))


@pytest.mark.parametrize("opset", [9, 11, 13, 18, 21, 26])
def test_every_opset_is_spelled(opset: int) -> None:
    text = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[3,2] x) => (float[2] y, float[3,2] z) {
   y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1],
      body = step (float[2] s, float[2] n) => (float[2] t, float[2] o) {
         t = Add (s, n)
         o = Mul (t, n)
      }> (h, x)
}
"""
    ir_version = f"ir_version: {4 if opset < 13 else 10}"
    unrolled(changed(text, {"ir_version: 10": ir_version, '"" : 21': f'"" : {opset}'}))


def test_lengths_that_differ_still_fail() -> None:
    after = unrolled("""
<ir_version: 10, opset_import: ["" : 21]>
g (float h, float[2] x, float[T] v) => (float y) {
   y = Scan <num_scan_inputs = 2, body = step (float s, float n, float m) => (float t) {
      t = Add (s, n) }> (h, x, v)
}
""")
    session = onnxruntime.InferenceSession(after.SerializeToString())
    feeds = {"h": np.array(1, np.float32), "x": np.ones(2, np.float32), "v": np.ones(2, np.float32)}
    assert session.run(None, feeds)[0] == 3
    with pytest.raises(Exception, match="Gather"):
        session.run(None, feeds | {"v": np.ones(3, np.float32)})


def test_a_loop_in_a_branch_is_unrolled_there() -> None:
    after = unrolled("""
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, bool which) => (float[2] y) {
   y = If (which) <
      then_branch = yes () => (float[2] a) <int64 two = {2}> {
         a = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t)
            <float[2] w = {2, 3}> { on = Identity (go) t = Mul (s, w) }> (two, "", h) },
      else_branch = no () => (float[2] b) { b = Neg (h) }>
}
""")
    branch = after.graph.node[0].attribute[0].g
    assert [node.op_type for node in branch.node] == ["Mul", "Mul"]


def test_a_refusal_says_the_numbers_and_what_would_fit() -> None:
    model = scan_of("", "a = Add (s, n) t = Neg (a)")
    (sentence,) = assert_refused(
        model, "too-many-nodes", pipeline="unroll", options={"max_nodes": 8}
    )
    assert sentence == (
        "3 iterations of 3 nodes are 9; at most 8 are allowed; 2 iterations would fit"
    )


def test_the_budget_holds_for_all_loops_and_rounds_together() -> None:
    text = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h) => (float[2] y)
<int64 three = {3}> {
   y = Loop <body = outer (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go)
      trips = Add (i, three)
      t = Loop <body = inner (int64 j, bool going, float[2] a) => (bool still, float[2] b) {
         still = Identity (going) b = Add (a, a) }> (trips, "", s)
   }> (three, "", h)
}
"""
    result = assert_rewrite(text, pipeline="unroll", options={"max_nodes": 16})
    assert [record.code for record in result.report.refusals] == ["too-many-nodes"]
    assert "of which other loops take" in result.report.refusals[0].sentence
    assert not assert_rewrite(text, pipeline="unroll").report.refusals


def test_random_numbers_of_a_called_function_are_found() -> None:
    assert_refused(
        """
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2] h) => (float[2] y)
<int64 two = {2}> {
   y = Loop <body = step (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go) t = local.noise (s) }> (two, "", h)
}
<domain: "local", opset_import: ["" : 21]>
noise (x) => (y) { y = RandomNormalLike (x) }
""",
        "random",
        pipeline="unroll",
    )


def test_what_could_fail_is_not_dropped_though_nobody_reads_it() -> None:
    body = "at = Cast <to = 7> (n) unread = Gather (n, at) idle = Neg (n) t = Add (s, n)"
    model = scan_of("", body)
    kinds = [node.op_type for node in unrolled(model).graph.node]
    assert kinds.count("Gather") == 3
    assert "Neg" not in kinds


def test_the_library_function_unrolls() -> None:
    result = passes.unroll(scan_of("", "t = Add (s, n)"), opset=21)
    assert "Scan" not in {node.op_type for node in result.model.graph.node}
