"""hoist-constants: constants that ONNX text cannot express, and many of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

import passes
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Pass
from passes.ir import scope as scoping
from passes.session import Session
from passes.testing import as_model, assert_rewrite, options_of
from tests.written import changed

CONSTANTS = {"rules": ("hoist-constants",)}


SCAN = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] h, float[3,2] x) => (float[2] y) {
   y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) {
      t = Add (s, n)
   }> (h, x)
}
"""


def scan_of(nodes: str, constants: str = "") -> ModelProto:
    """A Scan with these nodes and constants in its body."""
    changes = {"t = Add (s, n)": nodes, "=> (float[2] t) {": f"=> (float[2] t) {constants} {{"}
    return as_model(changed(SCAN, changes))


def body_of(model: ModelProto) -> GraphProto:
    (scan,) = [node for node in model.graph.node if node.op_type == "Scan"]
    return next(attribute.g for attribute in scan.attribute if attribute.name == "body")


def hoisted(model: ModelProto | str) -> ModelProto:
    return assert_rewrite(model, pipeline="hoist", options=CONSTANTS).model


def names(model: ModelProto) -> list[str]:
    return [tensor.name for tensor in model.graph.initializer]


def constants(model: ModelProto) -> int:
    """How many constants there are, at every depth."""
    graphs = [g for _, owner in scoping.owners(model) for g in scoping.graphs_below(owner)]
    dense = sum(len(graph.initializer) for graph in graphs if isinstance(graph, GraphProto))
    return dense + sum(node.op_type == "Constant" for graph in graphs for node in graph.node)


@pytest.mark.parametrize(
    "constant",
    [
        'c = Constant <value_string = "a"> () d = StringConcat (c, c) e = Equal (d, d)'
        " f = Cast <to = 1> (e) t = Add (n, f)",
        'c = Constant <value_strings = ["a", "b"]> () e = Equal (c, c) f = Cast <to = 1> (e)'
        " t = Add (n, f)",
        "c = Constant <value_ints = [0, 1]> () t = Gather (n, c)",
        "c = Constant <value_int = 2> () f = Cast <to = 1> (c) t = Mul (n, f)",
        "c = Constant <value_float = 2.0> () t = Mul (n, c)",
        "c = Constant <value = bfloat16[2] {1, 2}> () f = Cast <to = 1> (c) t = Mul (n, f)",
    ],
)
def test_every_spelling_of_a_constant(constant: str) -> None:
    after = hoisted(scan_of(constant))
    assert names(after) == ["scan/c"]
    assert "Constant" not in {node.op_type for node in body_of(after).node}


def test_equal_bytes_are_one_however_they_are_stored() -> None:
    model = scan_of("m = Mul (n, w) k = Mul (m, v) t = Add (s, k)", "<float[2] w = {2, 3}>")
    raw = numpy_helper.from_array(np.array([2, 3], np.float32), "v")
    assert raw.HasField("raw_data")
    body_of(model).initializer.append(raw)
    assert names(hoisted(model)) == ["scan/w"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("float[1] w = {0}", "float[1] v = {-0.0}"),
        ("float[1] w = {1}", "float v = {1}"),
        ("float[2] w = {1, 2}", "float[2] v = {1, 3}"),
    ],
)
def test_constants_that_differ_in_a_bit_or_a_dim_stay_two(one: str, other: str) -> None:
    model = scan_of("m = Mul (n, w) k = Add (m, v) t = Add (s, k)", f"<{one}, {other}>")
    assert len(hoisted(model).graph.initializer) == 2


def test_a_sparse_constant_is_once_before_the_loop() -> None:
    model = scan_of("m = Mul (n, w) k = Mul (m, v) t = Add (s, k)")
    for name in ("w", "v"):
        values = helper.make_tensor(name, TensorProto.FLOAT, [1], [2.0])
        indices = helper.make_tensor("at", TensorProto.INT64, [1], [1])
        body_of(model).sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    after = hoisted(model)
    assert [node.op_type for node in after.graph.node] == ["Constant", "Scan"]
    assert not body_of(after).sparse_initializer


