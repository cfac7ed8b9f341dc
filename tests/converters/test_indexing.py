"""The steps of ops that pick, place, order or find elements, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from calls import prove_call
from onnx.reference import ReferenceEvaluator
from proving import converted, initializers, ops, parsed, prove

pytestmark = pytest.mark.sampled

# -- TopK ----------------------------------------------------------------------------------

TIES = np.array([[1, 3, 3, -2], [2, 2, 2, 2], [np.nan, 0, np.inf, -np.inf]], np.float32)


@pytest.mark.parametrize("target", [10, 11, 24, 26])
@pytest.mark.parametrize(
    ("attributes", "shape"),
    [("k = 2", "3,2"), ("k = 3, axis = 1", "3,3"), ("k = 1, axis = 0", "1,4"), ("k = 4", "3,4")],
)
def test_top_k_1(attributes: str, shape: str, target: int) -> None:
    graph = f"""(float[3,4] x) => (float[{shape}] y, int64[{shape}] at)
        {{ y, at = TopK<{attributes}>(x) }}"""
    after = prove(graph, opset=7, target=target, feeds={"x": TIES})
    (k,) = initializers(after).values()
    assert len(k) == 1


def test_top_k_1_of_a_value_of_unknown_rank() -> None:
    graph = """(float[12] x, int64[R] s) => (float[A,B] y, int64[A,B] at)
        { u = Reshape(x, s) y, at = TopK<k = 2>(u) }"""
    prove(graph, opset=7, target=26, feeds={"s": np.array([3, 4])})


def test_top_k_1_where_the_caller_says_how_many() -> None:
    model = "(float[3,4] x) => (float[3,2] y, int64[3,2] at) { y, at = local.F<n = 2>(x) }"
    function = "F <n> (x) => (y, at) { y, at = TopK<k: int = @n>(x) }"
    found = prove_call(model, function, opset=7, target=26)
    assert found == ["Constant", "Constant", "Reshape", "TopK"]


def test_top_k_10() -> None:
    graph = """(float[3,4] x, int64[1] k) => (float[3,K] y, int64[3,K] at) { y, at = TopK(x, k) }"""
    prove(graph, opset=10, target=26, feeds={"x": TIES, "k": np.array([3])})


@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
def test_top_k_11_of_the_smallest(kind: str) -> None:
    graph = f"""({kind}[3,4] x, int64[1] k) => ({kind}[3,K] y, int64[3,K] at)
        {{ y, at = TopK<axis = -1, largest = 0, sorted = 1>(x, k) }}"""
    prove(graph, opset=11, target=26, feeds={"k": np.array([2])})


# -- Scatter -------------------------------------------------------------------------------

PLACES = {"at": np.array([[1, 0, 2], [0, 2, 1]])}
SCATTER = """({kind}[3,3] x, {index}[2,3] at, {kind}[2,3] u) => ({kind}[3,3] y)
    {{ y = {op}{attributes}(x, at, u) }}"""


@pytest.mark.parametrize("target", [11, 13, 18, 26])
@pytest.mark.parametrize("kind", ["float", "string", "int64", "bool"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("attributes", ["", "<axis = 0>", "<axis = 1>", "<axis = -2>"])
def test_scatter_is_called_scatter_elements(
    attributes: str, index: str, kind: str, target: int
) -> None:
    graph = SCATTER.format(kind=kind, index=index, attributes=attributes, op="Scatter")
    feeds = {"at": PLACES["at"].astype(index)}
    assert ops(prove(graph, opset=9, target=target, feeds=feeds)) == ["ScatterElements"]


@pytest.mark.parametrize(
    ("opset", "attributes"),
    [
        (11, ""),
        (13, "<axis = -1>"),
        (16, '<reduction = "add">'),
        (16, '<reduction = "mul">'),
        (18, '<reduction = "max">'),
    ],
)
def test_scatter_elements(opset: int, attributes: str) -> None:
    graph = SCATTER.format(kind="float", index="int64", attributes=attributes, op="ScatterElements")
    prove(graph, opset=opset, target=26, feeds=PLACES)


@pytest.mark.parametrize(
    ("opset", "attributes"),
    [(11, ""), (13, ""), (16, '<reduction = "add">'), (16, '<reduction = "mul">')],
)
def test_scatter_nd(opset: int, attributes: str) -> None:
    graph = f"""(float[4,2] x, int64[2,1] at, float[2,2] u) => (float[4,2] y)
        {{ y = ScatterND{attributes}(x, at, u) }}"""
    prove(graph, opset=opset, target=26, feeds={"at": np.array([[3], [1]])})


# -- identical steps -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "axis", "shape"),
    [
        *((kind, 0, "2,2,4") for kind in ("float", "bool", "int8")),
        *((kind, axis, "3,2,2") for kind in ("float", "string") for axis in (1, -1)),
    ],
)
def test_gather(kind: str, axis: int, shape: str) -> None:
    """Strings along the last axis only: of longer slices onnxruntime copies one string."""
    graph = f"""({kind}[3,4] x, int64[2,2] at) => ({kind}[{shape}] y)
        {{ y = Gather<axis = {axis}>(x, at) }}"""
    prove(graph, opset=7, target=26, feeds={"at": np.array([[0, 2], [1, 1]])})


def test_gather_11_of_negative_indices() -> None:
    graph = "(float[3,4] x, int32 at) => (float[4] y) { y = Gather(x, at) }"
    prove(graph, opset=11, target=26, feeds={"at": np.array(-1, np.int32)})


@pytest.mark.parametrize("axis", [0, -1])
def test_gather_elements(axis: int) -> None:
    graph = f"""(float[3,3] x, int64[2,3] at) => (float[2,3] y)
        {{ y = GatherElements<axis = {axis}>(x, at) }}"""
    prove(graph, opset=11, target=26, feeds={"at": np.array([[0, -1, 2], [1, 1, 0]])})


@pytest.mark.parametrize(
    ("opset", "attributes", "shape"),
    [(11, "", "2,2"), (12, "<batch_dims = 0>", "2,2"), (12, "<batch_dims = 1>", "2,2")],
)
def test_gather_nd(opset: int, attributes: str, shape: str) -> None:
    graph = f"""(float[2,2,2] x, int64[2,{"1" if "1" in attributes else "2"}] at)
        => (float[{shape}] y) {{ y = GatherND{attributes}(x, at) }}"""
    index = [[1], [0]] if "1" in attributes else [[0, 1], [-1, 0]]
    prove(graph, opset=opset, target=26, feeds={"at": np.array(index)})


@pytest.mark.parametrize(
    ("index", "depth", "kind"),
    [
        ("int64", "int64", "float"),
        ("int64", "int64", "string"),
        ("int64", "float", "int32"),
        ("int32", "int32", "float"),
        ("float", "int64", "int64"),
        ("float", "float", "float"),
    ],
)
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int, index: str, depth: str, kind: str) -> None:
    """7 is out of range and gives nothing but off values."""
    graph = f"""({index}[4] at, {depth}[1] d, {kind}[2] v) => ({kind}[A,B] y)
        {{ y = OneHot<axis = {axis}>(at, d, v) }}"""
    dtypes = {"float": "float32"}
    feeds = {
        "at": np.array([0, 2, 7, 1], dtypes.get(index, index)),
        "d": np.array([3], dtypes.get(depth, depth)),
    }
    prove(graph, opset=9, target=26, feeds=feeds)


def test_one_hot_wraps_negative_indices_since_9() -> None:
    """Version 9 wants none, and says of what is out of range that it gives off values only."""
    graph = """(int64[3] at, int64[1] d, float[2] v) => (float[3,3] y) { y = OneHot(at, d, v) }"""
    feeds = {"at": np.array([-1, -3, -4]), "d": np.array([3])}
    prove(graph, opset=9, target=26, feeds=feeds)


@pytest.mark.parametrize("kind", ["float", "bool", "int32", "int64", "uint8"])
def test_non_zero(kind: str) -> None:
    prove(
        f"({kind}[2,3] x) => (int64[2,N] y) {{ y = NonZero(x) }}",
        opset=9,
        target=26,
        feeds={"x": np.array([[0, 1, 0], [2, 0, 3]]).astype(kind.replace("float", "f4"))},
    )


@pytest.mark.parametrize(
    ("opset", "attributes", "shape"),
    [(9, "", "N"), (9, "<axis = 0>", "N,3"), (9, "<axis = 1>", "2,N"), (11, "<axis = -1>", "2,N")],
)
def test_compress(opset: int, attributes: str, shape: str) -> None:
    graph = f"(float[2,3] x, bool[2] c) => (float[{shape}] y) {{ y = Compress{attributes}(x, c) }}"
    prove(graph, opset=opset, target=26, feeds={"c": np.array([False, True])})


@pytest.mark.parametrize("opset", [10, 11])
@pytest.mark.parametrize("threshold", [0.5, 1 / 3])
def test_non_max_suppression(opset: int, threshold: float) -> None:
    """Boxes 0 and 1 overlap by exactly 1/3, which is not more than 1/3."""
    boxes = np.array([[[0, 0, 2, 2], [0, 1, 2, 3], [5, 5, 6, 6], [0, 0, 2, 1.9]]], np.float32)
    graph = """(float[1,4,4] b, float[1,1,4] s, int64[1] n, float[1] o) => (int64[N,3] y)
        { y = NonMaxSuppression(b, s, n, o) }"""
    feeds = {
        "b": boxes,
        "s": np.array([[[0.9, 0.8, 0.7, 0.6]]], np.float32),
        "n": np.array([4]),
        "o": np.array([threshold], np.float32),
    }
    prove(graph, opset=opset, target=26, feeds=feeds)


AT_28 = {
    "Compress": "(float[2,3] x, bool[2] c) => (float[N] y) { y = Compress(x, c) }",
    "OneHot": "(int64[3] x, int64 d, float[2] c) => (float[3,D] y) { y = OneHot(x, d, c) }",
    "ReverseSequence": """(float[3,2] x, int64[2] c) => (float[3,2] y)
        { y = ReverseSequence(x, c) }""",
    "Unique": "(float[6] x) => (float[N] y, int64[N] at) { y, at = Unique(x) }",
}


@pytest.mark.parametrize("op", AT_28)
def test_28_is_as_11_was(op: str) -> None:
    """onnxruntime has no opset 28; the reference runs it."""
    model = parsed(AT_28[op], 11)
    after = converted(model, 28)
    onnx.checker.check_model(after, full_check=True)
    assert list(after.graph.node) == list(model.graph.node)
    numbers = np.random.default_rng(2)
    feeds = {
        "Compress": {"x": numbers.normal(size=(2, 3)), "c": np.array([False, True])},
        "OneHot": {"x": np.array([0, 2, 1]), "d": np.array(3), "c": np.array([5.0, 6.0])},
        "ReverseSequence": {"x": numbers.normal(size=(3, 2)), "c": np.array([1, 3])},
        "Unique": {"x": np.array([2, 1, 1, 3, 2, 9.0])},
    }[op]
    before_values, after_values = (ReferenceEvaluator(m).run(None, feeds) for m in (model, after))
    for expected, actual in zip(before_values, after_values, strict=True):
        np.testing.assert_array_equal(actual, expected)
