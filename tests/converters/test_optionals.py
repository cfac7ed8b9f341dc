"""The steps of ops on optionals, and of what passes sequences on, run and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from proving import converted, drawn, ops, parsed, prove, run

from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

FULL = """(float[2] x) => (bool has, float[2] y) {
    o = Optional(x)
    has = OptionalHasElement(o)
    y = OptionalGetElement(o)
}"""


def _empty() -> onnx.ModelProto:
    """ONNX text has no attribute that is a type."""
    model = parsed("() => (bool has) { o = Optional() has = OptionalHasElement(o) }", 15)
    kind = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, [2])
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("type", kind))
    return model


@pytest.mark.parametrize("target", [18, 26])
def test_an_optional_that_has_an_element(target: int) -> None:
    after = prove(FULL, opset=15, target=target, places=["main", "if"])
    assert ops(after) == ["Optional", "OptionalHasElement", "OptionalGetElement"]


@pytest.mark.parametrize("target", [18, 26, 28])
def test_an_optional_without_an_element(target: int) -> None:
    after = converted(_empty(), target)
    onnx.checker.check_model(after, full_check=True)
    assert not ReferenceExecutor().run(after, {}).outputs["has"]
    if target <= 26:
        assert not run(after, {})[0]


@pytest.mark.parametrize("opset", [15, 18])
def test_28_is_as_before(opset: int) -> None:
    """onnxruntime has no opset 28; the reference runs it."""
    model = parsed(FULL, opset)
    after = converted(model, 28)
    onnx.checker.check_model(after, full_check=True)
    feeds = drawn(model)
    outputs = ReferenceExecutor().run(after, feeds).outputs
    assert outputs["has"]
    np.testing.assert_array_equal(outputs["y"], feeds["x"])


def test_identity_14_of_a_sequence() -> None:
    graph = """(float[2] x) => (float[2] y) {
        zero = Constant<value = int64 {0}>()
        s = SequenceConstruct(x, x)
        t = Identity(s)
        y = SequenceAt(t, zero)
    }"""
    prove(graph, opset=14, target=26)


def test_identity_16_of_an_optional() -> None:
    graph = """(float[2] x) => (float[2] y)
        { o = Optional(x) p = Identity(o) y = OptionalGetElement(p) }"""
    prove(graph, opset=16, target=26, places=["main", "if"])
