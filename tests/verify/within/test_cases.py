"""The inputs of a judgement, and what the original answers to them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from in_half import SUM, SUM_IN_HALF, SUM_OF_HALVES

from passes.ir.model import Model
from passes.verify.executor import Feeds
from passes.verify.within.cases import Cases
from passes.verify.within.rounded import Rounding
from tests.written import changed

COUNTED = """<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, float[3] x) => (float[3] y) <bool go = {1}> {
    y = Loop (n, go, x) <body = step (int64 i, bool c, float[3] h) => (bool c_out, float[3] h_out) {
        c_out = Identity (c)  h_out = Tanh (h)
    }>
}"""

ROWS = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,T,4] xs, float[B,4] zero) => (float[B,4] y) {
    y = Scan <num_scan_inputs = 1, scan_input_axes = [1], body = step (float[B,4] s, float[B,4] x)
        => (float[B,4] s_out) { s_out = Add (s, x) }> (zero, xs)
}"""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths that take no time."""
    monkeypatch.setattr("passes.verify.within.cases.LENGTHS", (1, 5))


def cases_of(
    before: str, after: str, given: Sequence[Feeds] = (), deadline: float = math.inf
) -> Cases:
    model, executor = Model(onnx.parser.parse_model(before)), Rounding().executor()
    return Cases(model, onnx.parser.parse_model(after), executor, given, 0, deadline)


def test_the_length_is_the_size_that_the_trip_count_depends_on() -> None:
    cases = cases_of(ROWS, ROWS)
    found = list(cases.all())
    assert [np.shape(case.feeds["xs"]) for case in found] == [(3, 1, 4)] * 3 + [(3, 5, 4)] * 3
    assert cases.inputs == "normal numbers, drawn 3 times for each T"


def test_the_length_may_be_a_trip_count_that_is_fed() -> None:
    found = list(cases_of(COUNTED, COUNTED).all())
    assert [(case.length, case.feeds["n"]) for case in found] == [(1, 1)] * 3 + [(5, 5)] * 3
    assert [list(case.was.decided.values()) for case in found[2:4]] == [[[1]], [[5]]]


def test_without_a_free_length_a_model_runs_as_it_is() -> None:
    fixed = changed(SUM, {"T": "7"})
    assert [case.length for case in cases_of(fixed, fixed).all()] == [None] * 3


def test_given_inputs_take_the_place_of_drawn_ones() -> None:
    given = {"xs": np.ones((9, 4), np.float32)}
    (case,) = cases_of(SUM, SUM_IN_HALF, [given]).all()
    assert (case.length, case.feeds) == (9, given)
    assert np.array_equal(case.was.outputs["y"], np.full(4, 9, np.float32))


def test_both_models_get_the_same_numbers_if_one_takes_half_precision() -> None:
    (case,) = cases_of(SUM, SUM_OF_HALVES, [{"xs": np.full((1, 4), 0.3, np.float32)}]).all()
    before, after = np.asarray(case.feeds["xs"]), np.asarray(case.after["xs"])
    assert (before.dtype, after.dtype) == (np.float32, np.float16)
    assert np.array_equal(before, after)
    assert np.array_equal(case.was.outputs["y"], before[0])


def test_what_cannot_be_run_is_told() -> None:
    foreign = changed(SUM, {'"" : 21': '"" : 21, "my" : 1', "Add (s_in": "my.Foo (s_in"})
    cases = cases_of(foreign, foreign)
    assert list(cases.all()) == []
    assert len(cases.not_run) == 2
    assert cases.not_run[0].startswith("T = 1: no inputs are found that the model takes (")


def test_lengths_for_which_there_is_no_time_are_told() -> None:
    cases = cases_of(SUM, SUM_IN_HALF, deadline=0.0)
    assert list(cases.all()) == []
    assert cases.not_run == ["T = 1 (out of time)", "T = 5 (out of time)"]


def test_a_length_that_the_model_needs_is_told_as_it_is() -> None:
    six = changed(
        SUM,
        {
            "zero = {0, 0, 0, 0}>": "zero = {0, 0, 0, 0}, float[1,6] w = {1, 1, 1, 1, 1, 1}>",
            "y = Scan": "read = MatMul (w, xs)  y = Scan",
        },
    )
    assert [case.length for case in cases_of(six, six).all()] == [6] * 3
