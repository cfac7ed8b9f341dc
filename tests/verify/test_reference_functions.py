"""Model-local functions, names and scopes in the reference executor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, ModelProto, helper, parser

from passes.verify.executor import CannotRun, ModelFailed
from passes.verify.reference import ReferenceExecutor

RUN = ReferenceExecutor().run


def array(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def test_a_function_may_hold_a_scan_at_an_opset_of_its_own() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16, "own": 1]>
    g (float[B, T] x, int64[B] lens) => (y) { y = own.sums (x, lens) }
    <domain: "own", opset_import: ["": 8]>
    sums (x, lens) => (y) {
      y = Scan <num_scan_inputs = 1, body = body (float e) => (float d) { d = Add (e, e) }>
          (lens, x)
    }""")
    values = {"x": array(1, 2, 3, 4).reshape(2, 2), "lens": np.array([1, 2])}
    assert RUN(model, values).outputs["y"].tolist() == [[2, 0], [6, 8]]


def test_functions_may_call_functions_that_are_listed_later() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16, "own": 1]>
    g (float[N] x) => (y) { y = own.first (x) }
    <domain: "own", opset_import: ["": 16, "own": 1]>
    first (a) => (b) { c = own.second (a)  b = Neg (c) }
    <domain: "own", opset_import: ["": 16]>
    second (a) => (b) { b = Mul (a, a) }""")
    assert RUN(model, {"x": array(2, 3)}).outputs["y"].tolist() == [-4, -9]


def test_overloads_are_told_apart() -> None:
    model = parser.parse_model("""
    <ir_version: 10, opset_import: ["": 16, "own": 1]>
    g (float[N] x) => (y, z) { y = own.act (x)  z = own.act (x) }
    <domain: "own", opset_import: ["": 16]>
    act (a) => (b) { b = Neg (a) }
    <domain: "own", opset_import: ["": 16]>
    act (a) => (b) { b = Abs (a) }""")
    model.functions[1].overload = "other"
    model.graph.node[1].overload = "other"
    outputs = RUN(model, {"x": array(-2, 3)}).outputs
    assert outputs["y"].tolist() == [2, -3]
    assert outputs["z"].tolist() == [2, 3]


def with_attributes(*, default: bool) -> ModelProto:
    """Softmax along the attribute `axis`, inside of a branch."""
    model = parser.parse_model("""
    <ir_version: 10, opset_import: ["": 16, "own": 1]>
    g (float[N, M] x, bool c) => (y, z) {
      y = own.soft <axis = 0> (x, c)
      z = own.soft (x, c)
    }
    <domain: "own", opset_import: ["": 16]>
    soft <axis> (x, c) => (y) {
      y = If (c) <
        then_branch = t () => (a) { a = Softmax <axis: int = @axis> (x) },
        else_branch = e () => (b) { b = Identity (x) }
      >
    }""")
    if default:
        function = model.functions[0]
        del function.attribute[:]
        function.attribute_proto.append(helper.make_attribute("axis", 0))
    return model


@pytest.mark.parametrize(("default", "axis"), [(True, 0), (False, -1)])
def test_a_referenced_attribute_is_the_call_s_the_function_s_or_the_operator_s(
    default: bool, axis: int
) -> None:
    x = array(1, 2, 3, 4).reshape(2, 2)
    outputs = RUN(with_attributes(default=default), {"x": x, "c": np.array(True)}).outputs
    soft = np.exp(x) / np.exp(x).sum(0, keepdims=True)
    np.testing.assert_allclose(outputs["y"], soft, rtol=1e-6)
    other = np.exp(x) / np.exp(x).sum(axis, keepdims=True)
    np.testing.assert_allclose(outputs["z"], other, rtol=1e-6)


def test_a_constant_below_opset_12_may_be_an_attribute_of_the_function() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 9, "own": 1]>
    g (float[N] x) => (y) { y = own.plus (x) }
    <domain: "own", opset_import: ["": 9]>
    plus <value> (x) => (y) { c = Constant <value: tensor = @value> ()  y = Add (x, c) }""")
    tensor = helper.make_tensor("t", 1, [1], [5.0])
    model.graph.node[0].attribute.append(helper.make_attribute("value", tensor))
    assert RUN(model, {"x": array(1, 2)}).outputs["y"].tolist() == [6, 7]


