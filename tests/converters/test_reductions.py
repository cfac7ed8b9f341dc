"""The steps of reductions along axes, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from calls import prove_call
from onnx import AttributeProto
from onnx.reference import ReferenceEvaluator
from proving import converted, ops, parsed, prove, run

pytestmark = pytest.mark.sampled

REDUCTIONS = [
    f"Reduce{name}"
    for name in [
        "L1",
        "L2",
        "LogSum",
        "LogSumExp",
        "Max",
        "Mean",
        "Min",
        "Prod",
        "Sum",
        "SumSquare",
    ]
]
POSITIVE = {"x": np.random.default_rng(5).uniform(0.5, 3, (2, 3, 4)).astype(np.float32)}


def _graph(op: str, attributes: str, shape: str, kind: str = "float") -> str:
    given = f"<{attributes}>" if attributes else ""
    graph = f"({kind}[2,3,4] x) => ({kind}[{shape}] y) {{ y = {op}{given}(x) }}"
    return graph.replace("[]", "")


@pytest.mark.parametrize("target", [13, 18, 26])
@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ("", "1,1,1"),
        ("keepdims = 0", ""),
        ("axes = [1]", "2,1,4"),
        ("axes = [2, 0]", "1,3,1"),
        ("axes = [0, 2], keepdims = 0", "3"),
        ("axes = [0, 1, 2], keepdims = 1", "1,1,1"),
    ],
)
def test_reductions(op: str, attributes: str, shape: str, target: int) -> None:
    (node,) = prove(
        _graph(op, attributes, shape), opset=7, target=target, feeds=POSITIVE
    ).graph.node
    step = 13 if op == "ReduceSum" else 18
    assert len(node.input) == (2 if "axes" in attributes and target >= step else 1)
    assert all(one.name == "keepdims" for one in node.attribute) or target < step


@pytest.mark.parametrize("op", REDUCTIONS)
def test_negative_axes(op: str) -> None:
    prove(_graph(op, "axes = [-1, 0]", "1,3,1"), opset=11, target=26, feeds=POSITIVE)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_an_empty_list_of_axes_means_all(op: str) -> None:
    """ONNX text cannot say an empty list."""
    model = parsed(_graph(op, "", "1,1,1"), 7)
    model.graph.node[0].attribute.append(AttributeProto(name="axes", type=AttributeProto.INTS))
    after = converted(model, 26)
    onnx.checker.check_model(after, full_check=True)
    assert list(after.graph.node[0].input) == ["x", "axes"]
    np.testing.assert_array_equal(run(after, POSITIVE)[0], run(model, POSITIVE)[0])


@pytest.mark.parametrize("op", REDUCTIONS)
def test_an_unknown_rank(op: str) -> None:
    graph = f"""(float[24] x, int64[R] s) => (float[A,1,C] y)
        {{ u = Reshape(x, s) y = {op}<axes = [1]>(u) }}"""
    feeds = {"s": np.array([2, 3, 4]), "x": POSITIVE["x"].ravel()}
    prove(graph, opset=7, target=26, feeds=feeds)


@pytest.mark.parametrize(
    "op", ["ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare", "ReduceProd"]
)
def test_an_axis_of_size_0(op: str) -> None:
    graph = f"(float[2,N] x) => (float[2] y) {{ y = {op}<axes = [1], keepdims = 0>(x) }}"
    feeds = {"x": np.zeros((2, 0), np.float32)}
    prove(graph, opset=7, target=26, feeds=feeds)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"])
@pytest.mark.parametrize("kind", ["int32", "int64", "double"])
def test_other_types(op: str, kind: str) -> None:
    prove(_graph(op, "axes = [1]", "2,1,4", kind), opset=7, target=26)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_bytes_from_12_on(op: str, kind: str) -> None:
    prove(_graph(op, "axes = [1]", "2,1,4", kind), opset=12, target=26)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_special_values(op: str) -> None:
    x = np.array([[np.nan, 1], [np.inf, -np.inf], [-0.0, 0.0]], np.float32)
    graph = f"(float[3,2] x) => (float[3] y) {{ y = {op}<axes = [1], keepdims = 0>(x) }}"
    prove(graph, opset=7, target=26, feeds={"x": x})


@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes_that_a_call_gives(op: str) -> None:
    model = "(float[2,3,4] x) => (float[2,1,4] y) { y = local.F<at = [1]>(x) }"
    function = f"F <at> (x) => (y) {{ y = {op}<axes: ints = @at>(x) }}"
    assert prove_call(model, function, opset=7, target=26, feeds=POSITIVE) == ["Constant", op]


def test_reduce_sum_13_with_axes_as_input() -> None:
    graph = """(float[2,3] x, int64[A] a) => (float[2,3] y)
        { y = ReduceSum<noop_with_empty_axes = 1>(x, a) }"""
    prove(graph, opset=13, target=26, feeds={"a": np.zeros(0, np.int64)})


# -- ReduceLogSum and ReduceLogSumExp 28 ---------------------------------------------------


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize(
    ("op", "expected"), [("ReduceLogSum", [[2], [0]]), ("ReduceLogSumExp", [[5], [1]])]
)
def test_logarithms_of_integers_are_taken_in_double(
    op: str, expected: list[list[int]], kind: str
) -> None:
    """onnxruntime has no opset 28, the reference no integers at 18: log(13) and log(2e^5 + ...)."""
    graph = f"""({kind}[2,3] x, int64[1] a) => ({kind}[2,1] y) {{ y = {op}(x, a) }}"""
    feeds = {"x": np.array([[5, 4, 4], [1, 0, 0]], kind), "a": np.array([1])}
    after = converted(parsed(graph, 18), 28)
    onnx.checker.check_model(after, full_check=True)
    assert ops(after) == ["Cast", op, "Cast"]
    (actual,) = ReferenceEvaluator(after).run(None, feeds)
    assert actual.dtype == kind
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("op", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_of_int32_as_onnxruntime_has_them(op: str) -> None:
    graph = f"(int32[3,2] x, int64[1] a) => (int32[3,1] y) {{ y = {op}(x, a) }}"
    model = parsed(graph, 18)
    feeds = {"x": np.array([[9, 2], [20, 20], [7, 100]], np.int32), "a": np.array([1])}
    (actual,) = ReferenceEvaluator(converted(model, 28)).run(None, feeds)
    np.testing.assert_array_equal(actual, run(model, feeds)[0])


@pytest.mark.parametrize("op", ["ReduceLogSum", "ReduceLogSumExp"])
def test_logarithms_of_floats_stay(op: str) -> None:
    model = parsed(f"(float[2,3,4] x) => (float[1,1,1] y) {{ y = {op}(x) }}", 18)
    after = converted(model, 28)
    assert ops(after) == [op]
    expected = ReferenceEvaluator(model).run(None, POSITIVE)
    np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, POSITIVE), expected)


# -- identical steps -----------------------------------------------------------------------

TIES = np.array([[1, 3, 3], [2, 2, 2], [np.nan, 0, np.nan]], np.float32)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("attributes", ["axis = 0", "axis = 1", "axis = 1, keepdims = 0"])
def test_of_equal_extremes_the_first_wins(op: str, attributes: str) -> None:
    shape = "3" if "keepdims" in attributes else ("1,3" if "axis = 0" in attributes else "3,1")
    graph = f"(float[3,3] x) => (int64[{shape}] y) {{ y = {op}<{attributes}>(x) }}"
    prove(graph, opset=7, target=26, feeds={"x": TIES})


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg_12_of_equal_extremes_the_last_may_win(op: str) -> None:
    graph = f"""(float[3,3] x) => (int64[3,1] y)
        {{ y = {op}<axis = -1, select_last_index = 1>(x) }}"""
    prove(graph, opset=12, target=26, feeds={"x": TIES})


@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64"])
@pytest.mark.parametrize("attributes", ["", "<exclusive = 1>", "<reverse = 1, exclusive = 1>"])
def test_cum_sum_14(kind: str, attributes: str) -> None:
    graph = f"({kind}[2,3] x, int64 a) => ({kind}[2,3] y) {{ y = CumSum{attributes}(x, a) }}"
    prove(graph, opset=11, target=26, feeds={"a": np.array(-1)})
