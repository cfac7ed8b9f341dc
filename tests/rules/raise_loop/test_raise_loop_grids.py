"""The rule raise-loop: buffers that a grid of indices fills, as torch writes `found[:, i]`."""

from __future__ import annotations

import pytest
from raised_models import ints, loop, raised, scan_of

from passes.testing import assert_refused

pytestmark = pytest.mark.sampled


def filling(
    rows: str = "int64[2,1,1] rows = {0, 1}",
    *,
    at: str = "at = Identity (i)",
    columns: str = "rows_1, at_1",
    update: str = "update = Reshape (y, to)",
    trips: int = 4,
) -> str:
    """Column `at` of a buffer of 2 rows and 4 columns, written by a grid of `rows` and columns."""
    body = (
        f"x_t = Gather <axis = 1> (x, i)\n y = Neg (x_t)\n {at}\n {update}\n"
        "rows_1 = Identity (rows)\n at_1 = Expand (at, grid)\n"
        f"index = Concat <axis = -1> ({columns})\n acc_out = ScatterND (acc, index, update)"
    )
    fixed = f"{rows}, int64[3] grid = {{2, 1, 1}}, int64[3] to = {{2, 1, 3}}, int64 m = {{{trips}}}"
    return loop(
        "float[2,4,3] x, float[2,4,3] a0",
        "float[2,4,3] a_end",
        body,
        carried="float[2,4,3] acc",
        collected="float[2,4,3] acc_out",
        constants=f"{fixed}, int64 three = {{3}}, int64 two = {{2}}",
        fed="a0",
        results="a_end",
    )


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
    model = filling(update=update).replace("int64 three", "int64[2] far = {2, 3}, int64 three")
    assert is_collected(model)


def test_a_grid_may_write_rows_of_the_first_axis() -> None:
    model = filling(columns="at_1, rows_1").replace("[2,4,3]", "[4,2,3]")
    assert is_collected(model.replace("Gather <axis = 1> (x, i)", "Gather (x, i)"), axis=0)


def test_a_grid_may_be_a_vector_and_count_at_run_time() -> None:
    body = (
        "x_t = Gather <axis = 1> (x, i)\n update = Neg (x_t)\n dims = Shape (acc)\n"
        "n = Gather (dims, zero)\n rows = Range (zero, n, one)\n to = Shape (rows)\n"
        "at = Unsqueeze (i, zeros)\n at_1 = Expand (at, to)\n at_2 = Unsqueeze (at_1, ones)\n"
        "rows_1 = Unsqueeze (rows, ones)\n index = Concat <axis = 1> (rows_1, at_2)\n"
        "acc_out = ScatterND (acc, index, update)"
    )
    model = loop(
        "float[N,T,3] x",
        "float[N,T,3] a_end",
        body,
        carried="float[N,T,3] acc",
        collected="float[A,B,3] acc_out",
        before="shape = Shape (x)\n m = Gather (shape, one)\n a0 = ConstantOfShape (shape)",
        fed="a0",
        results="a_end",
    )
    assert ints(scan_of(raised(model, assume="non-empty")), "scan_output_directions") == [0]
    backwards = model.replace("Unsqueeze (i, zeros)", "Unsqueeze (back, zeros)").replace(
        "dims = Shape", "last = Sub (m, one)\n back = Sub (last, i)\n dims = Shape"
    )
    assert ints(scan_of(raised(backwards)), "scan_output_directions") == [1]
    assert_refused(
        model.replace("Gather (shape, one)", "Gather (shape, zero)"), "not-filled", pipeline="raise"
    )


@pytest.mark.parametrize(
    "model",
    [
        filling(trips=3),
        filling(at="at = Sub (two, i)", trips=3),
        filling(at="at_0 = Add (i, i)\n at = Sub (at_0, i)\n ", trips=3),
    ],
    ids=["a column less", "backwards", "a sum"],
)
def test_a_buffer_of_which_columns_are_left_is_refused(model: str) -> None:
    assert_refused(model, "not-filled", pipeline="raise")


@pytest.mark.parametrize(
    "model",
    [
        filling("int64[2,1,1] rows = {0, 0}"),
        filling("int64[2,1,1] rows = {1, 0}"),
        filling("int64[2,1,1] rows = {-2, -1}"),
        filling("int64[2,1,1] rows = {1, 1}"),
    ],
    ids=["twice", "another order", "from the end", "only one"],
)
def test_a_buffer_of_which_a_grid_writes_other_rows_is_a_state(model: str) -> None:
    assert not is_collected(model)
