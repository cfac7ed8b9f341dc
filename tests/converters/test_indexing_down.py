"""Ops that pick, place, order or find elements, on the way down."""

from __future__ import annotations

import numpy as np
import pytest
from proving import EVERYWHERE, ops
from proving_down import assert_stopped, prove_down

pytestmark = pytest.mark.sampled

OLD = ["main", "if", "loop"]  # in a function constants are nodes, and Constant-1 holds floats only


def _places(target: int) -> list[str]:
    return list(EVERYWHERE) if target > 8 else OLD


# -- TopK ----------------------------------------------------------------------------------

TOP_K = """({kind}[3,4] x) => ({kind}[3,2] y, int64[3,2] at) <int64[1] k = {{2}}>
    {{ y, at = TopK <{said}> (x, k) }}"""


@pytest.mark.parametrize("target", [11, 10, 9, 7])
@pytest.mark.parametrize(
    "said", ["axis = 1", "axis = -1, largest = 0", "largest = 1", "axis = 1, largest = 0"]
)
@pytest.mark.parametrize("kind", ["float", "double", "int32"])
def test_top_k(kind: str, said: str, target: int) -> None:
    x = np.array([[1, 3, 3, -2], [2, 2, 2, 2], [0, -5, 7, 0]]).astype(kind.replace("float", "f4"))
    prove_down(
        TOP_K.format(kind=kind, said=said),
        opset=17,
        target=target,
        feeds={"x": x},
        places=_places(target) if target > 9 else OLD,  # a function gets its k from outside
    )


def test_top_k_that_stays() -> None:
    whole = TOP_K.format(kind="int64", said="axis = 1")
    assert_stopped(whole, opset=17, target=10, why="TopK orders integers of 64 bits from opset 11")
    fed = "(float[4] x, int64[1] k) => (float[K] y, int64[K] at) { y, at = TopK (x, k) }"
    assert_stopped(fed, opset=17, target=9, why="TopK takes k from 'k', which is only known")


# -- Gather and its kin --------------------------------------------------------------------


@pytest.mark.parametrize("target", [11, 10, 8, 7])
@pytest.mark.parametrize("rows", ["3", "N"])
@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize(("axis", "shape"), [(0, "2,2,4"), (-1, "M,2,2")])
def test_gather_counts_from_the_front(
    axis: int, shape: str, index: str, rows: str, target: int
) -> None:
    graph = f"""(float[{rows},4] x, {index}[2,2] at) => (float[{shape}] y)
        {{ y = Gather <axis = {axis}> (x, at) }}"""
    feeds = {
        "x": np.arange(12, dtype=np.float32).reshape(3, 4),
        "at": np.array([[0, -1], [-3, 2]], index),
    }
    after = ops(prove_down(graph, opset=17, target=target, feeds=feeds, places=_places(target)))
    assert ("Less" in after) == (target < 11)


def test_gather_of_what_is_known() -> None:
    graph = """(float[3,4] x) => (float[2,4] y, float[4] z) <int64[2] at = {-1, 0}, int64 one = {1}>
        { y = Gather (x, at) z = Gather (x, one) }"""
    assert ops(prove_down(graph, opset=17, target=7, places=OLD)) == ["Gather", "Gather"]


def test_gather_by_a_shape_a_place_or_an_iteration() -> None:
    graph = """(float[3,4] x, int64 n) => (float[M,4] y, float[4] z) {
        first = ArgMax <keepdims = 0> (x)
        zero = Constant <value = int64 {0}> ()
        one = Gather (first, zero)
        y = Loop (n, "") <body = b (int64 i, bool go) => (bool on, float[4] r)
            { on = Identity (go) r = Gather (x, i) }>
        z = Gather (x, one)
    }"""
    graph = graph.replace("one = Gather (first, zero)", "one = Squeeze (head)").replace(
        "zero = Constant <value = int64 {0}> ()",
        "zero = Constant <value = int64[1] {0}> () head = Gather (first, zero)",
    )
    after = prove_down(graph, opset=12, target=10, feeds={"n": np.array(3)})
    (loop,) = (node for node in after.graph.node if node.op_type == "Loop")
    (body,) = (one.g for one in loop.attribute if one.name == "body")
    assert "Less" not in [node.op_type for node in body.node]


