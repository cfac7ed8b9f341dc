"""Comparing outcomes: what counts as equal, and what a difference is called."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from passes.verify.compare.compare import Comparison, compare
from passes.verify.compare.tolerance import Tolerance
from passes.verify.executor import Outcome, Value

VALUES = Tolerance("values")
NEAR = Tolerance("near")
FLOATS = [
    *(np.float16, np.float32, np.float64, ml_dtypes.bfloat16),
    *(ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
]


def outcome(value: Value, *, guessed: bool = False) -> Outcome:
    return Outcome({"y": value}, guessed_shapes=guessed)


def of(one: Value, other: Value, tolerance: Tolerance | None = None) -> Comparison:
    return compare(outcome(one), outcome(other), tolerance or Tolerance())


def sentence(comparison: Comparison) -> str:
    assert not comparison.agree
    return comparison.differences[0].sentence


def f32(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def test_equal_outcomes_agree_and_the_elements_are_counted() -> None:
    comparison = of(np.zeros((2, 3)), np.zeros((2, 3)))
    assert comparison.agree
    assert comparison.elements == 6


def test_the_order_of_outputs_counts() -> None:
    one = Outcome({"a": f32(1), "b": f32(1)})
    other = Outcome({"b": f32(1), "a": f32(1)})
    assert sentence(compare(one, other)) == "the outputs are ['a', 'b'] before and ['b', 'a'] after"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (f32(1), np.array([1.0]), "y is float32 before and float64 after"),
        (f32(1), f32(1, 1), "the shape of y is (1,) before and (2,) after"),
        (f32(1), [f32(1)], "y is a tensor before and a sequence after"),
        ([f32(1)], None, "y is a sequence before and an empty optional after"),
        ([f32(1)], [], "the length of y is 1 before and 0 after"),
        ([f32(1), f32(2)], [f32(1), f32(3)], "y[1][0] is 2.0 before and 3.0 after; 1 of 1"),
        (np.array(1), np.array(2), "y is 1 before and 2 after; 1 of 1 elements differ"),
        (np.array(["a"], object), np.array(["b"], object), "y[0] is 'a' before and 'b' after"),
        (np.array([True]), np.array([False]), "y[0] is True before and False after"),
        (f32(0.0), f32(-0.0), "y[0] is 0.0 before and -0.0 after"),
        (f32(1, 1, 1), f32(2, 9, 1), "y[1] is 1.0 before and 9.0 after; 2 of 3"),
        (f32(1, 1, 1), f32(9, 1, np.nan), "y[2] is 1.0 before and nan after; 2 of 3"),
    ],
)
def test_a_difference_is_told_with_both_sides(one: Value, other: Value, expected: str) -> None:
    assert sentence(of(one, other)).startswith(expected)


def test_the_worst_element_is_there_as_data() -> None:
    found = of(np.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 5]])).differences[0]
    assert (found.output, found.index, found.expected, found.actual) == ("y", (1, 1), 4, 5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_bits_count_but_any_nan_is_nan(dtype: Any) -> None:
    width = np.dtype(dtype).itemsize * 8
    nan = np.array([np.nan]).astype(dtype)
    other_nan = (nan.view(f"u{width // 8}") ^ (1 << (width - 1))).view(dtype)
    assert of(nan, other_nan).agree
    smallest = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    zero, tiny = np.array([0.0]).astype(dtype), np.array([smallest]).astype(dtype)
    assert not of(zero, tiny).agree
    assert of(zero, tiny).errors.ulp == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_ignore_the_sign_of_zero_alone(dtype: Any) -> None:
    zeros = np.array([0.0, -0.0]).astype(dtype)
    assert of(zeros, zeros[::-1], VALUES).agree
    one, above = np.array([1.0]).astype(dtype), np.array([1.0]).astype(dtype)
    above = (above.view(f"u{above.itemsize}") + 1).view(dtype)
    assert not of(one, above, VALUES).agree


def test_near_allows_each_element_a_few_roundings_of_its_own() -> None:
    eps = float(np.finfo(np.float32).eps)
    assert of(f32(1.0), f32(1.0 + 4 * eps), NEAR).agree
    assert not of(f32(1.0), f32(1.0 + 100 * eps), NEAR).agree
    assert of(f32(1.0), f32(1.0 + 100 * eps), Tolerance("near", units=100)).agree
    assert not of(np.array([1.0]), np.array([1.0 + 4 * eps]), NEAR).agree
    assert not of(f32(1e6, 0.5), f32(1e6, 0.0), NEAR).agree  # whatever stands beside it


def test_near_may_have_a_floor() -> None:
    assert not of(f32(1e-9), f32(-1e-9), NEAR).agree
    assert of(f32(1e-9), f32(-1e-9), Tolerance("near", floor=1.0)).agree


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 3e38, -np.inf])
def test_near_is_never_near_to_what_is_not_finite(wrong: float) -> None:
    right = {np.nan: np.inf, np.inf: 3e38, 3e38: np.inf, -np.inf: np.inf}[wrong]
    assert not of(f32(right), f32(wrong), NEAR).agree
    assert of(f32(right), f32(right), NEAR).agree


def test_errors_are_the_worst_of_each_measure() -> None:
    eps = float(np.finfo(np.float32).eps)
    errors = of(f32(1.0, 4.0), f32(1.0 + 2 * eps, 4.0 + 4 * eps), NEAR).errors
    assert (errors.absolute, errors.relative, errors.ulp) == (4 * eps, 2 * eps, 2)


def test_complex_numbers_are_compared_by_their_parts() -> None:
    one, other = np.array([1 + 2j], np.complex64), np.array([1 - 2j], np.complex64)
    assert of(one, one).agree
    assert sentence(of(one, other)).startswith("y.imag[0] is 2.0 before and -2.0 after")


def test_strings_are_equal_however_numpy_holds_them() -> None:
    objects = np.array(["a", "é"], object)
    assert of(objects, np.array(["a", "é"])).agree
    assert of(objects, np.array([b"a", "é".encode()], object)).agree
    assert not of(np.array(["a "], object), np.array(["a"], object)).agree


def test_a_zero_dim_is_a_wildcard_only_where_a_shape_was_guessed() -> None:
    one, other = np.zeros((0, 3)), np.zeros((0, 0))
    assert not of(one, other).agree
    assert compare(outcome(one, guessed=True), outcome(other)).agree
    assert compare(outcome(one), outcome(other, guessed=True)).agree
    assert not compare(outcome(one, guessed=True), outcome(np.zeros((0, 4)))).agree
    assert not compare(outcome(one, guessed=True), outcome(np.zeros((0, 3, 0)))).agree


def test_what_was_guessed_is_no_excuse_for_elements_that_are_missing() -> None:
    nothing = outcome(np.zeros((0, 2)), guessed=True)
    assert compare(nothing, outcome(np.zeros((3, 2)))).agree
    assert not compare(nothing, outcome(np.array([[0, 0], [0, 1.0]]))).agree
    words = outcome(np.array([""], object))
    assert compare(outcome(np.empty(0, object), guessed=True), words).agree
    assert not compare(outcome(np.empty(0, object), guessed=True), outcome(np.array(["a"]))).agree


def test_four_bit_numbers_are_whole_numbers() -> None:
    one = np.array([1, -8]).astype(ml_dtypes.int4)
    assert of(one, one.copy()).agree
    assert sentence(of(one, one[::-1])).startswith("y[0] is 1 before and -8 after")
