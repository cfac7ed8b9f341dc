"""Legal, however odd: nothing may be said against these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx_cases import all_cases

from passes.check import check
from passes.errors import BadModel
from passes.ir.model import Model
from passes.ir.scope import walk_model
from tests.written import changed

from .conftest import Complaint

LOOPS = {"Scan", "Loop", "If"}
SCAN_8 = """
    <ir_version: {ir}, opset_import: ["" : 8]>
    g (float[2,5,3] x, float[2,3] i) => (float[2,3] p) {{
      p = Scan <num_scan_inputs = 1, body = b (float[3] s, {body}) => (float[3] t)
        <float[3] w = {{1, 2, 3}}> {{ u = Add (s, e) t = Mul (u, w) }}> (, i, x)
    }}
"""
VALID = {
    "IR 3: a Scan-8 body lists its initializer as an input": SCAN_8.format(
        ir=3, body="float[3] e, float[3] w"
    ),
    "the same with the initializer in the middle": SCAN_8.format(
        ir=3, body="float[3] w, float[3] e"
    ),
    "the same at IR 8": SCAN_8.format(ir=8, body="float[3] e, float[3] w"),
    "IR 3: an initializer of the main graph that is no input": """
        <ir_version: 3, opset_import: ["" : 9]>
        g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }
    """,
    "GroupNormalization-18, deprecated, but all there is up to opset 20": """
        <ir_version: 8, opset_import: ["" : 20]>
        g (float[2,4,3] x, float[2] s, float[2] b) => (float[2,4,3] y) {
          y = GroupNormalization <num_groups = 2> (x, s, b)
        }
    """,
    "an initializer that is also an input": """
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }
    """,
    "a body's input hides an outer value": """
        <ir_version: 8, opset_import: ["" : 13]>
        g (int64[5] x, float[3] i, float[5,3] v) => (float[3] p) {
          p = Scan <num_scan_inputs = 1, body = b (float[3] i, float[3] x) => (float[3] t)
            { t = Add (i, x) }> (i, v)
        }
    """,
    "sibling bodies use the same names": """
        <ir_version: 8, opset_import: ["" : 13]>
        g (bool c, float x) => (float y) {
          y = If (c) <
            then_branch = t () => (float r) { k = Neg (x) r = Neg (k) },
            else_branch = e () => (float r) { k = Relu (x) r = Neg (k) }
          >
        }
    """,
    "a body uses a name that is defined outside only later": """
        <ir_version: 8, opset_import: ["" : 13]>
        g (bool c, float x) => (float y) {
          q = If (c) <
            then_branch = t () => (float r) { k = Neg (x) r = Neg (k) },
            else_branch = e () => (float r) { r = Neg (x) }
          >
          k = Neg (q)
          y = Neg (k)
        }
    """,
    "a branch returns an outer value as it is": """
        <ir_version: 8, opset_import: ["" : 13]>
        g (bool c, float x) => (float y) {
          k = Neg (x)
          y = If (c) <
            then_branch = t () => (float k) { },
            else_branch = e () => (float r) { r = Neg (x) }
          >
        }
    """,
    "an initializer of a body hides an outer value": """
        <ir_version: 8, opset_import: ["" : 13]>
        g (bool c, float x) => (float y) {
          k = Neg (x)
          y = If (c) <
            then_branch = t () => (float r) <float k = {1}> { r = Neg (k) },
            else_branch = e () => (float r) { r = Neg (k) }
          >
        }
    """,
    "a custom operator, and a function of its domain that is not there": """
        <ir_version: 8, opset_import: ["" : 13, "d" : 1]>
        g (float x) => (float y) { z = d.f (x) y = d.Scan <anything = 3> (z) }
    """,
    "an output without a type": """
        <ir_version: 8, opset_import: ["" : 13]> g (float x) => (y) { y = Neg (x) }
    """,
    "an input of unknown rank": """
        <ir_version: 8, opset_import: ["" : 13]> g (float[] x) => (float y) { y = ReduceSum (x) }
    """,
    "an output that is an input": """
        <ir_version: 8, opset_import: ["" : 13]> g (float x) => (float x) { }
    """,
    "the default domain imported twice, alike": """
        <ir_version: 8, opset_import: ["" : 13, "ai.onnx" : 13]>
        g (float x) => (float y) { y = ai.onnx.Neg (x) }
    """,
    "a Loop that leaves out trip count and condition": """
        <ir_version: 8, opset_import: ["" : 13]>
        g (float x) => (float y) {
          y = Loop <body = b (int64 n, bool c, float s) => (bool d, float t)
            { d = Identity (c) t = Neg (s) }> ( , , x)
        }
    """,
    "a Loop whose trip count is a list of one, and whose state grows": """
        <ir_version: 8, opset_import: ["" : 13]>
        g (int64[1] m, float[N] x) => (float[M] y) {
          y = Loop <body = b (int64 n, bool c, float[K] s) => (bool d, float[L] t)
            { d = Identity (c) t = Concat <axis = 0> (s, s) }> (m, , x)
        }
    """,
    "a function of another opset that uses only what is alike": """
        <ir_version: 9, opset_import: ["" : 18, "d" : 1]>
        g (float x) => (float y) { y = d.f (x) }
        <domain: "d", opset_import: ["" : 17]> f (a) => (b) { b = Neg (a) }
    """,
    "a function called with fewer inputs than it lists": """
        <ir_version: 9, opset_import: ["" : 18, "d" : 1]>
        g (float x) => (float y) { y = d.f (x) }
        <domain: "d", opset_import: ["" : 18]> f (a, m) => (b) { b = Clip (a, m) }
    """,
    "a function that takes num_scan_inputs from its caller": """
        <ir_version: 9, opset_import: ["" : 18, "d" : 1]>
        g (float[5,3] x, float[3] i) => (float[3] y) { y = d.f <number = 1> (i, x) }
        <domain: "d", opset_import: ["" : 18]> f <number> (i, x) => (y) {
          y = Scan <num_scan_inputs : int = @number, body = b (s, e) => (t) { t = Add (s, e) }>
            (i, x)
        }
    """,
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_legal_oddity(complaint: Complaint, text: str) -> None:
    assert complaint(text) == ""


def loop_models() -> dict[str, ModelProto]:
    """onnx's own node tests that hold a loop, at any depth."""
    return {
        case.name: case.model
        for case in all_cases()
        if any(place.node.op_type in LOOPS for place in walk_model(case.model))
    }


