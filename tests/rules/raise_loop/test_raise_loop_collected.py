"""raise-loop: collected values, and tensors that grow or are filled in the loop."""

from __future__ import annotations

import pytest
from raised_models import ints, nodes, raised, scan_of

from passes.testing import assert_refused
from tests.written import changed

pytestmark = pytest.mark.sampled

#: A Loop that collects a row in each iteration.
ROWS = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[T,3] x) => (float[N,3] z)
<int64[1] zeros = {0}, int64[1] ones = {1}, int64[1] last = {-1},
 int64[1] far = {-9223372036854775807}>
{
    shape = Shape (x)
    m_1 = Gather (shape, zeros)
    m = Squeeze (m_1, zeros)
    z_1 = Loop (m, "") <body = step (int64 i, bool go) => (bool go_out, float[3] y) {
        go_out = Identity (go)
        x_t = Gather (x, i)
        y = Neg (x_t)
    }>
    z = Identity (z_1)
}
"""


@pytest.mark.parametrize(
    ("after", "axis", "back"),
    [
        ("z = Transpose <perm = [1, 0]> (z_1)", 1, 0),
        ("z = Slice (z_1, last, far, zeros, last)", 0, 1),
        ("z_2 = Slice (z_1, last, far, zeros, last)\n z = Transpose <perm = [1, 0]> (z_2)", 1, 1),
        ("z_2 = Transpose <perm = [1, 0]> (z_1)\n z = Slice (z_2, last, far, ones, last)", 1, 1),
    ],
)
def test_a_transpose_or_a_reversal_of_an_output_becomes_part_of_the_scan(
    after: str, axis: int, back: int
) -> None:
    dims = "N,3" if axis == 0 else "3,N"
    model = changed(ROWS, {"z = Identity (z_1)": after, "float[N,3] z": f"float[{dims}] z"})
    result = raised(model, assume="non-empty")
    assert [node.op_type for node in result.model.graph.node] == ["Scan"]
    assert ints(scan_of(result), "scan_output_axes") == [axis]
    assert ints(scan_of(result), "scan_output_directions") == [back]
    raised(model)


def test_an_output_that_others_read_stays_as_it_is() -> None:
    model = changed(
        ROWS,
        {
            "z = Identity (z_1)": "z = Transpose <perm = [1, 0]> (z_1)  w = Neg (z_1)",
            "float[N,3] z": "float[3,N] z, float[N,3] w",
        },
    )
    assert nodes(raised(model).model, "Transpose")


#: A tensor that gets a row in each iteration.
GROWING = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[T,3] x, float[0,3] a0) => (float[N,3] a_end) <int64[1] zeros = {0}>
{
    shape = Shape (x)
    m_1 = Gather (shape, zeros)
    m = Squeeze (m_1, zeros)
    a_end = Loop (m, "", a0) <body = step (int64 i, bool go, float[A,3] acc)
        => (bool go_out, float[B,3] acc_out) {
        go_out = Identity (go)
        x_t = Gather (x, i)
        y = Unsqueeze (x_t, zeros)
        acc_out = Concat <axis = 0> (acc, y)
    }>
}
"""


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("order", ["acc, y", "y, acc"])
@pytest.mark.parametrize("width", [1, 2])
def test_a_tensor_that_grows_by_concat_is_collected(first: int, order: str, width: int) -> None:
    row = "y = Unsqueeze (x_t, zeros)"
    if width == 2:
        row = "y_1 = Unsqueeze (x_t, zeros)  y = Concat <axis = 0> (y_1, y_1)"
    changes = {"y = Unsqueeze (x_t, zeros)": row, "(acc, y)": f"({order})"}
    model = changed(GROWING, changes | {"[0,3] a0": f"[{first},3] a0"})
    result = raised(model)
    assert len(scan_of(result).input) == 1
    assert bool(nodes(result.model, "Reshape")) == (width == 2)


