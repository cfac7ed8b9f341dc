"""The steps of quantized ops, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from calls import calling
from onnx import ModelProto, TensorProto, helper
from onnx.numpy_helper import from_array
from proving import EVERYWHERE, converted, drawn, ops, parsed, prove

import passes
from passes.rule import Refused
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


# -- down -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [18, 13, 11, 9])
@pytest.mark.parametrize("zero", ["", "uint8", "int8"])
def test_quantize_linear_down(zero: str, target: int) -> None:
    places = EVERYWHERE if target == 9 else ["main"]
    after = prove(
        _quantize(zero=zero), opset=21, target=target, feeds=_feeds(None, zero=zero), places=places
    )
    assert ("QuantizeLinear" in ops(after)) == (target >= 10)


@pytest.mark.parametrize("target", [12, 9])
@pytest.mark.parametrize(
    ("attributes", "size", "axes"),
    [("", 5, "2,5"), ("axis = 0", 2, "2,5"), ("axis = -2", 2, "2,5"), ("axis = 0", 5, "5")],
)
def test_scales_along_an_axis_down(attributes: str, size: int, axes: str, target: int) -> None:
    graph = _quantize(attributes, scale=f"[{size}]", axes=axes)
    feeds = _feeds(size)
    feeds["x"] = feeds["x"][0] if axes == "5" else feeds["x"]
    after = prove(graph, opset=19, target=target, feeds=feeds, places=["main", "loop"])
    assert "QuantizeLinear" not in ops(after)


def test_a_vector_of_one_scale_becomes_a_scalar() -> None:
    after = prove(_quantize("axis = 0", scale="[1]"), opset=13, target=12, feeds=_feeds(1))
    assert ops(after) == ["Reshape", "Reshape", "QuantizeLinear"]


@pytest.mark.parametrize("target", [20, 13, 10, 9])
@pytest.mark.parametrize("kind", ["uint8", "int8", "int16", "uint16"])
@pytest.mark.parametrize("scale", ["", "[2]"])
def test_dequantize_linear_down(scale: str, kind: str, target: int) -> None:
    graph = f"""({kind}[2,3] x, float{scale} s, {kind}{scale} z) => (float[2,3] y)
        {{ y = DequantizeLinear<axis = 0>(x, s, z) }}"""
    values = np.array([[0, 1, 100], [127, -1, -128]]).astype(kind)
    shape = (2,) if scale else ()
    feeds = {"x": values, "s": np.full(shape, 0.3, np.float32), "z": np.full(shape, 3, kind)}
    prove(graph, opset=21, target=target, feeds=feeds, places=["main", "if"])


@pytest.mark.parametrize("target", [20, 13, 9])
@pytest.mark.parametrize("op", ["QuantizeLinear", "DequantizeLinear"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_blocks_down(axis: int, op: str, target: int) -> None:
    shape = [4, 6]
    shape[axis] //= 2
    one, other = ("float", "uint8") if op == "QuantizeLinear" else ("uint8", "float")
    dims = ",".join(map(str, shape))
    graph = f"""({one}[4,6] x, float[{dims}] s, uint8[{dims}] z) => ({other}[4,6] y)
        {{ y = {op}<axis = {axis}, block_size = 2>(x, s, z) }}"""
    feeds = {"s": np.linspace(0.25, 2, 12, dtype=np.float32).reshape(shape)}
    prove(graph, opset=21, target=target, feeds=feeds, places=["main", "if"])


def test_blocks_of_unknown_length_are_refused() -> None:
    graph = """(uint8[N] x, float[B] s) => (float[N] y)
        { y = DequantizeLinear<axis = 0, block_size = 2>(x, s) }"""
    with pytest.raises(Refused, match="has blocks along an axis of unknown length"):
        converted(parsed(graph, 21), 20)


@pytest.mark.parametrize("kind", ["int4", "uint4", "float8e4m3fn"])
def test_small_types_are_refused(kind: str) -> None:
    model = parsed(_quantize(zero=kind), 21)
    with pytest.raises(Refused) as refused:
        converted(model, 13)
    assert refused.value.code == "no-equivalent"


@pytest.mark.parametrize("target", [20, 18, 13, 9])
@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize(
    ("kind", "opset", "stored"),
    [
        ("INT4", 21, "INT8"),
        ("UINT4", 23, "UINT8"),
        ("FLOAT8E5M2", 21, "FLOAT"),
        ("FLOAT4E2M1", 23, "FLOAT"),
        ("INT2", 25, "INT8"),
        ("FLOAT6E2M3", 28, "FLOAT"),
    ],
)
def test_fixed_numbers_of_small_types_are_stored_in_wider_ones(
    kind: str, opset: int, stored: str, block: int, target: int
) -> None:
    elem_type = TensorProto.DataType.Value(kind)
    model = parsed(
        f"""(float[{"2," * bool(block)}2] s) => (float[2,4] y) {{
            y = DequantizeLinear<axis = {1 if block else 0}, block_size = {block}>(x, s, z) }}""",
        opset,
    )
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    numbers = np.array([[0, 1, 1, -1], [-2, 1, 0, -1]]) if kind != "UINT4" else np.arange(8)
    zero = np.full((2, 2) if block else 2, "INT" in kind)
    model.graph.initializer.append(from_array(numbers.reshape(2, 4).astype(dtype), "x"))
    model.graph.initializer.append(from_array(zero.astype(dtype), "z"))
    result = passes.convert(model, opset=target)
    assert result.report.checked.verdict == "verified"
    kinds = {TensorProto.DataType.Name(one.data_type) for one in result.model.graph.initializer}
    assert kinds - {"INT64"} == {kind if (kind, target) == ("FLOAT8E5M2", 20) else stored}


@pytest.mark.parametrize("opset", [21, 23])
def test_an_output_type_becomes_a_zero_point(opset: int) -> None:
    graph = """(float[2,5] x, float s) => (int8[2,5] y)
        { y = QuantizeLinear<output_dtype = 3>(x, s) }"""
    after = prove(graph, opset=opset, target=13, feeds=_feeds(None, zero=""))
    assert ops(after) == ["Shape", "ConstantOfShape", "QuantizeLinear"]


def test_other_types_of_scales_down() -> None:
    """onnxruntime has no such kernels."""
    graph = """(float16[2,5] x, float s, uint8 z) => (float16[2,5] y)
        { q = QuantizeLinear(x, s, z) y = DequantizeLinear<output_dtype = 10>(q, s, z) }"""
    model = parsed(graph, 23)
    after = converted(model, 13)
    onnx.checker.check_model(after, full_check=True)
    feeds = _feeds(None)
    feeds["x"] = np.array([[1, 2, 3, 4, 5], [-1, 0.5, 0.2, 100, 300]], np.float16)
    np.testing.assert_array_equal(_evaluated(after, feeds), _evaluated(model, feeds))


@pytest.mark.parametrize("target", [10, 9])
def test_dynamic_quantize_linear_down(target: int) -> None:
    graph = """(float[2,5] x) => (uint8[2,5] y, float s, uint8 z)
        { y, s, z = DynamicQuantizeLinear(x) }"""
    x = np.array([[0, 2, -3, -2.5, 1.34], [0.5, 7, 1, 2, 3]], np.float32)
    prove(graph, opset=11, target=target, feeds={"x": x}, places=["main", "if"])


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize("zeros", ["", "[2] p, uint8[4] q", "[1] p, uint8 q"])
def test_mat_mul_integer_down(zeros: str, target: int) -> None:
    given, names = (f", uint8{zeros}", ", p, q") if zeros else ("", "")
    graph = f"""(uint8[2,3] a, uint8[3,4] b{given}) => (int32[2,4] y)
        {{ y = MatMulInteger(a, b{names}) }}"""
    if "[2]" not in zeros:  # which onnxruntime does not take
        prove(graph, opset=10, target=target, places=["main", "if"])
    model = parsed(graph, 10)
    feeds = drawn(model)
    a, b = (feeds[name].astype(int) for name in "ab")
    p, q = (feeds.get(name, np.array(0)).astype(int) for name in "pq")
    found = _evaluated(converted(model, target), feeds)
    assert found.tolist() == ((a - (p[:, None] if p.ndim else p)) @ (b - q)).tolist()


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize(("channels", "parts"), [(1, 1), (300, 2), (5000, 4)])
def test_conv_integer_down(channels: int, parts: int, target: int) -> None:
    """The largest numbers there are, whose sums a float would not hold."""
    graph = f"""(uint8[1,{channels},3,3] x, uint8[2,{channels},1,1] w, uint8 p, uint8 q)
        => (int32[1,2,5,5] y) {{ y = ConvInteger<pads = [1, 1, 1, 1]>(x, w, p, q) }}"""
    rng = np.random.default_rng(1)
    feeds = {
        "x": rng.integers(250, 256, (1, channels, 3, 3)).astype(np.uint8),
        "w": rng.integers(250, 256, (2, channels, 1, 1)).astype(np.uint8),
        "q": np.array(1, np.uint8),
        "p": np.array(0, np.uint8),
    }
    after = prove(graph, opset=10, target=target, feeds=feeds, places=["main", "if"])
    assert ops(after).count("Conv") == parts


def test_a_conv_integer_of_long_or_unknown_sums_is_refused() -> None:
    graph = (
        "(uint8[1,{c},1,1] x, uint8[1,{c},1,1] w) => (int32[A,B,C,D] y) {{ y = ConvInteger(x, w) }}"
    )
    with pytest.raises(Refused, match="a float does not hold sums of 70000 products"):
        converted(parsed(graph.format(c=70000), 10), 9)
    with pytest.raises(Refused, match="the reduction size of 'w' is unknown"):
        converted(parsed(graph.format(c="N"), 10), 9)


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize("columns", ["", "[4]"])
def test_q_linear_mat_mul_down(columns: str, target: int) -> None:
    graph = f"""(uint8[2,3] a, float r, uint8 p, int8[3,4] b, float{columns} s, int8{columns} q,
        float t, uint8 o) => (uint8[2,4] y) {{ y = QLinearMatMul(a, r, p, b, s, q, t, o) }}"""
    scale = np.linspace(0.1, 0.4, 4) if columns else np.array(0.2)
    feeds = {"r": np.array(0.3), "s": scale, "t": np.array(0.7)}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    prove(graph, opset=10, target=target, feeds=feeds, places=["main", "if"])


@pytest.mark.parametrize("target", [9, 7])
@pytest.mark.parametrize("channels", ["", "[2]"])
@pytest.mark.parametrize("bias", ["", ", c"])
def test_q_linear_conv_down(bias: str, channels: str, target: int) -> None:
    graph = f"""(uint8[1,3,4,4] x, float r, uint8 p, uint8[2,3,2,2] w, float{channels} s,
        uint8{channels} q, float t, uint8 o, int32[2] c) => (uint8[1,2,3,3] y)
        {{ y = QLinearConv(x, r, p, w, s, q, t, o{bias}) }}"""
    scale = np.array([0.1, 0.4]) if channels else np.array(0.2)
    feeds = {"r": np.array(0.3), "s": scale, "t": np.array(0.7)}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    zero = np.full(scale.shape, 4, np.uint8)
    prove(graph, opset=10, target=target, feeds={**feeds, "q": zero}, places=["main", "if"])
