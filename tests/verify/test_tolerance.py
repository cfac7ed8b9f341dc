"""What an element may differ by: infinities, NaN, zeros, and what roundings move."""

from __future__ import annotations

import numpy as np
import pytest
from verified_models import check

from passes.verify.compare.compare import Alike
from passes.verify.compare.tolerance import Reach, Tolerance
from tests.written import changed

IDENTITY = "(float[N] x) => (float[N] y) { y = Identity (x) }"


def test_an_infinity_is_no_number() -> None:
    found = check(
        IDENTITY,
        """(float[N] x) => (float[N] y) {
            odd = IsInf (x)  seven = Constant <value_float = 7.0> ()
            y = Where (odd, seven, x) }""",
        exact=False,
    )
    assert found.verdict == "mismatch"
    assert "inf before and 7.0 after" in found.reason


def test_a_large_number_does_not_stand_for_a_mask_of_minus_infinity() -> None:
    masked = """(float[N] x, bool[N] m) => (float[N] y) {
        s = Sigmoid (x)  low = Constant <value_float = @> ()  y = Where (m, low, s) }"""
    found = check(masked.replace("@", "-inf"), masked.replace("@", "-10000.0"), exact=False)
    assert found.verdict == "mismatch"


def test_an_overflow_is_no_number() -> None:
    """Numbers of all magnitudes are finite; their exponentials are not."""
    found = check(
        "(float[N] x) => (float[N] y) { y = Exp (x) }",
        """(float[N] x) => (float[N] y) {
            low = Constant <value_float = -88.0> ()  high = Constant <value_float = 88.0> ()
            c = Clip (x, low, high)  y = Exp (c) }""",
        exact=False,
    )
    assert found.verdict == "mismatch"


def test_a_whole_number_that_roundings_move_is_not_any_other() -> None:
    """Near 2e10 floats lie 2048 apart, so that roundings move what a Cast makes of them."""
    text = """(float[N] x) => (int64[N] y) {
        c = Constant <value_float = 2e10> ()
        t = Tanh (x)  e = Exp (t)  s = Mul (e, c)  k = Cast <to = 7> (s)
        d = Constant <value_int = @> ()  y = Div (k, d) }"""
    assert (
        check(changed(text, {"@": "1"}), changed(text, {"@": "1"}), exact=False).verdict
        == "verified"
    )
    found = check(changed(text, {"@": "1"}), changed(text, {"@": "1000"}), exact=False)
    assert found.verdict == "mismatch"


def test_bit_equal_is_said_of_equal_bits_only() -> None:
    plus_zero = """(float[N] x) => (float[N] y) {
        zero = Constant <value_float = 0.0> ()  y = Add (x, zero) }"""
    assert check(IDENTITY, IDENTITY).errors.alike is Alike.BITS
    found = check(IDENTITY, plus_zero, exact=False)
    assert (found.verdict, found.errors.alike) == ("verified", Alike.VALUES)


class TestReach:
    """What the runs with other roundings let an element be."""

    NEAR = Tolerance("near", units=4.0)

    @staticmethod
    def floats(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        return np.array(values, np.float32)

    @pytest.mark.parametrize(
        ("plain", "run", "actual", "within"),
        [
            (1.0, 1.0 + 1e-6, 1.0 + 3e-6, True),
            (1.0, 1.0 + 1e-6, 1.0 + 1e-5, False),
            (np.inf, np.inf, 7.0, False),
            (np.inf, 3.0e38, 3.1e38, True),
            (np.inf, 3.0e38, 7.0, False),
            (np.inf, 3.0e38, np.nan, False),
            (np.inf, 3.0e38, -np.inf, False),
            (np.nan, 2.0, 2.05, True),
            (np.nan, 2.0, 200.0, False),
            (2.0, np.nan, np.nan, True),
            (2.0, np.inf, 1e30, True),
            (2.0, np.inf, -1e30, False),
        ],
    )
    def test_floats(self, plain: float, run: float, actual: float, within: bool) -> None:
        expected = self.floats(plain)
        reach = Reach(expected, [self.floats(run)])
        with np.errstate(all="ignore"):
            found, _ = reach.floats(expected, self.floats(actual), self.NEAR)
        assert found.tolist() == [within]

    @pytest.mark.parametrize(
        ("plain", "run", "actual", "within"),
        [
            (3, 17, 17, True),
            (3, 17, 5, True),
            (3, 17, 18, False),
            (3, 3, 4, False),
            (20_009_998_336, 20_009_996_288, 20_010_000_384, True),
            (20_009_998_336, 20_009_996_288, 20_000_000, False),
        ],
    )
    def test_whole_numbers(self, plain: int, run: int, actual: int, within: bool) -> None:
        expected = np.array([plain])
        found, _ = Reach(expected, [np.array([run])]).values(expected, np.array([actual]))
        assert found.tolist() == [within]

    def test_strings_that_no_run_gave_are_out_of_reach(self) -> None:
        plain, run = np.array(["a", "a"], object), np.array(["b", "b"], object)
        found, _ = Reach(plain, [run]).values(plain, np.array(["b", "c"], object))
        assert found.tolist() == [True, False]