def annotated(graph: GraphProto, name: str, scale: str) -> None:
    entry = onnx.StringStringEntryProto(key="SCALE_TENSOR", value=scale)
    graph.quantization_annotation.add(tensor_name=name, quant_parameter_tensor_names=[entry])


def test_a_quantized_value_keeps_its_scale_and_its_tensor() -> None:
    model = as_model("""
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x) => (float[2] y) <float[2] same = {2, 3}> {
       k = Mul (h, same)
       l = Mul (k, k)
       y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t)
          <float[2] w = {2, 3}, float scale = {0.5}> {
          m = Mul (n, w)
          t = Add (s, m)
       }> (h, x)
    }
    """)
    annotated(body_of(model), "w", "scale")
    annotated(body_of(model), "m", "scale")
    after = hoisted(model)
    assert names(after) == ["same", "scan/w", "scan/scale"]
    (outside,) = after.graph.quantization_annotation
    (inside,) = body_of(after).quantization_annotation
    assert (outside.tensor_name, inside.tensor_name) == ("scan/w", "m")
    scales = [one.quant_parameter_tensor_names[0].value for one in (outside, inside)]
    assert scales == ["scan/scale", "scan/scale"]


def test_a_scale_that_only_an_annotation_names_is_no_unread_constant() -> None:
    model = as_model("""
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x) => (float[2] y)
    <float[2] w = {2, 3}, float[2] v = {2, 3}, float scale = {0.5}, float half = {0.5}> {
       k = Mul (h, v)
       l = Mul (k, scale)
       o = Mul (l, half)
       y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) {
          m = Mul (n, w)
          t = Add (s, m)
       }> (h, x)
    }
    """)
    annotated(model.graph, "k", "half")
    after = hoisted(model)
    assert names(after) == ["w", "scale", "half"]


def test_trained_weights_are_not_shared() -> None:
    model = as_model("""
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x) => (float[2] y) <float[2] w = {2, 3}> {
       y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) {
          m = Mul (n, w)
          k = Mul (m, v)
          t = Add (s, k)
       }> (h, x)
    }
    """)
    model.graph.initializer.append(numpy_helper.from_array(np.array([2, 3], np.float32), "v"))
    model.training_info.add().algorithm.name = "training"
    assert (
        Session([Pass(SCHEDULES["hoist"], options=options_of(CONSTANTS))], None).run(model).model
        is model
    )


def test_graphs_of_unknown_operators_keep_what_they_hold() -> None:
    model = as_model("""
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] h, float[3,2] x) => (float[2] y) {
       k = com.acme.Search <decoder = d () => (float[2] o) {
          c = Constant <value_floats = [1.0, 2.0]> ()
          o = Neg (c)
       }> (h)
       y = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] n) => (float[2] t) {
          t = Add (s, n)
       }> (h, x)
    }
    """)
    model.opset_import.add(domain="com.acme", version=1)
    assert (
        Session([Pass(SCHEDULES["hoist"], options=options_of(CONSTANTS))], None).run(model).model
        is model
    )


def test_external_data_is_compared_by_its_place_and_not_read(tmp_path: Path) -> None:
    weights = np.arange(8, dtype=np.float32)
    (tmp_path / "weights").write_bytes(weights.tobytes())
    model = scan_of("m = Mul (n, w) k = Mul (m, v) o = Mul (k, u) t = Add (s, o)")
    for name, offset in (("w", 8), ("v", 8), ("u", 16)):
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2])
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights"), ("offset", str(offset)), ("length", "8")):
            tensor.external_data.add(key=key, value=value)
        body_of(model).initializer.append(tensor)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    result = Session([Pass(SCHEDULES["hoist"], options=options_of(CONSTANTS))]).run(path)
    assert names(result.model) == ["scan/w", "scan/u"]
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    (tmp_path / "weights").write_bytes(bytes(32))  # nobody looked
    again = Session([Pass(SCHEDULES["hoist"], options=options_of(CONSTANTS))], None).run(path)
    assert names(again.model) == ["scan/w", "scan/u"]