@pytest.mark.slow
def test_the_loops_of_onnx_itself(complaint: Complaint) -> None:
    models = loop_models()
    told = {name: complaint(model) for name, model in models.items()}
    assert len(models) > 30
    assert {name: said for name, said in told.items() if said} == {}


def test_graphs_without_a_name(complaint: Complaint) -> None:
    model = onnx.parser.parse_model(VALID["sibling bodies use the same names"])
    model.graph.name = ""
    for attribute in model.graph.node[0].attribute:
        attribute.g.name = ""
    assert complaint(model) == ""


def test_external_data_is_not_looked_for_in_the_working_directory(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones(2, np.float32), "w")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
    constant = helper.make_node("Constant", [], ["k"], value=weight)
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] y) { y = Sum (x, w, k) }
    """)
    model.graph.initializer.append(weight)
    model.graph.node.insert(0, constant)
    (tmp_path / "weights.bin").write_bytes(bytes(8))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    loaded = Model.load(tmp_path / "model.onnx")
    check(loaded)
    loaded.proto.graph.node[1].input[0] = "nothing"
    with pytest.raises(BadModel) as refused:
        check(loaded)
    assert str(refused.value) == (
        f"{tmp_path / 'model.onnx'}: main/sum_1: 'nothing' is defined nowhere"
    )


def test_a_model_larger_than_the_checker_takes(
    complaint: Complaint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond 2 GB onnx's checker is not asked; what is ours to see is still seen."""
    monkeypatch.setattr(onnx.checker, "MAXIMUM_PROTOBUF", 10)
    text = VALID["sibling bodies use the same names"]
    assert complaint(text) == ""
    assert complaint(changed(text, {"bool c": "float c"})) == (
        "main/if_0: the condition ('c') is float, not bool"
    )
    assert complaint(changed(text, {"Relu (x)": "Relu (z)"})) == (
        "main/if_0.else_branch/relu_0: 'z' is defined nowhere"
    )
