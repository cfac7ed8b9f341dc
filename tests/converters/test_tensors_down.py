"""Constants, casts, ranges, Clip and Dropout on their way to older opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from proving import drawn, ops, parsed, run
from proving_down import (
    GRAPHS,
    assert_stopped,
    attributes,
    prove_down,
    went_down,
)
from refusing import refusal

pytestmark = pytest.mark.sampled

# -- Constant, Cast and what makes tensors -------------------------------------------------


@pytest.mark.parametrize("target", [11, 10, 8, 7])
@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("value_int = 3", "int64"),
        ("value_ints = [3, 4]", "int64[2]"),
        ("value_float = 0.5", "float"),
        ("value_floats = [0.5, 1.5]", "float[2]"),
        ('value_string = "a"', "string"),
        ('value_strings = ["a", "b"]', "string[2]"),
        ("value = int64[2] {1, 2}", "int64[2]"),
        ("value = float[2] {1, 2}", "float[2]"),
    ],
)
def test_constant(said: str, kind: str, target: int) -> None:
    graph = f"(float x) => ({kind} y) {{ y = Constant<{said}>() }}"
    model = prove_down(graph, opset=13, target=target, places=GRAPHS)
    assert ops(model) == ["Identity" if target < 9 and not kind.startswith("f") else "Constant"]


def test_a_constant_that_the_caller_gives_is_refused() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "local": 1]>
        graph (float x) => (int64 y) { y = local.F<n = 3>(x) }
        <domain: "local", opset_import: ["": 13]>
        F <n> (x) => (y) { y = Constant<value_int: int = @n>() }"""
    )
    assert_stopped(model, opset=13, target=11, why="refers to the function's attribute 'n'")


@pytest.mark.parametrize("places", [[1, 5], [[0, 1], [1, 2]]])
def test_a_sparse_constant_becomes_dense(places: list[int] | list[list[int]]) -> None:
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([2.5, 1.0], np.float32)),
        numpy_helper.from_array(np.array(places)),
        [2, 3],
    )
    model = parsed("(float[2,3] x) => (float[2,3] y) { y = Identity(x) }", 11)
    constant = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
    model.graph.node[0].CopyFrom(constant)
    after = went_down(model, 10)
    dense = numpy_helper.to_array(after.graph.node[0].attribute[0].t)
    np.testing.assert_array_equal(dense, [[0, 2.5, 0], [0, 0, 1.0]])


@pytest.mark.parametrize("target", [18, 14, 13, 9, 7])
def test_cast_like(target: int) -> None:
    graph = "(float[3] x, int32[1] l) => (int32[3] y) { y = CastLike(x, l) }"
    model = prove_down(graph, opset=19, target=target)
    assert ops(model) == ["CastLike" if target > 14 else "Cast"]