#: A part of a model that holds the same weight in four places: as an initializer `w`, a Constant
#: node, an initializer of a branch and a Constant node of a branch in that one.
PART = """
   a_this = Mul (x_this, w_this)
   c_this = Constant <value = float[2] {2, 3}> ()
   b_this = Add (a_this, c_this)
   x_next = If (yes) <
      then_branch = t () => (float[2] p) <float[2] v_this = {2, 3}> {
         q = Add (b_this, v_this)
         p = If (yes) <
            then_branch = u () => (float[2] r) {
               k = Constant <value_floats = [2.0, 3.0]> ()
               r = Sub (q, k)
            },
            else_branch = f () => (float[2] r) { r = Abs (q) }>
      },
      else_branch = e () => (float[2] o) { o = Neg (b_this) }>
"""
PARTS = """
<ir_version: 10, opset_import: ["" : 21]>
g (bool yes, float[2] x0) => (float[2] x_last) <WEIGHTS> { PARTS }
"""


def many_weights(count: int) -> ModelProto:
    """The same weight, `count` times."""
    places = range(0, count, 4)
    parts = [changed(PART, {"_this": f"{i}", "_next": f"{i + 4}"}) for i in places]
    weights = [changed("float[2] w_this = {2, 3}", {"_this": f"{i}"}) for i in places]
    names = {"WEIGHTS": ", ".join(weights), "PARTS": "".join(parts), "x_last": f"x{count}"}
    return as_model(changed(PARTS, names))


def test_a_thousand_equal_weights_end_as_one() -> None:
    model = many_weights(1000)
    assert constants(model) == 1000
    after = (
        Session([Pass(SCHEDULES["hoist"], options=options_of(CONSTANTS))], None).run(model).model
    )
    assert names(after) == ["w0"]
    assert constants(after) == 1
    onnx.checker.check_model(after, full_check=True)


def test_many_equal_weights_are_verified() -> None:
    assert constants(hoisted(many_weights(24))) == 1


def cnn(convolutions: int) -> ModelProto:
    """A network without loops, each layer with constants that others have, too."""
    rng = np.random.default_rng(0)
    nodes, tensors, value = [], [], "x"
    for layer in range(convolutions):
        weight, low, high, result = (f"{name}{layer}" for name in ("w", "low", "high", "y"))
        tensors += [
            numpy_helper.from_array(rng.normal(size=(2, 2, 3, 3)).astype(np.float32), weight),
            numpy_helper.from_array(np.array(0, np.float32), low),
            numpy_helper.from_array(np.array(6, np.float32), high),
        ]
        nodes.append(helper.make_node("Conv", [value, weight], [f"c{layer}"], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Clip", [f"c{layer}", low, high], [result]))
        value = result
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2, 4, 4])
        for name in ("x", value)
    ]
    graph = helper.make_graph(nodes, "cnn", infos[:1], infos[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_equal_constants_that_no_loop_reads_are_not_the_business_of_optimize() -> None:
    model = cnn(3)
    for target in ("onnxruntime", "loop-only", "scan-only", "no-control-flow"):
        result = passes.optimize(model, target=target)
        assert result.report.unchanged
        assert result.model is model


def test_nodes_that_only_read_equal_constants_are_proven_by_bytes() -> None:
    result = assert_rewrite(cnn(3), pipeline="hoist", executor="reference")
    assert len(result.model.graph.initializer) == 3 + 2
    checked = [record.checked for record in result.report.records]
    assert [str(one) for one in checked] == [
        "verified: the constants are the same, byte by byte"
    ] * 2
    assert not any(one.compared for one in checked if one is not None)
