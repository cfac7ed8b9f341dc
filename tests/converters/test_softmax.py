"""The steps of Softmax, LogSoftmax and Hardmax, run at the old opset and converted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from calls import prove_call
from proving import converted, ops, parsed, prove

from passes.rule import Refused

pytestmark = pytest.mark.sampled

OPS = ["Softmax", "LogSoftmax", "Hardmax"]
ROWS = ["Flatten", "{op}", "Shape", "Reshape"]


def _graph(op: str, shape: str, attributes: str = "", kind: str = "float") -> str:
    given = f"<{attributes}>" if attributes else ""
    return f"({kind}[{shape}] x) => ({kind}[{shape}] y) {{ y = {op}{given}(x) }}"


def _rows(op: str) -> list[str]:
    return [name.format(op=op) for name in ROWS]


@pytest.mark.parametrize("target", [13, 26])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [("2,3", 1), ("2,3,4", 2), ("2,3,4", -1), ("2,N,4", 2), ("3", 0), ("3", -1), ("1,2,3", 2)],
)
def test_the_last_axis_stays(op: str, shape: str, axis: int, target: int) -> None:
    after = prove(_graph(op, shape, f"axis = {axis}"), opset=11, target=target)
    assert ops(after) == [op]
    assert after.graph.node[0].attribute[0].i == axis


@pytest.mark.parametrize("op", OPS)
def test_the_default_axis_of_a_matrix_is_written_down(op: str) -> None:
    """It was 1 and is now the last one."""
    after = prove(_graph(op, "2,3"), opset=7, target=26)
    assert after.graph.node[0].attribute[0].i == 1


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("shape", "axis", "only"),
    [("2,3,1,1", 1, 1), ("2,1,4", 1, 2), ("2,1,N,1", 1, 2), ("2,1,1", 1, 1), ("2,3,1", -2, -2)],
)
def test_one_axis_is_enough_where_the_others_have_size_1(
    op: str, shape: str, axis: int, only: int
) -> None:
    after = prove(_graph(op, shape, f"axis = {axis}"), opset=11, target=26)
    assert ops(after) == [op]
    assert after.graph.node[0].attribute[0].i == only


@pytest.mark.parametrize("target", [13, 14, 26])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("shape", "axis"),
    [("2,3", 0), ("2,3,4", 0), ("2,3,4", 1), ("2,3,4", -2), ("M,N,3", 1), ("2,3,2,2", 2)],
)
def test_several_axes_run_as_rows_of_a_matrix(op: str, shape: str, axis: int, target: int) -> None:
    after = prove(_graph(op, shape, f"axis = {axis}"), opset=11, target=target)
    symbolic = not shape.replace(",", "").isdigit()
    assert ops(after) == (["Size", "Greater", "If"] if symbolic and target == 13 else _rows(op))


@pytest.mark.parametrize(
    ("op", "kind"),
    [*((op, "float") for op in OPS), ("Softmax", "double"), ("LogSoftmax", "double")],
)
def test_other_types_and_special_values(op: str, kind: str) -> None:
    x = np.array([[[np.inf, 1], [2, 2]], [[np.nan, 0], [-np.inf, 1]]], kind.replace("float", "f4"))
    prove(_graph(op, "2,2,2", kind=kind), opset=7, target=26, feeds={"x": x})


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("rank", "axis"), [(r, a) for r in (1, 2, 3, 4) for a in range(-r, r)])
def test_an_unknown_rank(op: str, rank: int, axis: int) -> None:
    """A Reshape to a shape that comes in gives a value of unknown rank."""
    shape = np.array((2, 3, 2, 2)[:rank])
    dims = ",".join("ABCD"[:rank])
    graph = f"""(float[{shape.prod()}] x, int64[R] shape) => (float[{dims}] y) {{
        u = Reshape(x, shape)
        y = {op}<axis = {axis}>(u)
    }}"""
    after = prove(graph, opset=11, target=26, feeds={"shape": shape})
    assert ops(after)[1:] == ([op] if axis == -1 else _rows(op))


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("shape", [s for s in itertools.product((0, 2), repeat=3) if 0 in s])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("target", [13, 26])
def test_an_empty_input_keeps_its_shape(
    op: str, shape: tuple[int, ...], axis: int, target: int
) -> None:
    graph = f"(float[A,B,C] x) => (float[A,B,C] y) {{ y = {op}<axis = {axis}>(x) }}"
    x = np.zeros(shape, np.float32)
    prove(graph, opset=11, target=target, feeds={"x": x}, places=["main"])


@pytest.mark.parametrize("op", OPS)
def test_an_axis_that_is_not_there_is_refused(op: str) -> None:
    with pytest.raises(Refused) as refused:
        converted(parsed(_graph(op, "3"), 7), 26)  # axis 1, the default
    assert refused.value.code == "invalid-node"


@pytest.mark.parametrize("op", OPS)
def test_a_value_that_a_body_captures(op: str) -> None:
    """The C++ version converter fails where the captured result is not along the last axis."""
    graph = f"""(bool go, float[2,3,4] x) => (float[2,3,4] y) {{
        s = {op}<axis = 1>(x)
        y = If(go) <
            then_branch = yes () => (float[2,3,4] a) {{ a = {op}<axis = 0>(s) }},
            else_branch = no () => (float[2,3,4] b) {{ b = Neg(s) }}
        >
    }}"""
    for go in (True, False):
        feeds = {"go": np.array(go)}
        after = prove(graph, opset=9, target=26, feeds=feeds, places=["main", "function"])
    assert ops(after) == [*_rows(op), "If"]


@pytest.mark.parametrize("given", ["axis = 1", "axis = 2", "axis = -1"])
@pytest.mark.parametrize("op", OPS)
def test_a_referenced_axis_decides_the_rows(op: str, given: str) -> None:
    model = f"(float[2,3,4] x) => (float[2,3,4] y) {{ y = local.F<{given}>(x) }}"
    function = f"F <axis> (x) => (y) {{ y = {op}<axis: int = @axis>(x) }}"
    assert prove_call(model, function, opset=11, target=26) == _rows(op)


@pytest.mark.parametrize("op", OPS)
def test_a_referenced_axis_that_is_left_out_is_1(op: str) -> None:
    model = "(float[2,3,4] x) => (float[2,3,4] y) { y = local.F(x) }"
    function = f"F <axis> (x) => (y) {{ y = {op}<axis: int = @axis>(x) }}"
    prove_call(model, function, opset=11, target=26)


@pytest.mark.parametrize("op", OPS)
def test_13_to_26(op: str) -> None:
    after = prove(_graph(op, "2,3,4", "axis = 1"), opset=13, target=26)
    assert ops(after) == [op]


# -- down -----------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [12, 9])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("shape", "attributes"),
    [("2,3", ""), ("2,3,4", "axis = 2"), ("2,3,1", "axis = 1"), ("3", "axis = -1"), ("A,B", "")],
)
def test_the_last_axis_down(op: str, shape: str, attributes: str, target: int) -> None:
    """The default was the last axis and becomes 1, so the axis is written down."""
    after = prove(_graph(op, shape, attributes), opset=13, target=target)
    assert ops(after) == [op]
    assert after.graph.node[0].attribute[0].i == shape.replace(",1", "").count(",")


@pytest.mark.parametrize("target", [12, 9])
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(
    ("shape", "axis"), [("2,3,4", 1), ("2,3,4", 0), ("2,3,4", -2), ("A,B,C", 1), ("0,2,3", 1)]
)
def test_another_axis_down_is_moved_last(op: str, shape: str, axis: int, target: int) -> None:
    after = prove(_graph(op, shape, f"axis = {axis}"), opset=13, target=target, rtol=1e-6)
    assert ops(after) == ["Transpose", op, "Transpose"]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("rank", "axis"), [(r, a) for r in (1, 2, 3, 4) for a in range(-r, r)])
def test_an_unknown_rank_down(op: str, rank: int, axis: int) -> None:
    shape = np.array((2, 3, 2, 2)[:rank])
    dims = ",".join("ABCD"[:rank])
    graph = f"""(float[{shape.prod()}] x, int64[R] shape) => (float[{dims}] y) {{
        u = Reshape(x, shape)
        y = {op}<axis = {axis}>(u)
    }}"""
    for target in (12, 9)[: 1 if axis < 0 else 2]:
        after = prove(graph, opset=13, target=target, feeds={"shape": shape}, rtol=1e-6)
        assert ops(after)[1:] == ([op] if axis == -1 else ["Size", "Greater", "If"])


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("axis", [0, 1])
def test_an_empty_value_of_unknown_rank_down(op: str, axis: int) -> None:
    graph = f"""(float[0] x, int64[R] shape) => (float[A,B,C] y) {{
        u = Reshape(x, shape)
        y = {op}<axis = {axis}>(u)
    }}"""
    feeds = {"shape": np.array([0, 1, 2])}
    prove(graph, opset=13, target=12, feeds=feeds, places=["main"])


@pytest.mark.parametrize("op", OPS)
def test_what_is_refused_down(op: str) -> None:
    unknown = f"(float[6] x, int64[R] s) => (float[A,B] y) {{ u = Reshape(x, s) y = {op}(u) }}"
    with pytest.raises(Refused) as refused:
        converted(parsed(unknown, 13), 10)  # which knows no negative axis
    assert refused.value.code == "unknown-rank"
    with pytest.raises(Refused) as refused:
        converted(parsed(_graph(op, "3", "axis = 1"), 13), 12)
    assert refused.value.code == "invalid-node"
