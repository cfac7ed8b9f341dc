"""Loops that data or a counter ends: the counter gives the trip count, the data stays."""

from __future__ import annotations

import itertools

import pytest
from test_count_loop import only_counted, same, with_constants

from passes.testing import assert_refused, assert_rewrite
from tests.written import changed

pytestmark = pytest.mark.sampled

#: A loop that ends when its number exceeds 3.5, after three iterations, or by a counter.
SOLVER = """
<ir_version: 8, opset_import: ["" : 17]>
counts (int64 s, int64 n) => (int64 c_end, float h_end, int64[K] all)
<int64 zero = {0}, int64 one = {1}, float f = {1}, float enough = {3.5}, bool yes = {1}>
{
    start = Identity (s)
    go0 = Identity (yes)
    c_end, h_end, all = Loop ("", go0, start, f) <body = step
        (int64 i, bool go, int64 c, float h)
        => (bool go_out, int64 c_out, float h_out, int64 seen) {
        c_out = Add (c, one)
        h_out = Add (h, f)
        seen = Identity (c)
        calm = Less (h_out, enough)
        more = Less (c_out, n)
        go_out = And (calm, more)
    }>
}
"""
INITIAL, COUNTED = "go0 = Identity (yes)", "more = Less (c_out, n)"
FROM_ZERO = {"Identity (s)": "Identity (zero)", "(int64 s, int64 n)": "(int64 n)"}


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
    model = changed(SOLVER, {INITIAL: initial, COUNTED: f"more = {counted}"})
    if trips == "m":
        model = changed(model, {"int64 n)": "int64 n, int64 m)", 'Loop (""': "Loop (m"})
    for s, n, m in itertools.product([-2, 0, 3], [-3, 0, 1, 2, 7], [-1, 0, 1, 2, 9]):
        same(model, s=s, n=n, m=m)


def test_the_bound_becomes_the_trip_count_and_data_stays_the_condition() -> None:
    initial = "calm0 = Less (f, enough)\n some = Less (start, n)\n go0 = And (calm0, some)"
    model = only_counted(changed(SOLVER, FROM_ZERO | {INITIAL: initial}))
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    assert list(loop.input[:2]) == ["n", "go0"]
    body = loop.attribute[0].g
    assert body.node[-1].input == ["calm"]
    assert "Less (c_out" not in str(body)


def test_steps_and_an_omitted_initial_condition() -> None:
    model = changed(
        SOLVER,
        {
            "int64 n)": "int64 n, int64 m)",
            'Loop ("", go0': 'Loop (m, ""',
            "Add (c, one)": "Add (c, step)",
        }
        | with_constants("int64 step = {2}"),
    )
    for s, n, m in itertools.product([-2, 0, 3], [-3, 1, 2, 7], [0, 2, 9]):
        same(model, s=s, n=n, m=m)


def test_a_counter_at_the_end_of_its_range_ends_nothing() -> None:
    """It would wrap: the data ends the loop, as before."""
    largest = (1 << 63) - 1
    for start in (0, largest - 2, largest):
        same(changed(SOLVER, {COUNTED: "more = LessOrEqual (c_out, n)"}), s=start, n=largest)
        same(SOLVER, s=-largest, n=start)


def test_a_comparison_that_holds_in_all_iterations_is_dropped() -> None:
    changes = {COUNTED: "more = Less (i, nine)", 'Loop (""': "Loop (four"}
    constants = with_constants("int64 nine = {9}, int64 four = {4}")
    model = only_counted(changed(SOLVER, changes | constants))
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    assert loop.input[0] == "four"


def test_a_counter_that_is_compared_as_a_float_stays_with_the_data() -> None:
    """It is exact up to 2^24 only, and data may end the loop of a bound above that."""
    counted = """c_float = Cast <to = 1> (c_out)
        n_float = Cast <to = 1> (n)
        more = Less (c_float, n_float)"""
    text = changed(SOLVER, FROM_ZERO | {COUNTED: counted})
    assert_refused(text, "float-counter", pipeline="raise")


def test_it_is_unrolled_as_often_as_the_counter_allows() -> None:
    fixed = {"Identity (s)": "Identity (zero)", "(int64 s, int64 n)": "(float g)"}
    text = changed(SOLVER, fixed | with_constants("int64 n = {4}"))
    model = assert_rewrite(text, pipeline="unroll").model
    assert not [node for node in model.graph.node if node.op_type == "Loop"]
    assert sum(node.op_type == "Less" for node in model.graph.node) >= 3
