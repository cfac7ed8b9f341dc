"""Elementwise rules: operands line up as they do in one row."""

from __future__ import annotations

import itertools

import pytest
from looping import prove

pytestmark = pytest.mark.sampled

SHAPES = ["", "[3]", "[1]", "[2,3]", "[2,1]", "[4,2,3]"]


@pytest.mark.parametrize("carrying", [["a"], ["b"], ["a", "b"]])
@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, SHAPES)))
def test_operands_of_every_rank_broadcast_as_in_a_row(
    a: str, b: str, carrying: list[str], both: list
) -> None:
    prove(
        f"g (float{a} a, float{b} b) => (float[] y) {{ y = Sub (a, b) }}", carrying, executors=both
    )


@pytest.mark.parametrize("carrying", [["low"], ["x"], ["x", "high"], ["low", "high"]])
def test_clip_bounds_may_come_from_each_row(carrying: list[str], both: list) -> None:
    text = "g (float[2,3] x, float low, float high) => (float[] y) { y = Clip (x, low, high) }"
    prove(text, carrying, executors=both)


@pytest.mark.parametrize("carrying", [["x"], ["slope"], ["x", "slope"]])
@pytest.mark.parametrize("slope", ["", "[3]", "[1,3]", "[2,1]", "[2,3]"])
def test_a_slope_may_come_from_each_row(slope: str, carrying: list[str], both: list) -> None:
    text = f"g (float[2,3] x, float{slope} slope) => (float[2,3] y) {{ y = PRelu (x, slope) }}"
    prove(text, carrying, executors=both)


@pytest.mark.parametrize("carrying", [["c"], ["x"], ["c", "y"], ["c", "x", "y"]])
def test_where_takes_conditions_from_each_row(carrying: list[str], both: list) -> None:
    text = "g (bool c, float[2,3] x, float[3] y) => (float[] z) { z = Where (c, x, y) }"
    prove(text, carrying, executors=both)


def test_what_no_row_touches_is_written_once_and_spread_at_the_end(both: list) -> None:
    text = "g (float[3] a, float[2] w) => (float[] y, float[] z) { y = Neg (a) z = Exp (w) }"
    made = prove(text, ["a"], executors=both)
    assert [node.op_type for node in made.graph.node].count("Exp") == 1