@pytest.mark.parametrize("target", [11, 10, 7])
@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(axis: int, fixed: bool, target: int) -> None:
    index = [[0, -1, 2], [1, 1, -3]]
    given = "" if fixed else ", int64[2,3] at"
    known = "<int64[2,3] at = {0, -1, 2, 1, 1, -3}>" if fixed else ""
    graph = f"""(float[3,3] x{given}) => (float[2,3] y) {known}
        {{ y = GatherElements <axis = {axis}> (x, at) }}"""
    feeds = {} if fixed else {"at": np.array(index)}
    after = prove_down(graph, opset=17, target=target, feeds=feeds, places=_places(target))
    assert ("GatherElements" in ops(after)) == (target == 11)


def test_gather_elements_of_an_open_shape() -> None:
    graph = """(float[3,N] x, int64[2,3] at) => (float[2,3] y)
        { y = GatherElements <axis = 0> (x, at) }"""
    assert_stopped(graph, opset=17, target=10, why="depends on the shape of 'x', which is open")


@pytest.mark.parametrize("target", [12, 11, 10, 7])
@pytest.mark.parametrize(
    ("data", "index", "given", "said"),
    [
        ("2,3,4", "2,2", [[0, 1], [-1, -3]], ""),
        ("N,3,4", "2,2", [[0, 1], [-1, -3]], ""),
        ("2,3,N", "2,2", [[0, 1], [-1, -3]], ""),
        ("2,3,4", "2,1", [[1], [-2]], ""),
        ("2,3,4", "1,3", [[1, 2, -1]], ""),
        ("2,3,4", "2,1", [[2], [-2]], "<batch_dims = 1>"),
        ("2,3,4", "2,3,1", [[[2], [-2], [0]]] * 2, "<batch_dims = 2>"),
    ],
)
def test_gather_nd(data: str, index: str, given: list[object], said: str, target: int) -> None:
    graph = f"""(float[{data}] x, int64[{index}] at) => (float[{_shape(index, said)}] y)
        {{ y = GatherND {said} (x, at) }}"""
    feeds = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "at": np.array(given)}
    prove_down(graph, opset=17, target=target, feeds=feeds, places=_places(target))


def _shape(index: str, said: str) -> str:
    rank = len(index.split(",")) - 1 + 3 - int(index[-1]) - (int(said[-2]) if said else 0)
    return ",".join("ABCDE"[:rank])


# -- Scatter -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [11, 10, 9])
@pytest.mark.parametrize("axis", [0, -1])
def test_scatter_elements_was_scatter(axis: int, target: int) -> None:
    graph = f"""(float[3,3] x, int64[2,3] at, float[2,3] u) => (float[3,3] y)
        {{ y = ScatterElements <axis = {axis}> (x, at, u) }}"""
    feeds = {"at": np.array([[0, -2, 2], [2, 0, -2]])}
    after = ops(prove_down(graph, opset=17, target=target, feeds=feeds))
    assert ("Scatter" in after) == (target < 11)


