"""The steps of ops that make tensors or change their type, run at the old opset and converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from proving import converted, ops, parsed, prove, run

pytestmark = pytest.mark.sampled

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e6, -1e6, 1.5, 0.3, 449.0], np.float32)
FLOAT8 = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]

# -- Cast ----------------------------------------------------------------------------------

NUMBERS = ["float", "double", "float16", "int8", "int32", "int64", "uint8", "uint32", "bool"]


@pytest.mark.parametrize("after", NUMBERS)
@pytest.mark.parametrize("before", NUMBERS)
def test_cast_of_numbers(before: str, after: str) -> None:
    to = getattr(TensorProto, after.upper())
    graph = f"({before}[3] x) => ({after}[3] y) {{ y = Cast<to = {to}>(x) }}"
    given = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, before.upper()))
    feeds = {"x": np.array([0, 1, 7]).astype(given)}
    assert ops(prove(graph, opset=7, target=26, feeds=feeds, places=["main"])) == ["Cast"]


def test_cast_everywhere() -> None:
    prove("(float[3] x) => (int32[3] y) { y = Cast<to = 6>(x) }", opset=7, target=26)


@pytest.mark.parametrize("kind", ["double", "float16"])
def test_cast_of_special_values(kind: str) -> None:
    to = getattr(TensorProto, kind.upper())
    graph = f"""(float[10] x) => ({kind}[10] y, bool[10] z)
        {{ y = Cast<to = {to}>(x) z = Cast<to = 9>(x) }}"""
    prove(graph, opset=7, target=26, feeds={"x": SPECIAL})


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("float", ["1e-5", "1E8", "NaN", "inf", "-INF", "+INF", "3.14"]),
        ("int64", ["12", "-7", "0"]),
        ("double", ["0.1", "-1e300"]),
    ],
)
def test_cast_of_strings(kind: str, texts: list[str]) -> None:
    to = getattr(TensorProto, kind.upper())
    graph = f"(string[{len(texts)}] x) => ({kind}[{len(texts)}] y) {{ y = Cast<to = {to}>(x) }}"
    prove(graph, opset=9, target=26, feeds={"x": np.array(texts, object)})


@pytest.mark.parametrize("kind", ["float", "double", "int64", "uint8", "float16"])
def test_cast_to_strings(kind: str) -> None:
    given = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind.upper()))
    values = [1, 0, 7] if "int" in kind else [1e-5, 1.1, np.nan, np.inf, -np.inf, 1e20, -0.0]
    with np.errstate(over="ignore"):
        feeds = {"x": np.array(values, np.float64).astype(given)}
    graph = f"({kind}[{len(values)}] x) => (string[{len(values)}] y) {{ y = Cast<to = 8>(x) }}"
    prove(graph, opset=9, target=26, feeds=feeds)


def _cast_to_float8(kind: str, saturate: int) -> str:
    to = getattr(TensorProto, kind)
    return f"""(float[10] x) => (float[10] y)
        {{ t = Cast<to = {to}, saturate = {saturate}>(x) y = Cast<to = 1>(t) }}"""


@pytest.mark.parametrize("opset", [19, 21, 23])
@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", FLOAT8)
def test_cast_to_float8_and_back(kind: str, saturate: int, opset: int) -> None:
    graph = _cast_to_float8(kind, saturate)
    prove(graph, opset=opset, target=26, feeds={"x": SPECIAL})


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ"])
@pytest.mark.parametrize("execute", [run, lambda m, feeds: ReferenceEvaluator(m).run(None, feeds)])
def test_a_saturated_infinity_is_the_largest_number_since_19(
    kind: str, execute: Callable[..., Any]
) -> None:
    """The table of 24 says so; that of 19 has NaN here, which nothing ever computed."""
    model = parsed(_cast_to_float8(kind, 1), 19)
    (y,) = execute(model, {"x": SPECIAL})
    largest = float(ml_dtypes.finfo(kind.lower().replace("float8", "float8_")).max)
    assert y[1:3].tolist() == [largest, -largest]


def test_cast_28_is_as_9_was() -> None:
    """onnxruntime has no opset 28; the reference runs it."""
    model = parsed("(float[3] x) => (int64[3] y) { y = Cast<to = 7>(x) }", 9)
    (y,) = ReferenceEvaluator(converted(model, 28)).run(None, {"x": np.array([1.9, -1.9, 0])})
    assert y.tolist() == [1, -1, 0]


@pytest.mark.parametrize("kind", ["int32", "float16", "bool", "string"])
def test_cast_like(kind: str) -> None:
    graph = f"(float[3] x, {kind} z) => ({kind}[3] y) {{ y = CastLike(x, z) }}"
    prove(graph, opset=15, target=25, places=["main", "if", "loop"])


@pytest.mark.parametrize("opset", [19, 21])
@pytest.mark.parametrize("saturate", [0, 1])
def test_cast_like_a_float8(saturate: int, opset: int) -> None:
    graph = f"""(float[10] x) => (float[10] y) {{
        z = Cast<to = {TensorProto.FLOAT8E5M2}>(x)
        t = CastLike<saturate = {saturate}>(x, z)
        y = Cast<to = 1>(t)
    }}"""
    prove(graph, opset=opset, target=26, feeds={"x": SPECIAL})


# -- Constant and ConstantOfShape ----------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "int64", "string", "bool", "uint8", "double"])
def test_a_constant_tensor(kind: str) -> None:
    values = {"string": '{"a", "b"}'}.get(kind, "{0, 1}")
    graph = f"""({kind}[2] x) => ({kind}[2] y, {kind}[4] z)
        {{ y = Constant<value = {kind}[2] {values}>() z = Concat<axis = 0>(y, x) }}"""
    prove(graph, opset=9, target=26)


@pytest.mark.parametrize(
    ("attribute", "typed"),
    [
        ("value_int = 7", "int64"),
        ("value_ints = [1, 2]", "int64[2]"),
        ("value_float = 0.1", "float"),
        ("value_floats = [0.1, 2.0]", "float[2]"),
        ('value_string = "a"', "string"),
        ('value_strings = ["a", "ü"]', "string[2]"),
    ],
)
def test_a_constant_of_12(attribute: str, typed: str) -> None:
    graph = f"({typed} x) => ({typed} y) {{ y = Constant<{attribute}>() }}"
    prove(graph, opset=12, target=26)


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("opset", [11, 13])
def test_a_sparse_constant(opset: int, rank: int) -> None:
    values = numpy_helper.from_array(np.array([2.5, -1.0], np.float32), "values")
    places = np.array([1, 4]) if rank == 1 else np.array([[0, 1], [1, 2]])
    sparse = helper.make_sparse_tensor(
        values, numpy_helper.from_array(places, "places"), [6] if rank == 1 else [2, 3]
    )
    shape = "6" if rank == 1 else "2,3"
    model = parsed(f"(float[{shape}] x) => (float[{shape}] y) {{ y = Identity(x) }}", opset)
    constant = helper.make_node("Constant", [], ["c"], sparse_value=sparse)
    model.graph.node.insert(0, constant)
    model.graph.node[1].CopyFrom(helper.make_node("Add", ["x", "c"], ["y"]))
    after = converted(model, 26)
    onnx.checker.check_model(after, full_check=True)
    assert after.graph.node[0] == constant
    feeds = {"x": np.zeros(sparse.dims, np.float32)}
    np.testing.assert_array_equal(run(after, feeds)[0], run(model, feeds)[0])


@pytest.mark.parametrize("kind", ["float", "int64", "bool", "uint8", "float16", "int32"])
@pytest.mark.parametrize("sizes", [[2, 3], [0], []])
def test_constant_of_shape(sizes: list[int], kind: str) -> None:
    dims = ",".join(str(size) for size in sizes)
    typed = f"{kind}[{dims}]" if sizes else kind
    graph = f"""(int64[{len(sizes)}] s) => ({typed} y)
        {{ y = ConstantOfShape<value = {kind}[1] {{1}}>(s) }}"""
    prove(graph, opset=9, target=26, feeds={"s": np.array(sizes, np.int64)}, places=["main", "if"])


def test_a_constant_of_shape_is_0_by_default() -> None:
    prove(
        "(int64[1] s) => (float[N] y) { y = ConstantOfShape(s) }",
        opset=9,
        target=26,
        feeds={"s": np.array([3])},
    )


# -- EyeLike and Range ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "attributes", "y"),
    [
        ("float", "", "float"),
        ("int32", "<k = 1>", "int32"),
        ("float", "<dtype = 7, k = -1>", "int64"),
        ("int64", "<dtype = 11>", "double"),
    ],
)
def test_eye_like(x: str, attributes: str, y: str) -> None:
    graph = f"({x}[3,4] x) => ({y}[3,4] y) {{ y = EyeLike{attributes}(x) }}"
    prove(graph, opset=9, target=26)


STEPS = {
    "float": (0.5, 3.0, 0.7),
    "double": (1.0, -2.0, -0.1),
    "int16": (1, 9, 3),
    "int64": (5, 0, -2),
}


@pytest.mark.parametrize("kind", STEPS)
def test_range(kind: str) -> None:
    graph = f"({kind} a, {kind} b, {kind} c) => ({kind}[N] y) {{ y = Range(a, b, c) }}"
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind.upper()))
    feeds = dict(zip("abc", (np.array(one, dtype) for one in STEPS[kind]), strict=True))
    prove(graph, opset=11, target=26, feeds=feeds)
    model = parsed(graph, 11)
    (actual,) = ReferenceEvaluator(converted(model, 28)).run(None, feeds)
    np.testing.assert_array_equal(actual, ReferenceEvaluator(model).run(None, feeds)[0])