def test_functions_capture_nothing() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16, "own": 1]>
    g (float[N] x, float[N] w) => (y) { y = own.f (x) }
    <domain: "own", opset_import: ["": 16]>
    f (a) => (b) { b = Add (a, w) }""")
    with pytest.raises(ModelFailed, match="reads 'w', which nothing defines"):
        RUN(model, {"x": array(1), "w": array(2)})


def test_an_omitted_input_of_a_function_stays_omitted() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16, "own": 1]>
    g (float[N] x, float high) => (y, z) { y = own.f (x, , high)  z = own.f (x) }
    <domain: "own", opset_import: ["": 16]>
    f (a, low, high) => (b) { b = Clip (a, low, high) }""")
    outputs = RUN(model, {"x": array(-9, 9), "high": np.float32(1)}).outputs
    assert outputs["y"].tolist() == [-9, 1]
    assert outputs["z"].tolist() == [-9, 9]


def test_a_function_that_calls_itself_is_no_word_on_the_model() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16, "own": 1]>
    g (float[N] x) => (y) { y = own.f (x) }
    <domain: "own", opset_import: ["": 16, "own": 1]>
    f (a) => (b) { b = own.f (a) }""")
    with pytest.raises(CannotRun, match="too deeply"):
        RUN(model, {"x": array(1)})


def test_an_operator_its_schema_defines_by_a_function() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    g (float[2, 4, 3] x, float[2] s) => (y) { y = GroupNormalization <num_groups = 2> (x, s, s) }
    """)
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    got = RUN(model, {"x": x, "s": array(1, 1)}).outputs["y"]
    groups = x.reshape(2, 2, -1)
    normal = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    np.testing.assert_allclose(got, normal.reshape(x.shape) + 1, atol=1e-5)


def test_both_spellings_of_the_standard_domain() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["ai.onnx": 11]>
    g (float[2, 2] x) => (y) { y = ai.onnx.Softmax <axis = 0> (x) }""")
    # Opset 11: the whole matrix is one row.
    assert RUN(model, {"x": np.zeros((2, 2), np.float32)}).outputs["y"].tolist() == [[0.25] * 2] * 2


def test_sibling_bodies_may_use_a_name_each_for_themselves() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (bool c, float x) => (y, z) {
      y = If (c) <then_branch = t () => (r) { a = Neg (x)  r = Exp (a) },
                  else_branch = e () => (r) { a = Abs (x)  r = Identity (a) }>
      a = Add (x, x)
      z = If (c) <then_branch = t () => (r) { r = Identity (a) },
                  else_branch = e () => (r) { r = Neg (a) }>
    }""")
    outputs = RUN(model, {"c": np.array(False), "x": np.float32(-3)}).outputs
    assert (float(outputs["y"]), float(outputs["z"])) == (3, 6)


def test_a_graph_attribute_of_another_kind_is_an_error() -> None:
    model = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 16]>
    g (bool c, float x) => (y) {
      y = If (c) <then_branch = t () => (r) { r = Neg (x) }, else_branch = 3>
    }""")
    assert model.graph.node[0].attribute[1].type == AttributeProto.INT
    with pytest.raises(ModelFailed, match="If 'y': its attribute else_branch is missing"):
        RUN(model, {"c": np.array(True), "x": np.float32(1)})


def test_nodes_alike_share_the_function_of_their_schema() -> None:
    """A model of many Gelus has one evaluator of a body for each size, not one for each node."""
    model = parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 20]>
        gelus (float[2] x) => (float[2] y, float[2] z, float[1] w) {
            y = Gelu (x)
            z = Gelu (y)
            tanh = Gelu <approximate = "tanh"> (y)
            w = ReduceMax (tanh)
        }
    """)
    executor = ReferenceExecutor(keep=1)
    outcome = executor.run(model, {"x": np.array([1.0, -2.0], np.float32)})
    (*_, evaluator), *_ = executor._ready
    assert len(evaluator.machine.function_evaluators) == 2
    expected = [_gelu(_gelu(x)) for x in (1.0, -2.0)]
    np.testing.assert_allclose(outcome.outputs["z"], expected, rtol=1e-5)


def _gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2
