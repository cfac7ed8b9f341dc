"""Where roundings alone decide what a model gives: that proves nothing, everything else does."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from verified_models import REFERENCE, Pretend, before_and_after, check, model

from passes.verify.draw import Case
from passes.verify.executor import Executor, Feeds, Outcome
from passes.verify.steadiness import Steadiness, nudged
from passes.verify.tolerance import Tolerance
from passes.verify.trial import Side
from passes.verify.verification import verify

#: A recurrence that doubles an error in every step, summed up in two orders.
_STEPS = 100


def chaotic(step: str, outputs: str = "float[K] hT, float[T,K] y") -> str:
    """h' = tanh of a sum with large weights, over many steps."""
    weights = np.random.default_rng(0).normal(0, 1.5, (4, 4)).astype(np.float32)
    items = ", ".join(map(str, weights.ravel()))
    names = ", ".join(one.split()[1] for one in outputs.split(", "))
    collected = ", float[4] y_t" if "y" in names else ""
    return f"""(float[4] h, float[{_STEPS},4] x) => ({outputs.replace("K", "4")})
        <float[4,4] R = {{{items}}}, float[4] bias = {{0.3, -0.2, 0.7, 0.1}}> {{
        {names} = Scan <num_scan_inputs = 1, body = step (float[4] h_in, float[4] x_t)
            => (float[4] h_out{collected}) {{
            r = MatMul (h_in, R)  {step}  h_out = Tanh (s)
            {"y_t = Identity (h_out)" if collected else ""} }}> (h, x) }}"""


BEFORE = "p = Add (r, x_t)  s = Add (p, bias)"
REGROUPED = "p = Add (x_t, bias)  s = Add (r, p)"
WRONG = "p = Sub (x_t, bias)  s = Add (r, p)"


def near(before: str, after: str, *executors: Executor, outputs: str) -> Any:
    return check(
        chaotic(before, outputs),
        chaotic(after, outputs),
        executors=[REFERENCE, *executors],
        exact=False,
        reduction=6,
    )


ALL = f"float[K] hT, float[{_STEPS},K] y"
LAST = "float[K] hT"


def test_a_regrouped_sum_is_verified_by_the_steps_before_roundings_decide(
    onnxruntime: Executor,
) -> None:
    found = near(BEFORE, REGROUPED, onnxruntime, outputs=ALL)
    assert found.verdict == "verified", found.reason
    assert any("reference: roundings alone decide" in note for note in found.notes)


@pytest.mark.parametrize("outputs", [ALL, LAST])
def test_a_wrong_term_is_a_mismatch_in_the_same_recurrence(outputs: str) -> None:
    assert near(BEFORE, WRONG, outputs=outputs).verdict == "mismatch"


def test_a_model_that_is_exact_is_not_excused(onnxruntime: Executor) -> None:
    one = model("(float[N] x) => (float[N] y) { y = Neg (x) }")
    other = model("(float[N] x) => (float[N] y) { y = Identity (x) }")
    found = verify(one, other, executors=[REFERENCE, onnxruntime], exact=False)
    assert found.verdict == "mismatch"


def test_where_roundings_decide_everything_nothing_is_verified() -> None:
    """An original that makes anything of its inputs, but the same of the same ones."""
    one, other = (model("(float[3] x) => (float[3] y) { y = Tanh (x) }") for _ in range(2))
    one.doc_string, other.doc_string = "before", "after"

    def answer(side: str, feeds: Feeds) -> Any:
        seed = np.asarray(feeds["x"]).tobytes() + side.encode()
        return np.random.default_rng(list(seed)).normal(size=3).astype(np.float32)

    def counts(case: Case) -> bool:
        """Whether every number can be nudged."""
        x = np.asarray(case.feeds["x"])
        return bool(np.all(np.isfinite(x) & (x != 0)))

    found = verify(one, other, executors=[Pretend(answer)], exact=False, accept=counts)
    assert found.verdict == "not-compared"
    assert "roundings decide every element" in found.reason