@pytest.mark.parametrize("target", [15, 10])
@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("op", ["ScatterElements", "ScatterND"])
def test_scatter_that_reduces(op: str, reduction: str, target: int) -> None:
    at = "int64[1,2] at = {1, -3}" if op == "ScatterElements" else "int64[2,1] at = {1, -3}"
    updates = "1,2" if op == "ScatterElements" else "2,3"
    graph = f"""(float[3,3] x, float[{updates}] u) => (float[3,3] y) <{at}>
        {{ y = {op} <reduction = "{reduction}"> (x, at, u) }}"""
    prove_down(graph, opset=18, target=target, places=OLD)
    twice = graph.replace("{1, -3}", "{0, -3}")
    if op == "ScatterElements":
        twice = twice.replace("reduction =", "axis = 1, reduction =")
    assert "Loop" in ops(prove_down(twice, opset=18, target=15, places=OLD))


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("target", [17, 15, 11])
@pytest.mark.parametrize("axis", [0, -1])
def test_elements_that_go_to_one_place_are_reduced_in_a_loop(
    axis: int, target: int, reduction: str
) -> None:
    graph = f"""(float[3,A] x, int64[2,3] at, float[2,3] u) => (float[3,A] y)
        {{ y = ScatterElements <axis = {axis}, reduction = "{reduction}"> (x, at, u) }}"""
    feeds = {"x": np.ones((3, 4), np.float32), "at": np.array([[2, -1, 2], [2, -1, -1]])}
    after = prove_down(graph, opset=18, target=target, feeds=feeds)
    assert ("Loop" in ops(after)) == (target < 16 or reduction in ("max", "min"))


@pytest.mark.parametrize("target", [15, 11])
@pytest.mark.parametrize(
    ("sizes", "index", "updates"),
    [("3,A", "3,1", "3,4"), ("3,4", "2,2,1", "2,2,4"), ("3,4", "1", "4"), ("3,A", "3,2", "3")],
)
def test_rows_that_go_to_one_place_are_reduced_in_a_loop(
    sizes: str, index: str, updates: str, target: int
) -> None:
    graph = f"""(float[{sizes}] x, int64[{index}] at, float[{updates}] u) => (float[{sizes}] y)
        {{ y = ScatterND <reduction = "add"> (x, at, u) }}"""
    at = np.full([int(size) for size in index.split(",")], -1)
    feeds = {"x": np.ones((3, 4), np.float32), "at": at}
    assert "Loop" in ops(prove_down(graph, opset=18, target=target, feeds=feeds))


def test_rows_of_unknown_size_in_a_grid_are_refused() -> None:
    graph = """(float[3,A] x, int64[2,2,1] at, float[2,2,A] u) => (float[3,A] y)
        { y = ScatterND <reduction = "add"> (x, at, u) }"""
    assert_stopped(graph, opset=18, target=15, why="how ScatterND slices 'x' at 'at' is not known")


@pytest.mark.parametrize("target", [11, 10, 9])
@pytest.mark.parametrize("rows", ["4", "N"])
@pytest.mark.parametrize(
    ("index", "at", "updates"), [("2,1", [[3], [-3]], "2,2"), ("1,2", [[-1, 1]], "1")]
)
def test_scatter_nd(index: str, at: list[list[int]], updates: str, rows: str, target: int) -> None:
    graph = f"""(float[{rows},2] x, int64[{index}] at, float[{updates}] u) => (float[A,2] y)
        {{ y = ScatterND (x, at, u) }}"""
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(4, 2), "at": np.array(at)}
    prove_down(graph, opset=17, target=target, feeds=feeds)


# -- OneHot, Compress, ReverseSequence, Trilu ----------------------------------------------


@pytest.mark.parametrize("target", [11, 9, 8, 7])
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize(("axis", "shape"), [(-1, "5,3"), (0, "3,5"), (-2, "3,5")])
@pytest.mark.parametrize("index", ["int64", "float"])
def test_one_hot(index: str, axis: int, shape: str, fixed: bool, target: int) -> None:
    """3 and -4 are out of range and give nothing but off values."""
    given = "" if fixed else ", int64[1] d"
    known = "<int64[1] d = {3}>" if fixed else ""
    graph = f"""({index}[5] at{given}, float[2] v) => (float[{shape}] y) {known}
        {{ y = OneHot <axis = {axis}> (at, d, v) }}"""
    if index == "float":
        graph = graph.replace("int64[1] d = {3}", "float[1] d = {3.0}").replace(
            "int64[1]", "float[1]"
        )
    kind = index.replace("float", "float32")
    feeds = {"at": np.array([0, -1, 3, -4, -3], kind)}
    if not fixed:
        feeds["d"] = np.array([3], kind)
        if target < 9:
            assert_stopped(graph, opset=17, target=target, why="the depth 'd' must be fixed")
            return
    prove_down(graph, opset=17, target=target, feeds=feeds, places=_places(target))


