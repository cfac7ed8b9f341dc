"""The steps of reductions along axes, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from calls import prove_call
from onnx import AttributeProto
from onnx.reference import ReferenceEvaluator
from proving import converted, drawn, ops, parsed, prove, run

from passes.rule import Refused

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


# -- down -----------------------------------------------------------------------------------

AXES_DOWN = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare", "Sum"]


@pytest.mark.parametrize("target", [12, 9])
@pytest.mark.parametrize("name", AXES_DOWN)
@pytest.mark.parametrize("axes", ["-1, 0", "1", ""])
def test_axes_become_an_attribute(name: str, axes: str, target: int) -> None:
    given, fixed = (", a", f"<int64[{axes.count(',') + 1}] a = {{{axes}}}>") if axes else ("", "")
    rank = 0 if not axes else 3 - 1 - axes.count(",")
    dims = ",".join("ABC"[:rank])
    graph = f"""(float[2,3,4] x) => (float[{dims}] y) {fixed}
        {{ p = Abs(x) y = Reduce{name}<keepdims = 0>(p{given}) }}""".replace("[]", "")
    after = prove(graph, opset=18, target=target, places=["main", "loop"], rtol=1e-6)
    (node,) = after.graph.node[1:]
    assert len(node.input) == 1
    found = {one.name: list(one.ints) for one in node.attribute if one.name == "axes"}
    wanted = {"-1, 0": [-1, 0] if target > 10 else [0, 2], "1": [1]}
    assert found == ({"axes": wanted[axes]} if axes else {})


@pytest.mark.parametrize("name", AXES_DOWN)
def test_no_axes_and_nothing_to_do(name: str) -> None:
    graph = f"""(float[2,3] x) => (float[2,3] y) <int64[0] a = {{}}>
        {{ y = Reduce{name}<noop_with_empty_axes = 1>(x, a) }}"""
    becomes = {"L1": "Abs", "L2": "Abs", "LogSum": "Log", "SumSquare": "Mul"}
    after = converted(parsed(graph, 18), 12)
    assert ops(after) == [becomes.get(name, "Identity")]
    graph = f"""(float[2,3] x) => (float[1,3] y) <int64[1] a = {{0}}>
        {{ y = Reduce{name}<noop_with_empty_axes = 1>(x, a) }}"""
    assert ops(prove(graph, opset=18, target=12, places=["main"], rtol=1e-6)) == [f"Reduce{name}"]


def test_axes_that_are_not_fixed_are_refused() -> None:
    model = parsed("(float[2,3] x, int64[1] a) => (float[A,B] y) { y = ReduceSum(x, a) }", 13)
    with pytest.raises(Refused, match="ReduceSum takes axes from 'a', which is only known"):
        converted(model, 12)


def test_negative_axes_of_an_unknown_rank_are_refused() -> None:
    graph = """(float[6] x, int64[R] s) => (float[A] y) {
        u = Reshape(x, s)
        y = ReduceMax<axes = [-1]>(u)
    }"""
    with pytest.raises(Refused) as refused:
        converted(parsed(graph, 11), 10)
    assert refused.value.code == "unknown-rank"


@pytest.mark.parametrize("shape", ["2,3", "2,0"])
@pytest.mark.parametrize("name", ["Max", "Min"])
@pytest.mark.parametrize("kind", ["bool", "int8", "uint8"])
def test_bytes_and_booleans_down(kind: str, name: str, shape: str) -> None:
    graph = f"""({kind}[{shape}] x) => ({kind}[2] y) <int64[1] a = {{1}}>
        {{ y = Reduce{name}<keepdims = 0>(x, a) }}"""
    model = parsed(graph, 20)
    feeds = drawn(model)
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    for target in (18, 11, 9):
        after = converted(model, target)
        if target < 18:  # 18 takes uint8, by way of which booleans go in any case
            onnx.checker.check_model(after, full_check=True)
        (found,) = ReferenceEvaluator(after).run(None, feeds)
        assert (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize("dims", ["3,4", "A,B"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_the_last_index_down(op: str, axis: int, dims: str) -> None:
    graph = f"""(float[{dims}] x) => (int64[M,N] y)
        {{ y = {op}<axis = {axis}, select_last_index = 1>(x) }}"""
    x = np.array([[1, 2, 2, 1], [2, 1, 2, 2], [1, 2, 1, 1]], np.float32)
    for target in (11, 9)[: 2 if dims == "3,4" else 1]:
        after = prove(graph, opset=12, target=target, feeds={"x": x}, places=["main", "if"])
        assert (ops(after)[0] == "Gather") == (dims == "3,4")


@pytest.mark.parametrize("attributes", ["", "exclusive = 1", "reverse = 1, exclusive = 1"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dims", ["2,3,4", "A,B,C", "2,0,4"])
def test_cumulative_sum_down(dims: str, axis: int, attributes: str) -> None:
    graph = f"""(float[{dims}] x) => (float[{dims}] y) <int64 a = {{{axis}}}>
        {{ y = CumSum<{attributes}>(x, a) }}""".replace("<>", "")
    after = prove(graph, opset=14, target=9, places=["main", "if", "loop"])
    assert "Scan" in ops(after)


@pytest.mark.parametrize("kind", ["int64", "double"])
@pytest.mark.parametrize("attributes", ["", "exclusive = 1", "reverse = 1"])
def test_cumulative_product_down(attributes: str, kind: str) -> None:
    graph = f"""({kind}[2,3] x) => ({kind}[2,3] y) <int64 a = {{1}}>
        {{ y = CumProd<{attributes}>(x, a) }}""".replace("<>", "")
    model = parsed(graph, 26)
    feeds = drawn(model)
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    for target in (25, 13, 9):
        after = converted(model, target)
        onnx.checker.check_model(after, full_check=True)
        if target <= 13:
            np.testing.assert_array_equal(run(after, feeds)[0], expected)


def test_a_cumulative_sum_along_an_unknown_axis_is_refused() -> None:
    model = parsed("(float[2,3] x, int64 a) => (float[2,3] y) { y = CumSum(x, a) }", 14)
    with pytest.raises(Refused, match="the axis of CumSum is only known at run time"):
        converted(model, 10)


def test_logarithms_of_reductions_leave_28() -> None:
    model = parsed("(float[2,3] x) => (float[1,1] y) { y = ReduceLogSumExp(x) }", 28)
    assert ops(converted(model, 17)) == ["ReduceLogSumExp"]