def test_a_tensor_that_grows_and_is_read_is_refused() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[T,3] x, float[0,3] a0) => (float[N,3] a_end, float[T,3] z) <int64[1] zeros = {0}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        a_end, z = Loop (m, "", a0) <body = step (int64 i, bool go, float[A,3] acc)
            => (bool go_out, float[B,3] acc_out, float[3] z_t) {
            go_out = Identity (go)
            x_t = Gather (x, i)
            y = Unsqueeze (x_t, zeros)
            z_t = ReduceSum <keepdims = 0> (acc, zeros)
            acc_out = Concat <axis = 0> (acc, y)
        }>
    }
    """
    assert_refused(model, "accumulator-read", pipeline="raise")


def test_a_tensor_that_grows_unevenly_is_refused() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[T,3] x, float[0] a0) => (float[N] a_end) <int64[1] zeros = {0}>
    {
        shape = Shape (x)
        m_1 = Gather (shape, zeros)
        m = Squeeze (m_1, zeros)
        a_end = Loop (m, "", a0) <body = step (int64 i, bool go, float[A] acc)
            => (bool go_out, float[B] acc_out) {
            go_out = Identity (go)
            x_t = Gather (x, i)
            more = NonZero (x_t)
            flat = Squeeze (more, zeros)
            y = Cast <to = 1> (flat)
            acc_out = Concat <axis = 0> (acc, y)
        }>
    }
    """
    assert_refused(model, "element-shape", pipeline="raise")


#: A sequence that gets a row in each iteration.
INSERTING = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[T,3] x) => (float[N,3] z) <int64[1] zeros = {0}, int64[1] ones = {1}, int64 one = {1}>
{
    shape = Shape (x)
    m_1 = Gather (shape, zeros)
    m = Squeeze (m_1, zeros)
    a0 = SequenceEmpty <dtype = 1> ()
    a_end = Loop (m, "", a0) <body = step (int64 i, bool go, seq(float[3]) acc)
        => (bool go_out, seq(float[3]) acc_out) {
        go_out = Identity (go)
        x_t = Gather (x, i)
        y = Neg (x_t)
        acc_out = SequenceInsert (acc, y)
    }>
    z = ConcatFromSequence <axis = 0, new_axis = 1> (a_end)
}
"""
EMPTY = "a0 = SequenceEmpty <dtype = 1> ()"
JOINED = "z = ConcatFromSequence <axis = 0, new_axis = 1> (a_end)"


@pytest.mark.parametrize(("axis", "new"), [(0, 1), (1, 1), (-1, 1), (0, 0), (1, 0), (-1, 0)])
def test_a_sequence_that_is_joined_is_collected(axis: int, new: int) -> None:
    joined = {
        "float[T,3] x": "float[T,2,3] x",
        "float[N,3] z": "float[A,B,C] z" if new else "float[A,B] z",
        "seq(float[3])": "seq(float[2,3])",
        "axis = 0, new_axis = 1": f"axis = {axis}, new_axis = {new}",
    }
    result = raised(changed(INSERTING, joined))
    assert len(scan_of(result).input) == 1


def test_a_sequence_may_hold_something_at_first() -> None:
    one = {"[T,3] x": "[T,3] x, float[3] first", EMPTY: "a0 = SequenceConstruct (first)"}
    raised(changed(INSERTING, one))
    given = {"[T,3] x": "[T,3] x, seq(float[3]) a0", EMPTY: ""}
    assert_refused(changed(INSERTING, given), "sequence-initial", pipeline="raise")


def test_a_sequence_that_stays_one_is_refused() -> None:
    model = changed(INSERTING, {"float[N,3] z": "int64 z", JOINED: "z = SequenceLength (a_end)"})
    assert_refused(model, "sequence-read", pipeline="raise")


#: A buffer of which each iteration writes a row.
FILLING = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[5,3] x, float[5,3] a0) => (float[5,3] a_end)
<int64[1] zeros = {0}, int64 one = {1}>
{
    shape = Shape (x)
    m_1 = Gather (shape, zeros)
    m = Squeeze (m_1, zeros)
    a_end = Loop (m, "", a0) <body = step (int64 i, bool go, float[5,3] acc)
        => (bool go_out, float[5,3] acc_out) {
        go_out = Identity (go)
        where = Identity (i)
        x_t = Gather (x, where)
        at = Unsqueeze (where, zeros)
        y = Neg (x_t)
        acc_out = ScatterND (acc, at, y)
    }>
}
"""
BACKWARDS = {"where = Identity (i)": "last = Sub (m, one)  where = Sub (last, i)"}
#: A buffer as long as `x`, whose length is unknown.
AS_LONG = {
    ", float[5,3] a0": "",
    "[5,3]": "[T,3]",
    "a_end = Loop": """three = Constant <value_ints = [3]> ()
    dims = Concat <axis = 0> (m_1, three)
    a0 = ConstantOfShape (dims)
    a_end = Loop""",
}
#: Writes a slice of one row.
OF_A_SLICE = {
    "at = Unsqueeze (where, zeros)": """at_1 = Unsqueeze (where, zeros)
        at = Unsqueeze (at_1, zeros)""",
    "y = Neg (x_t)": "y_1 = Neg (x_t)  y = Unsqueeze (y_1, zeros)",
}