class TestSettled:
    """What of an answer counts, by how the original's moves with the inputs."""

    @staticmethod
    def settled(moves: Any, expected: Any, actual: Any) -> tuple[list[float], int]:
        """`moves`: how far each element goes where an input is nudged by its rounding."""
        before, _ = before_and_after()
        calm = np.array([1.0], np.float32)

        def answer(side: str, feeds: Feeds) -> Any:
            return np.asarray(expected) + np.sign(np.asarray(feeds["x"]) - calm) * moves

        side = Side(Pretend(answer), before, None, 10.0)
        steadiness = Steadiness({"reference": side}, time.monotonic() + 60, Tolerance("near"))
        case = Case({"x": calm}, "ordinary", False, "a case")
        outcomes = (Outcome({"y": np.asarray(one)}) for one in (expected, actual))
        found = steadiness.settled("reference", case, *outcomes)
        (value,) = found.outcome.outputs.values()
        return np.asarray(value).tolist(), found.count

    def test_a_line_that_moves_is_taken_for_the_original(self) -> None:
        expected, actual = [[1.0, 2.0], [3.0, 4.0]], [[1.5, 2.0], [3.5, 4.5]]
        found = self.settled(np.array([[0.0, 0.0], [0.0, 1.0]]), expected, actual)
        assert found == ([[1.5, 2.0], [3.0, 4.0]], 2)

    def test_but_only_as_far_as_it_moves(self) -> None:
        found = self.settled(np.array([1e-3]), [0.0, 0.0, 0.0], [0.031, 0.033, -0.5])
        assert found == ([0.0, 0.033, -0.5], 1)

    def test_what_is_near_need_not_be_settled(self) -> None:
        value, count = self.settled(np.array([1.0]), [1.0, 2.0], [1.0 + 1e-15, 5.0])
        assert (value, count) == ([1.0 + 1e-15, 2.0], 1)

    def test_an_integer_that_jumps_takes_its_line_along(self) -> None:
        found = self.settled(np.array([[1], [0]]), [[1, 5], [2, 6]], [[9, 9], [9, 9]])
        assert found == ([[1, 5], [9, 9]], 2)

    def test_a_number_that_may_overflow_excuses_an_infinity(self) -> None:
        with np.errstate(all="ignore"):
            found = self.settled(np.array([np.inf]), [1.0, 1.0], [np.inf, 2.0])
        assert found == ([1.0, 1.0], 2)

    def test_a_complex_number_is_never_excused(self) -> None:
        value, count = self.settled(np.array([1e-7 + 0j]), [1 + 1j], [5 + 1j])
        assert (value, count) == ([5 + 1j], 0)

    def test_another_shape_is_never_excused(self) -> None:
        assert self.settled(np.array([1.0]), [1.0, 2.0], [1.0]) == ([1.0], 0)


def test_a_mismatch_is_not_lost_where_time_runs_out() -> None:
    before, _ = before_and_after()
    moving = Pretend(lambda side, feeds: np.asarray(feeds["x"]) * 1e6)
    side = Side(moving, before, None, 10.0)
    case = Case({"x": np.array([1.0])}, "ordinary", False, "a case")
    expected, actual = Outcome({"y": np.array([1.0])}), Outcome({"y": np.array([1.0 + 1e-9])})
    for left, excused in ((60, 1), (-1, 0)):
        steadiness = Steadiness({"reference": side}, time.monotonic() + left, Tolerance("near"))
        assert steadiness.settled("reference", case, expected, actual).count == excused


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_nudge_is_a_rounding(dtype: Any) -> None:
    array = np.array([1.0, -3.0, 0.0, np.inf, np.nan, np.finfo(dtype).max], dtype)
    feeds = nudged({"x": array, "n": np.array(3)}, np.random.default_rng(0))
    found = np.asarray(feeds["x"])
    assert (found.dtype, feeds["n"]) == (dtype, 3)
    moved = np.abs(found[:2].astype(np.float64) / array[:2].astype(np.float64) - 1)
    assert np.all((moved > 0) & (moved <= 2 * np.finfo(dtype).eps))
    assert found[2:5].tolist() == pytest.approx([0.0, np.inf, np.nan], nan_ok=True)
    assert np.isfinite(found[5])
