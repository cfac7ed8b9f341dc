"""Loops that data or a counter ends: the counter gives the trip count, the data stays."""

from __future__ import annotations

import itertools

import pytest
from test_count_loop import counting, only_counted, same

from passes.testing import assert_refused, assert_rewrite

pytestmark = pytest.mark.sampled

CONSTANTS = "float enough = {3.5}, bool yes = {1}"
DATA = "calm = Less (h_out, enough)"


def solver(counted: str, initial: str = "go0 = Identity (yes)", **options: str) -> str:
    """A loop that ends when its number exceeds 3.5, after three iterations, or by a counter."""
    given = {"inputs": "int64 s, int64 n", "constants": CONSTANTS, **options}
    condition = f"{DATA}\n more = {counted}\n go_out = And (calm, more)"
    return counting("s", initial, given.pop("step", "one"), condition, **given)


@pytest.mark.parametrize("counted", ["Less (c_out, n)", "GreaterOrEqual (n, c)", "Less (i, n)"])
@pytest.mark.parametrize(
    "initial",
    [
        "go0 = Identity (yes)",
        "some = Less (start, n)\n calm0 = Less (f, enough)\n go0 = And (calm0, some)",
        "some = LessOrEqual (start, n)\n given = Less (n, start)\n go0 = Or (given, some)",
    ],
)
@pytest.mark.parametrize("trips", ['""', "m"])
def test_as_many_iterations_as_before(counted: str, initial: str, trips: str) -> None:
    extra = ", int64 m" if trips == "m" else ""
    model = solver(counted, initial, trips=trips, inputs=f"int64 s, int64 n{extra}")
    for s, n, m in itertools.product([-2, 0, 3], [-3, 0, 1, 2, 7], [-1, 0, 1, 2, 9]):
        same(model, s=s, n=n, m=m)


def test_the_bound_becomes_the_trip_count_and_data_stays_the_condition() -> None:
    initial = "calm0 = Less (f, enough)\n some = Less (start, n)\n go0 = And (calm0, some)"
    model = only_counted(
        solver("Less (c_out, n)", initial, inputs="int64 n").replace("(s)", "(zero)")
    )
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    assert list(loop.input[:2]) == ["n", "go0"]
    body = loop.attribute[0].g
    assert body.node[-1].input == ["calm"]
    assert "Less (c_out" not in str(body)


def test_steps_and_an_omitted_initial_condition() -> None:
    model = solver(
        "Less (c_out, n)",
        going='""',
        trips="m",
        step="step",
        inputs="int64 s, int64 n, int64 m",
        constants=f"{CONSTANTS}, int64 step = {{2}}",
    )
    for s, n, m in itertools.product([-2, 0, 3], [-3, 1, 2, 7], [0, 2, 9]):
        same(model, s=s, n=n, m=m)


def test_a_counter_at_the_end_of_its_range_ends_nothing() -> None:
    """It would wrap: the data ends the loop, as before."""
    largest = (1 << 63) - 1
    for start in (0, largest - 2, largest):
        same(solver("LessOrEqual (c_out, n)"), s=start, n=largest)
        same(solver("Less (c_out, n)"), s=-largest, n=start)


def test_what_holds_while_m_lasts_is_dropped() -> None:
    model = only_counted(
        solver(
            "Less (i, nine)",
            trips="four",
            constants=f"{CONSTANTS}, int64 nine = {{9}}, int64 four = {{4}}",
        )
    )
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    assert loop.input[0] == "four"


def test_a_counter_that_is_compared_as_a_float_stays_with_the_data() -> None:
    """It is exact up to 2^24 only, and data may end the loop of a bound above that."""
    counted = "Less (c_float, n_float)"
    text = (
        solver(counted, inputs="int64 n")
        .replace("(s)", "(zero)")
        .replace("calm =", "c_float = Cast <to = 1> (c_out)\n n_float = Cast <to = 1> (n)\n calm =")
    )
    assert_refused(text, "float-counter", pipeline="raise")


def test_it_is_unrolled_as_often_as_the_counter_allows() -> None:
    text = solver(
        "Less (c_out, n)", inputs="float g", constants=f"{CONSTANTS}, int64 n = {{4}}"
    ).replace("(s)", "(zero)")
    model = assert_rewrite(text, pipeline="unroll").model
    assert not [node for node in model.graph.node if node.op_type == "Loop"]
    assert sum(node.op_type == "Less" for node in model.graph.node) >= 3