@pytest.mark.parametrize("scatter", [{}, OF_A_SLICE], ids=["nd", "nd of a slice"])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("size", [AS_LONG, {}], ids=["T", "5"])
def test_a_buffer_that_is_filled_is_collected(
    scatter: dict[str, str], back: bool, size: dict[str, str]
) -> None:
    text = changed(FILLING, scatter | size | (BACKWARDS if back else {}))
    scan = scan_of(raised(text))
    assert len(scan.input) == 1
    assert ints(scan, "scan_output_directions") == [int(back)]


#: The same with a fixed trip count.
FILLING_5 = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[5,3] x, float[5,3] a0) => (float[5,3] a_end)
<int64[1] zeros = {0}, int64 one = {1}, int64 m = {5}>
{
    a_end = Loop (m, "", a0) <body = step (int64 i, bool go, float[5,3] acc)
        => (bool go_out, float[5,3] acc_out) {
        go_out = Identity (go)
        x_t = Gather (x, i)
        at = Unsqueeze (i, zeros)
        y = Neg (x_t)
        acc_out = ScatterND (acc, at, y)
    }>
}
"""
OFFSET = {"at = Unsqueeze (i, zeros)": "j = Add (i, one)  at = Unsqueeze (j, zeros)"}


def test_a_buffer_of_fixed_size_that_is_filled_is_collected() -> None:
    raised(FILLING_5)


@pytest.mark.parametrize(
    "changes",
    [
        {"m = {5}": "m = {4}"},
        {"m = {5}": "m = {4}"} | OFFSET,
        {"float[5,3] a": "float[6,3] a"},
    ],
    ids=["one row less", "an offset", "another size"],
)
def test_a_buffer_that_is_not_filled_is_refused(changes: dict[str, str]) -> None:
    assert_refused(changed(FILLING_5, changes), "not-filled", pipeline="raise")


def test_a_slice_that_keeps_its_axis_has_a_known_size() -> None:
    sliced = {
        "float[N,3] z": "float[A,B] z",
        "axis = 0, new_axis = 1": "axis = 0",
        "seq(float[3])": "seq(float[A,B])",
        "x_t = Gather (x, i)": """from = Unsqueeze (i, zeros)
        next = Add (i, one)
        to = Unsqueeze (next, zeros)
        part = Slice (x, from, to, zeros, ones)""",
        "y = Neg (x_t)": "y = Neg (part)",
    }
    model = changed(INSERTING, sliced)
    assert list(scan_of(raised(model)).input) == ["x"]
