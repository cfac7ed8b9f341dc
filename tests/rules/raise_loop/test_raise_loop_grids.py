"""raise-loop: buffers that a grid of indices fills, as torch writes `found[:, i]`."""

from __future__ import annotations

import pytest
from raised_models import ints, raised, scan_of

from passes.testing import assert_refused
from tests.written import changed

pytestmark = pytest.mark.sampled


#: A buffer of 2 rows and 4 columns, of which each iteration writes a column by a grid of indices.
FILLING = """
<ir_version: 8, opset_import: ["" : 17]>
loops (float[2,4,3] x, float[2,4,3] a0) => (float[2,4,3] a_end)
<int64[2,1,1] rows = {0, 1}, int64[3] grid = {2, 1, 1}, int64[3] to = {2, 1, 3},
 int64[2] far = {2, 3}, int64[1] ones = {1}, int64 m = {4}, int64 two = {2}>
{
    a_end = Loop (m, "", a0) <body = step (int64 i, bool go, float[2,4,3] acc)
        => (bool go_out, float[2,4,3] acc_out) {
        go_out = Identity (go)
        x_t = Gather <axis = 1> (x, i)
        y = Neg (x_t)
        at = Identity (i)
        update = Reshape (y, to)
        rows_1 = Identity (rows)
        at_1 = Expand (at, grid)
        index = Concat <axis = -1> (rows_1, at_1)
        acc_out = ScatterND (acc, index, update)
    }>
}
"""
THREE_TRIPS = {"int64 m = {4}": "int64 m = {3}"}


def is_collected(model: str, axis: int = 1) -> bool:
    """Whether the Scan that a loop becomes collects the rows on an axis, and carries no buffer."""
    scan = scan_of(raised(model))
    return ints(scan, "scan_output_axes") == [axis] and list(scan.input) == ["x"]


@pytest.mark.parametrize(
    "update",
    [
        "update = Reshape (y, to)",
        "update = Unsqueeze (y, ones)",
        "y_1 = Expand (y, far)\n update = Reshape (y_1, to)",
    ],
)
def test_a_buffer_that_a_grid_fills_is_collected_on_its_axis(update: str) -> None:
    assert is_collected(changed(FILLING, {"update = Reshape (y, to)": update}))


def test_a_grid_may_write_rows_of_the_first_axis() -> None:
    first_axis = {
        "(rows_1, at_1)": "(at_1, rows_1)",
        "[2,4,3]": "[4,2,3]",
        "Gather <axis = 1> (x, i)": "Gather (x, i)",
    }
    assert is_collected(changed(FILLING, first_axis), axis=0)


def test_a_grid_may_be_a_vector_and_count_at_run_time() -> None:
    model = """
    <ir_version: 8, opset_import: ["" : 17]>
    loops (float[N,T,3] x) => (float[N,T,3] a_end)
    <int64[1] zeros = {0}, int64[1] ones = {1}, int64 zero = {0}, int64 one = {1}>
    {
        shape = Shape (x)
        m = Gather (shape, one)
        a0 = ConstantOfShape (shape)
        a_end = Loop (m, "", a0) <body = step (int64 i, bool go, float[N,T,3] acc)
            => (bool go_out, float[A,B,3] acc_out) {
            go_out = Identity (go)
            x_t = Gather <axis = 1> (x, i)
            update = Neg (x_t)
            dims = Shape (acc)
            n = Gather (dims, zero)
            rows = Range (zero, n, one)
            to = Shape (rows)
            at = Unsqueeze (i, zeros)
            at_1 = Expand (at, to)
            at_2 = Unsqueeze (at_1, ones)
            rows_1 = Unsqueeze (rows, ones)
            index = Concat <axis = 1> (rows_1, at_2)
            acc_out = ScatterND (acc, index, update)
        }>
    }
    """
    assert ints(scan_of(raised(model, assume="non-empty")), "scan_output_directions") == [0]
    backwards = {
        "Unsqueeze (i, zeros)": "Unsqueeze (back, zeros)",
        "dims = Shape": "last = Sub (m, one)  back = Sub (last, i)  dims = Shape",
    }
    assert ints(scan_of(raised(changed(model, backwards))), "scan_output_directions") == [1]
    other_trips = changed(model, {"Gather (shape, one)": "Gather (shape, zero)"})
    assert_refused(other_trips, "not-filled", pipeline="raise")


@pytest.mark.parametrize(
    "model",
    [
        changed(FILLING, THREE_TRIPS),
        changed(FILLING, THREE_TRIPS | {"at = Identity (i)": "at = Sub (two, i)"}),
        changed(
            FILLING,
            THREE_TRIPS | {"at = Identity (i)": "at_0 = Add (i, i)  at = Sub (at_0, i)"},
        ),
    ],
    ids=["a column less", "backwards", "a sum"],
)
def test_a_buffer_whose_columns_are_not_all_written_is_refused(model: str) -> None:
    assert_refused(model, "not-filled", pipeline="raise")


@pytest.mark.parametrize(
    "model",
    [
        changed(FILLING, {"rows = {0, 1}": "rows = {0, 0}"}),
        changed(FILLING, {"rows = {0, 1}": "rows = {1, 0}"}),
        changed(FILLING, {"rows = {0, 1}": "rows = {-2, -1}"}),
        changed(FILLING, {"rows = {0, 1}": "rows = {1, 1}"}),
    ],
    ids=["twice", "another order", "from the end", "only one"],
)
def test_a_buffer_whose_grid_writes_other_rows_is_a_state(model: str) -> None:
    assert not is_collected(model)
