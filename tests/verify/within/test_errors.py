"""How far one outcome is from another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from passes.reports.precision import Differing, OutputError
from passes.verify.executor import Outcome
from passes.verify.within.errors import decisions, growing, off, sums_of, worst_of


def found(was: Any, now: Any, moved: Any = None) -> list[OutputError | Differing]:
    """How far an output is off; lists of arrays are sequences."""
    sides = [was, now, was if moved is None else moved]
    runs = [Outcome({"y": one if isinstance(one, list) else np.asarray(one)}) for one in sides]
    return [one for one in off(*runs, 16) if not isinstance(one, Differing) or one.total]


def floats(*values: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(values, np.float32)


def test_the_largest_difference_over_the_largest_element() -> None:
    (one,) = found(floats(1, -8, 2), floats(1.5, -8.25, 2))
    assert isinstance(one, OutputError)
    assert (one.error, one.worst, one.was, one.now) == (0.5 / 8, (0,), 1, 1.5)


def test_an_output_may_be_of_another_type_of_floats() -> None:
    (one,) = found(floats(1, -8, 2), np.array([1, -8, 2], np.float16))
    assert one == OutputError("y", 16, 0.0)


def test_if_all_elements_are_0_the_difference_counts_itself() -> None:
    (one,) = found(floats(0, 0), floats(0, 0.25))
    assert isinstance(one, OutputError)
    assert (one.error, one.worst) == (0.25, (1,))


def test_an_element_that_is_no_longer_finite_is_an_infinite_error() -> None:
    (one,) = found(floats(1, 2, 4), floats(np.inf, np.nan, 5))
    assert isinstance(one, OutputError)
    assert (one.overflows, one.error, one.counted) == (2, 0.25, np.inf)
    assert (one.worst, one.was, one.now) == ((0,), 1, None)


def test_elements_that_were_not_finite_have_no_error_and_are_counted() -> None:
    error, odd = found(floats(np.nan, np.inf, -np.inf, 4), floats(np.nan, np.inf, 3, 4))
    assert error == OutputError("y", 16, 0.0)
    assert odd == Differing("elements of 'y' that are not finite", 16, 1, 3)


def test_what_other_roundings_of_the_original_change_as_much_is_no_error() -> None:
    (one,) = found(floats(1, 2), floats(1.5, 2), floats(1, 1))
    assert isinstance(one, OutputError)
    assert (one.error, one.unsure, one.counted) == (0.25, 0.5, 0)
    (other,) = found(floats(1, 2), floats(np.inf, 2), floats(np.inf, 2))
    assert isinstance(other, OutputError)
    assert other.overflows == 0


def test_whole_numbers_bools_and_strings_are_counted() -> None:
    assert found(np.array([1, 2, 3]), np.array([1, 5, 4]), np.array([1, 5, 3])) == [
        Differing("'y'", 16, 2, 3, 1)
    ]
    assert found(np.array([1, 2]), np.array([1, 2], np.int32)) == [Differing("'y'", 16, 0, 2)]
    names = [np.array(["a", name], object) for name in "bc"]
    assert found(*names) == [Differing("'y'", 16, 1, 2)]


def test_another_shape_is_counted_as_such() -> None:
    assert found(floats(1, 2), floats(1)) == [Differing("the shape of 'y'", 16, 1, 1)]
    assert found([floats(1)], []) == [Differing("the shape of 'y'", 16, 1, 1)]


def test_the_elements_of_a_sequence_have_one_scale() -> None:
    (one,) = found([floats(8), floats(1, 2)], [floats(8), floats(1, 3)])
    assert isinstance(one, OutputError)
    assert (one.error, one.worst) == (1 / 8, (1, 1))


def test_trip_counts_and_branches_are_counted_in_their_order() -> None:
    assert decisions("branches", 1, [[1, 0, 1], [1, 1], [1, 0, 1]]) == Differing(
        "branches", 1, 2, 3
    )


def test_the_worst_of_several_cases_is_kept_and_counts_are_summed() -> None:
    cases = [
        OutputError("y", 1, 0.1, unsure=0.01),
        OutputError("y", 1, 0.3),
        OutputError("z", 1, 0),
    ]
    assert worst_of(cases) == [OutputError("y", 1, 0.3, unsure=0.01), OutputError("z", 1, 0)]
    counts = [Differing("n", 1, 1, 4), Differing("n", 1, 2, 4), Differing("m", 1, 0, 4)]
    assert sums_of(counts) == [Differing("n", 1, 3, 8)]


@pytest.mark.parametrize(
    ("errors", "grow"),
    [
        ({1: 9e-4, 16: 1.9e-3, 128: 2.2e-3, 1024: 2.4e-3}, False),
        ({1: 1e-3, 16: 2e-3, 128: 4e-3, 1024: 9e-3}, True),
        ({1: 1e-3, 16: 4e-3}, True),
        ({16: 4e-3}, False),
        ({None: 4e-3}, False),
    ],
)
def test_an_error_grows_by_more_than_twice_for_eight_times_the_length(
    errors: dict[int | None, float], grow: bool
) -> None:
    known = [OutputError("y", length, error) for length, error in errors.items()]
    assert growing(known) == ["y"] * grow
