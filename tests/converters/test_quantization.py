"""The steps of quantized ops, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from calls import calling
from onnx import ModelProto
from proving import EVERYWHERE, converted, ops, parsed, prove

from passes.verify.reference import ReferenceExecutor

pytestmark = pytest.mark.sampled

X = np.array([[np.inf, -np.inf, -0.0, 0.5, 1.5], [2.5, 1e9, -1e9, -0.74, 300]], np.float32)


def _quantize(
    attributes: str = "", x: str = "float", scale: str = "", zero: str = "uint8", axes: str = "2,5"
) -> str:
    third = f", {zero}{scale} z" if zero else ""
    given = f"<{attributes}>" if attributes else ""
    kind = "float" if x == "int32" else x
    return f"""({x}[{axes}] x, {kind}{scale} s{third}) => ({zero or "uint8"}[{axes}] y)
        {{ y = QuantizeLinear{given}(x, s{", z" if zero else ""}) }}"""


def _feeds(size: int | None, x: str = "float", zero: str = "uint8") -> dict[str, np.ndarray]:
    scale = np.array(0.5) if size is None else np.linspace(0.25, 2, size)
    shift = np.array(3) if size is None else np.arange(size)
    feeds = {"x": X.astype(np.float16 if x == "float16" else np.float32)}
    feeds["s"] = scale.astype(feeds["x"].dtype)
    return {**feeds, "z": shift.astype(zero)} if zero else feeds


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
@pytest.mark.parametrize("zero", ["", "uint8", "int8"])
def test_quantize_linear(zero: str, opset: int) -> None:
    places = EVERYWHERE if opset == 10 else ["main"]
    after = prove(
        _quantize(zero=zero), opset=opset, target=26, feeds=_feeds(None, zero=zero), places=places
    )
    assert ops(after) == ["QuantizeLinear"]


@pytest.mark.parametrize("opset", [13, 19, 21])
@pytest.mark.parametrize(("attributes", "size"), [("", 5), ("axis = 0", 2), ("axis = -1", 5)])
def test_quantize_linear_along_an_axis(attributes: str, size: int, opset: int) -> None:
    graph = _quantize(attributes, scale=f"[{size}]")
    prove(graph, opset=opset, target=26, feeds=_feeds(size), places=["main", "loop"])


def test_quantize_linear_of_a_vector_along_its_axis() -> None:
    """Version 21 says, of a vector, that the axis does not matter."""
    graph = _quantize("axis = 0", scale="[5]", axes="5")
    feeds = {**_feeds(5), "x": X[1]}
    prove(graph, opset=13, target=26, feeds=feeds)


@pytest.mark.parametrize("opset", [19, 21, 23])
@pytest.mark.parametrize("zero", ["uint8", "int8"])
def test_quantize_linear_of_float16(zero: str, opset: int) -> None:
    graph = _quantize(x="float16", zero=zero)
    prove(graph, opset=opset, target=26, feeds=_feeds(None, "float16", zero), places=["main"])


def _evaluated(model: ModelProto, feeds: dict[str, np.ndarray]) -> np.ndarray:
    return np.asarray(ReferenceExecutor().run(model, feeds).outputs["y"])


@pytest.mark.parametrize("opset", [10, 13])
@pytest.mark.parametrize("target", [19, 21, 23, 26])
def test_integers_are_cast_to_the_type_of_their_scale(target: int, opset: int) -> None:
    """onnxruntime has no kernel for them; the reference runs them."""
    model = parsed(_quantize(x="int32", scale="", zero="uint8"), opset)
    after = converted(model, target)
    assert ops(after) == ["Cast", "QuantizeLinear"]
    x = np.array([[-7, 0, 1, 2, 3], [5, 7, 100, 1000, 9]], np.int32)
    feeds = {"x": x, "s": np.array(2, np.float32), "z": np.array(3, np.uint8)}
    np.testing.assert_array_equal(_evaluated(after, feeds), _evaluated(model, feeds))


def test_what_is_of_unknown_type_is_cast_like_its_scale() -> None:
    model = calling(
        "(float[3] x) => (float[3] y) { y = Relu(x) }",
        "Q (x, s) => (y) { y = QuantizeLinear(x, s) }",
        13,
    )
    after = converted(model, 19)
    assert [node.op_type for node in after.functions[0].node] == ["CastLike", "QuantizeLinear"]


def _dequantize(attributes: str, kind: str, scale: str, zero: bool, axes: str = "2,5") -> str:
    third = f", {kind}{scale} z" if zero else ""
    return f"""({kind}[{axes}] x, float{scale} s{third}) => (float[{axes}] y)
        {{ y = DequantizeLinear{attributes}(x, s{", z" if zero else ""}) }}"""


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("kind", ["uint8", "int8", "int32"])
def test_dequantize_linear(kind: str, zero: bool, opset: int) -> None:
    places = EVERYWHERE if opset == 10 else ["main"]
    feeds = {"z": np.array(0 if kind == "int32" else 3, kind)} if zero else {}
    graph = _dequantize("", kind, "", zero)
    assert ops(prove(graph, opset=opset, target=26, feeds=feeds, places=places)) == [
        "DequantizeLinear"
    ]


@pytest.mark.parametrize("opset", [13, 19, 21])
@pytest.mark.parametrize(
    ("attributes", "size", "axes"),
    [("", 5, "2,5"), ("<axis = 0>", 2, "2,5"), ("<axis = -2>", 2, "2,5"), ("<axis = 0>", 5, "5")],
)
def test_dequantize_linear_along_an_axis(attributes: str, size: int, axes: str, opset: int) -> None:
    graph = _dequantize(attributes, "int8", f"[{size}]", True, axes)
    prove(graph, opset=opset, target=26, places=["main", "function"])


@pytest.mark.parametrize(("a", "b"), [("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8")])
def test_qlinear_matmul(a: str, b: str) -> None:
    graph = f"""({a}[2,3] a, float as, {a} az, {b}[3,4] b, float bs, {b} bz, float ys, {a} yz)
        => ({a}[2,4] y) {{ y = QLinearMatMul(a, as, az, b, bs, bz, ys, yz) }}"""
    feeds = {name: np.array(value, np.float32) for name, value in (("as", 0.5), ("bs", 0.25))}
    prove(graph, opset=10, target=26, feeds={**feeds, "ys": np.array(0.7, np.float32)})


@pytest.mark.parametrize("opset", [21, 23])
def test_blocks(opset: int) -> None:
    graph = """(float[2,6] x, float[2,3] s, int8[2,3] z) => (int8[2,6] q, float[2,6] y) {
        q = QuantizeLinear<block_size = 2, axis = 1>(x, s, z)
        y = DequantizeLinear<block_size = 2, axis = 1>(q, s, z)
    }"""
    feeds = {"s": np.linspace(0.2, 1, 6, dtype=np.float32).reshape(2, 3)}
    prove(graph, opset=opset, target=26, feeds=feeds, places=["main", "loop"])


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23, 24, 25])
def test_up_to_28(opset: int) -> None:
    """What onnxruntime does not load, the reference runs."""
    model = parsed(
        """(float[2,5] x, float s, uint8 z) => (float[2,5] y)
            { q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }""",
        opset,
    )
    after = converted(model, 28)
    onnx.checker.check_model(after, full_check=True)
    assert after.graph.node == model.graph.node
    feeds = _feeds(None)
    np.testing.assert_array_equal(_evaluated(after, feeds), _evaluated(model, feeds))