def test_cast_like_of_an_unknown_type_is_refused() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 15, "local": 1]>
        graph (float x, float l, int64 m) => (float y, int64 z)
            { y = local.F(x, l) z = local.F(x, m) }
        <domain: "local", opset_import: ["": 15]>
        F (x, l) => (y) { y = CastLike(x, l) }"""
    )
    assert_stopped(model, opset=15, target=14, why="the element type of 'l' is not known")


@pytest.mark.parametrize("target", [18, 9, 7])
@pytest.mark.parametrize("to", ["int32", "int64", "bool", "double"])
def test_attributes_of_cast_that_bear_on_new_types_go(to: str, target: int) -> None:
    """onnxruntime takes `saturate` for these new types only."""
    number = TensorProto.DataType.Value(to.upper())
    graph = f"""(float[3] x) => ({to}[3] y)
        {{ y = Cast<to = {number}, saturate = 0, round_mode = "down">(x) }}"""
    after = went_down(parsed(graph, 24), target)
    assert attributes(after) == [{"to": number}]
    feeds = drawn(after)
    np.testing.assert_array_equal(run(after, feeds)[0], feeds["x"].astype(to))


def test_what_cast_is_refused_for() -> None:
    graph = "(float[3] x) => ({kind}[3] y) {{ y = Cast<to = {to}, saturate = 0>(x) }}"
    fp8 = graph.format(kind="float8e4m3fn", to=TensorProto.FLOAT8E4M3FN)
    assert_stopped(fp8, opset=19, target=18, why="Cast takes no float8e4m3fn at opset 18")
    text = graph.format(kind="string", to=TensorProto.STRING).replace(", saturate = 0", "")
    assert_stopped(text, opset=13, target=8, why="Cast takes no string at opset 8")


@pytest.mark.parametrize("attribute", ["", "<k = 1>", "<k = -1, dtype = 7>"])
def test_eye_like(attribute: str) -> None:
    kind = "int64" if "dtype" in attribute else "float"
    graph = f"(float[2,3] x) => ({kind}[2,3] y) {{ y = EyeLike{attribute}(x) }}"
    prove_down(graph, opset=22, target=8, places=GRAPHS)
    unknown = graph.replace("[2,3]", "[2,N]")
    assert "the sizes of 'x' are not known" in refusal(unknown, opset=22, target=8)


NUMBERS = [(1, 7, 2), (1, 8, 2), (5, 0, -2), (0, 0, 1), (3, 1, 1), (-4, 4, 3)]


@pytest.mark.parametrize("kind", ["int32", "int64", "float", "double"])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_range(numbers: tuple[int, int, int], kind: str) -> None:
    graph = f"({kind} s, {kind} l, {kind} d) => ({kind}[N] y) {{ y = Range(s, l, d) }}"
    feeds = {name: np.array(one, NUMPY[kind]) for name, one in zip("sld", numbers, strict=True)}
    model = prove_down(graph, opset=11, target=9, feeds=feeds, places=["main", "if"])
    assert "NonZero" in ops(model)
    start, limit, delta = numbers
    said = f"{kind} s = {{{start}}}, {kind} l = {{{limit}}}, {kind} d = {{{delta}}}"
    graph = f"({kind} x) => ({kind}[N] y) <{said}> {{ y = Range(s, l, d) }}"
    prove_down(graph, opset=11, target=7, places=["main", "if"])


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int64"])
def test_range_27(kind: str) -> None:
    """onnxruntime has no opset 27."""
    graph = (
        f"({kind} s, {kind} l, {kind} d) => ({kind}[N] y) {{ y = Range<stash_type = 1>(s, l, d) }}"
    )
    model = parsed(graph, 27)
    dtype = helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    feeds = {name: np.array(one).astype(dtype) for name, one in (("s", 1), ("l", 9), ("d", 3))}
    after = went_down(model, 26)
    for one in (model, after):
        (actual,) = ReferenceEvaluator(one).run(None, feeds)
        np.testing.assert_array_equal(actual.astype(np.int64), [1, 4, 7])
        assert actual.dtype == dtype


@pytest.mark.parametrize(
    ("source", "to"),
    [
        ("int32", "uint32"),
        ("uint8", "int8"),
        ("bool", "uint8"),
        ("int64", "uint64"),
        ("float", "float"),
    ],
)
def test_bit_cast_of_integers(source: str, to: str) -> None:
    number = TensorProto.DataType.Value(to.upper())
    graph = f"({source}[3] x) => ({to}[3] y) {{ y = BitCast<to = {number}>(x) }}"
    model = parsed(graph, 26)
    feeds = drawn(model)
    expected = feeds["x"].view(to.replace("float", "float32"))
    np.testing.assert_array_equal(run(went_down(model, 13), feeds)[0], expected)


def test_bit_cast_of_a_float_is_refused() -> None:
    graph = "(float[3] x) => (int32[3] y) { y = BitCast<to = 6>(x) }"
    assert "no older op takes the bits of float for int32" in refusal(graph, opset=26, target=25)


# -- Clip ----------------------------------------------------------------------------------

NUMPY = {"float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64}
EDGES = [-np.inf, -5.0, -1.0, 0.0, 1.0, 5.0, np.inf, np.nan]


@pytest.mark.parametrize("target", [12, 10, 8])
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.parametrize("bounds", ["", ", l", ", , u", ", l, u", ", u, l"])
def test_clip(bounds: str, kind: str, target: int) -> None:
    graph = f"""({kind}[8] x) => ({kind}[8] y) <{kind} l = {{-1}}, {kind} u = {{2.5}}>
        {{ y = Clip(x{bounds}) }}"""
    edges = np.array(EDGES, NUMPY[kind])
    ordinary = {"x": np.where(np.isinf(edges), 7, edges)}
    model = prove_down(graph, opset=13, target=target, feeds=ordinary, places=GRAPHS)
    (expected,) = ReferenceEvaluator(parsed(graph, 13)).run(None, {"x": edges})
    (actual,) = ReferenceEvaluator(model).run(None, {"x": edges})
    np.testing.assert_array_equal(actual, expected)  # onnxruntime's Clip-13 clips an infinity
    as_attributes = kind == "float" and bounds != ", u, l"
    assert ("Clip" in ops(model)) == (target > 10 or as_attributes)


@pytest.mark.parametrize("target", [11, 10, 8])
def test_clip_by_computed_bounds(target: int) -> None:
    graph = "(float[8] x, float l, float u) => (float[8] y) { y = Clip(x, l, u) }"
    feeds = {"x": np.array(EDGES, np.float32), "l": np.float32(-2), "u": np.float32(3)}
    given = {name: np.asarray(value) for name, value in feeds.items()}
    made = ops(prove_down(graph, opset=13, target=target, feeds=given))
    assert made == (["Clip"] if target > 10 else ["Max", "Min"])


@pytest.mark.parametrize("target", [11, 9])
@pytest.mark.parametrize("bounds", ["", ", l", ", , u", ", l, u", ", u, l"])
@pytest.mark.parametrize("kind", ["int64", "int32", "int8", "uint8"])
def test_clip_of_integers(kind: str, bounds: str, target: int) -> None:
    graph = f"""({kind}[2,4] x) => ({kind}[2,4] y) <{kind} l = {{1}}, {kind} u = {{4}}>
        {{ y = Clip(x{bounds}) }}"""
    prove_down(graph, opset=13, target=target, places=["main", "if"])


def test_clip_of_float16() -> None:
    graph = "(float16[3] x) => (float16[3] y) { y = Clip(x, l) }"
    model = parsed(graph, 13)
    model.graph.initializer.append(numpy_helper.from_array(np.array(-1, np.float16), "l"))
    assert ops(prove_down(model, opset=13, target=10, places=GRAPHS)).count("Clip") == 0


# -- Dropout -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [12, 11, 10, 9, 7])
@pytest.mark.parametrize("inputs", ["x", "x, r", "x, r, t", "x, , t"])
def test_dropout_that_does_not_train(inputs: str, target: int) -> None:
    graph = f"""(float[2,3] x) => (float[2,3] y, bool[2,3] m)
        <float r = {{0.25}}, bool t = {{0}}> {{ y, m = Dropout<seed = 3>({inputs}) }}"""
    places = ["main", "if", "loop"] if target > 8 else ["main"]
    model = prove_down(graph, opset=13, target=target, places=places)
    if "r" in inputs and target < 12:
        assert attributes(model)[0] == {"ratio": 0.25}


@pytest.mark.parametrize("target", [9, 7])
def test_the_mask_of_dropout_10(target: int) -> None:
    graph = "(float[2] x) => (float[2] y, bool[2] m) { y, m = Dropout(x) }"
    assert ops(prove_down(graph, opset=10, target=target)) == ["Dropout", "Cast"]


def test_what_dropout_is_refused_for() -> None:
    graph = "(float[2] x, float r, bool t) => (float[2] y) { y = Dropout(x, r, t) }"
    assert "only 't' says, at run time, whether Dropout trains" in refusal(
        graph, opset=13, target=11
    )
    trains = graph.replace(", bool t)", ")").replace("{ y", "<bool t = {1}> { y")
    assert "Dropout trains, which Dropout-10 does not" in refusal(trains, opset=13, target=11)