@pytest.mark.parametrize("target", [10, 9, 8])
@pytest.mark.parametrize(
    ("said", "shape"), [("", "M"), ("<axis = 0>", "M,3"), ("<axis = -1>", "2,M")]
)
def test_compress(said: str, shape: str, target: int) -> None:
    graph = f"""(float[2,3] x) => (float[{shape}] y) <bool[2] c = {{0, 1}}>
        {{ y = Compress {said} (x, c) }}"""
    prove_down(graph, opset=17, target=target, places=_places(target))
    fed = graph.replace("[2,3] x)", "[2,3] x, bool[2] c)").replace("<bool[2] c = {0, 1}>", "")
    assert_stopped(fed, opset=17, target=8, why="what 'c' chooses must be fixed")


@pytest.mark.parametrize("target", [10, 9, 7])
@pytest.mark.parametrize("said", ["", "<batch_axis = 0, time_axis = 1>"])
@pytest.mark.parametrize("tail", ["", ",2", ",N,2"])
def test_reverse_sequence(tail: str, said: str, target: int) -> None:
    size = 4 if said else 3
    graph = f"""(float[4,3{tail}] x, int64[{size}] n) => (float[4,3{tail}] y)
        {{ y = ReverseSequence {said} (x, n) }}"""
    feeds = {"n": np.array([1, 3, 2, 3][:size])}
    prove_down(graph, opset=17, target=target, feeds=feeds, places=_places(target))


@pytest.mark.parametrize("target", [14, 13, 9])
@pytest.mark.parametrize("said", ["", "<upper = 0>"])
@pytest.mark.parametrize("k", ["", "<int64 k = {-1}>", "(int64 k)"])
@pytest.mark.parametrize("kind", ["float", "int64"])
def test_trilu(kind: str, k: str, said: str, target: int) -> None:
    fed = k.startswith("(")
    graph = f"""({kind}[2,3,4] x{", int64 k" if fed else ""}) => ({kind}[2,3,4] y)
        {"" if fed else k} {{ y = Trilu {said} (x{", k" if k else ""}) }}"""
    feeds = {"k": np.array(1)} if fed else {}
    prove_down(graph, opset=17, target=target, feeds=feeds)


@pytest.mark.parametrize("k", ["", ", k"])
def test_trilu_of_an_open_shape(k: str) -> None:
    graph = f"(float[N,M] x, int64 k) => (float[N,M] y) {{ y = Trilu (x{k}) }}"
    feeds = {"x": np.ones((4, 3), np.float32), "k": np.array(-1)}
    prove_down(graph, opset=17, target=11, feeds=feeds)


@pytest.mark.parametrize(
    ("graph", "target", "why"),
    [
        ("(float[3] x) => (int64[1,N] y) { y = NonZero (x) }", 8, "tells where a tensor is not"),
        ("(float[3] x) => (float[N] y) { y = Unique (x) }", 10, "finds what is unique"),
        (
            "(float[1,4,4] b, float[1,1,4] s) => (int64[N,3] y) { y = NonMaxSuppression (b, s) }",
            9,
            "suppresses boxes",
        ),
    ],
)
def test_there_was_no_such_op(graph: str, target: int, why: str) -> None:
    prove_down(graph, opset=17, target=target + 1, feeds={}, places=["main"])
    assert_stopped(graph, opset=17, target=target, why=why)
