"""Right outcomes that are verified although an executor differs, each beside a wrong one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from verified_models import REFERENCE, Pretend, before_and_after, check, model, raising

from passes.ir.model import Model
from passes.verify.executor import Executor, Feeds, ModelFailed, TookTooLong
from passes.verify.inputs.hints import model_hints
from tests.verification import Verification, verify
from tests.written import changed

ROWS_FIRST = """(float[B,S,2] x, float[1,9,2] w, float[1,9,3] r, int32[B] n, float[B,1,3] h) =>
    (float[B,1,3] last) { y, last = GRU <hidden_size = 3, layout = 1> (x, w, r, , n, h) }"""
TIME_FIRST = """(float[B,S,2] x, float[1,9,2] w, float[1,9,3] r, int32[B] n, float[B,1,3] h) =>
    (float[B,1,3] last) {
        t = Transpose <perm = [1, 0, 2]> (x)
        s = Transpose <perm = [1, 0, 2]> (h)
        y, l = GRU <hidden_size = 3> (t, w, r, , n, s)
        last = Transpose <perm = [1, 0, 2]> (l) }"""


class TestRowsOfLength0:
    """onnxruntime runs no GRU of layout 1, and ends rows of length 0 with zeros."""

    def test_its_answer_on_these_does_not_count(self, onnxruntime: Executor) -> None:
        found = self.found(TIME_FIRST, onnxruntime)
        assert found.verdict == "verified", found.reason
        assert found.tallies["onnxruntime"]["crossed"]
        assert any("not certain of what no iteration made" in note for note in found.notes)

    def test_an_outcome_that_ends_them_with_zeros_is_wrong(self, onnxruntime: Executor) -> None:
        wrong = changed(
            TIME_FIRST,
            {
                "last = Transpose <perm = [1, 0, 2]> (l)": """
                    k = Transpose <perm = [1, 0, 2]> (l)
                    zero = Constant <value_float = 0.0> ()
                    runs = Cast <to = 9> (n)
                    axes = Constant <value_ints = [1, 2]> ()
                    row = Unsqueeze (runs, axes)
                    last = Where (row, k, zero)"""
            },
        )
        assert self.found(wrong, onnxruntime).verdict == "mismatch"

    def test_other_rows_count(self, onnxruntime: Executor) -> None:
        wrong = changed(TIME_FIRST, {"w, r, , n, s": "w, r, , , s"})
        assert self.found(wrong, onnxruntime).verdict == "mismatch"

    @staticmethod
    def found(after: str, onnxruntime: Executor) -> Verification:
        before = model(ROWS_FIRST)
        hints = model_hints(Model(before))
        return check(before, after, executors=[REFERENCE, onnxruntime], exact=False, hints=hints)


MULTIPLIED = "(float[B,3] x, float[3,4] w) => (float[B,4] y) { y = MatMul (x, w) }"
BY_ROWS = """(float[B,3] x, float[3,4] w) => (float[B,4] y) {
    y = Scan <num_scan_inputs = 1, body = row (float[3] a) => (float[4] b) {
        b = MatMul (a, w) }> (x) }"""


class TestAScanOverNothing:
    """onnxruntime fails on it."""

    def test_is_noted_where_models_are_compared_for_any_runtime(
        self, onnxruntime: Executor
    ) -> None:
        found = self.found(BY_ROWS, onnxruntime, portable=True)
        assert found.verdict == "verified", found.reason
        assert any("fails where nothing is to be computed" in note for note in found.notes)

    def test_is_a_mismatch_in_a_rewrite(self, onnxruntime: Executor) -> None:
        assert self.found(BY_ROWS, onnxruntime, portable=False).verdict == "mismatch"

    def test_a_wrong_product_is_a_mismatch(self, onnxruntime: Executor) -> None:
        wrong = changed(BY_ROWS, {"b = MatMul (a, w)": "m = MatMul (a, w)  b = Abs (m)"})
        assert self.found(wrong, onnxruntime, portable=True).verdict == "mismatch"

    @staticmethod
    def found(after: str, onnxruntime: Executor, *, portable: bool) -> Verification:
        executors = [REFERENCE, onnxruntime]
        return check(MULTIPLIED, after, executors=executors, exact=False, portable=portable)


class TestAModelWithoutLoops:
    """However long it takes in one executor, it ends."""

    @pytest.mark.parametrize(("off", "verdict"), [(0.0, "verified"), (1.0, "mismatch")])
    def test_another_executor_decides_where_it_takes_too_long(
        self, off: float, verdict: str
    ) -> None:
        def slow(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(TookTooLong("took longer"))

        def other(side: str, feeds: Feeds) -> Any:
            return np.asarray(feeds["x"]) + np.float32(off if side == "after" else 0.0)

        found = verify(*before_and_after(), executors=[Pretend(slow), Pretend(other, "other")])
        assert found.verdict == verdict

    def test_one_with_a_loop_may_be_endless(self) -> None:
        before, after = before_and_after()
        looping = """(float[N] x) => (float[N] y) <bool go = {1}> {
            y = Loop ("", go, x) <body = b (int64 i, bool on, float[N] a) => (bool c, float[N] r) {
                c = Identity (on)  r = Neg (a) }> }"""
        after.CopyFrom(model(looping))
        after.doc_string = "after"

        def slow(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(TookTooLong("took longer"))

        assert verify(before, after, executors=[Pretend(slow)]).verdict == "mismatch"


class TestTwoFaultsOfAnExecutorInOneOutput:
    @pytest.mark.parametrize(("number", "verdict"), [(2.0, "verified"), (3.0, "mismatch")])
    def test_numbers_for_nan_and_a_wrong_number(self, number: float, verdict: str) -> None:
        found = self.found([np.nan, 2.0], before=[0.0, 5.0], after=[1.0, number])
        assert found.verdict == verdict

    @pytest.mark.parametrize(("end", "verdict"), [(-np.inf, "verified"), (np.inf, "mismatch")])
    def test_nan_for_an_overflow(self, end: float, verdict: str) -> None:
        found = self.found([-np.inf, 1e30], before=[np.nan, np.nan], after=[end, 1e30])
        assert found.verdict == verdict

    @staticmethod
    def found(right: list[float], before: list[float], after: list[float]) -> Verification:
        def other(side: str, feeds: Feeds) -> Any:
            return np.array(before if side == "before" else after, np.float32)

        same = Pretend(lambda side, feeds: np.array(right, np.float32))
        executors = [same, Pretend(other, "other")]
        return verify(*before_and_after(), executors=executors, exact=False)


def test_a_transposed_view_is_added_up_as_its_copy() -> None:
    product = """(float[6] v, float[6,6] m) => (float[6] y) {
        t = Transpose (m)  y = Einsum <equation = "a,ab->b"> (v, t) }"""
    copied = changed(product, {"t = Transpose (m)  ": "", "(v, t)": "(v, m)"})
    rng = np.random.default_rng(0)
    for _ in range(20):
        v, m = (rng.standard_normal(shape).astype(np.float32) for shape in (6, (6, 6)))
        viewed = REFERENCE.run(model(product), {"v": v, "m": m}).outputs["y"]
        plain = REFERENCE.run(model(copied), {"v": v, "m": m.T.copy()}).outputs["y"]
        np.testing.assert_array_equal(viewed, plain)


class TestSizesThatAreComputedAsFloats:
    """Exporters write Ceil(n / 2) so; other roundings would give other sizes."""

    TEXT = """(float[N] x) => (float[M] padded, float[N] scaled)
    <float two = {2}, int64[1] zero = {0}> {
        s = Shape (x)  f = Cast <to = 1> (s)  h = Div (f, two)  c = Ceil (h)
        n = Cast <to = 7> (c)  pads = Concat <axis = 0> (zero, n)  padded = Pad (x, pads)
        scaled = Div (x, f) }"""

    def test_stay_in_perturbed_runs(self) -> None:
        feeds = {"x": np.arange(1, 7, dtype=np.float32)}
        for seed in range(8):
            outputs = REFERENCE.perturbed(model(self.TEXT), feeds, seed).outputs
            assert np.shape(outputs["padded"]) == (9,)
            assert not np.array_equal(outputs["scaled"], feeds["x"] / 6)

    def test_sizes_that_inputs_decide_are_perturbed(self) -> None:
        text = changed(self.TEXT, {"(float[N] x)": "(float[N] x, int64[1] s)", "s = Shape (x)": ""})
        feeds = {"x": np.ones(8, np.float32), "s": np.array([8])}
        sizes = {
            np.shape(REFERENCE.perturbed(model(text), feeds, seed).outputs["padded"])
            for seed in range(8)
        }
        assert sizes == {(12,), (13,)}


def test_an_initial_state_of_another_batch_is_refused() -> None:
    text = """(float[2,B,2] x, float[1,3,2] w, float[1,3,3] r, float[1,1,3] h) => (float[1,B,3] y) {
        all, y = RNN <hidden_size = 3> (x, w, r, , , h) }"""
    feeds = {"w": np.ones((1, 3, 2)), "r": np.ones((1, 3, 3)), "h": np.ones((1, 1, 3))}
    for batch in (0, 2):
        rows = {"x": np.ones((2, batch, 2)), **feeds}
        with pytest.raises(ModelFailed, match="an initial state of shape"):
            REFERENCE.run(model(text), {name: one.astype(np.float32) for name, one in rows.items()})
