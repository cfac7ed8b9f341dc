"""Verification: right rewrites are verified, seeded faults are caught, and nothing is claimed
that was not compared."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from verified_models import REFERENCE, SUM, Pretend, before_and_after, check, model

from passes.verify.executor import Executor, Feeds, TookTooLong
from passes.verify.inputs.drawer import Hint
from tests.verification import verify


def test_a_model_agrees_with_itself_in_both_executors(onnxruntime: Executor) -> None:
    text = SUM + "{ z = Add(x, y)  w = Mul(x, y) }"
    found = check(text, text, executors=[REFERENCE, onnxruntime])
    assert found.verdict == "verified"
    assert found.tallies["reference"]["compared"] == found.tallies["onnxruntime"]["compared"] > 10
    assert (found.reasons, found.cut, found.failure) == ({}, (), None)
    assert found.elements > 500


#: Models that differ in one thing that a rewrite could get wrong.
FAULTS = {
    "swapped outputs": (
        SUM + "{ z = Add(x, y)  w = Mul(x, y) }",
        SUM + "{ w = Add(x, y)  z = Mul(x, y) }",
    ),
    "swapped operands": (
        SUM + "{ z = Sub(x, y)  w = Neg(x) }",
        SUM + "{ z = Sub(y, x)  w = Neg(x) }",
    ),
    "zero for minus zero": (
        "(float[N] x) => (float[N] y) { y = Identity(x) }",
        "(float[N] x) => (float[N] y) <float zero = {0}> { y = Add(x, zero) }",
    ),
    "multiplied where it must be selected": (
        "(float[N] x, bool[N] m) => (float[N] y) <float z = {0}> { y = Where(m, x, z) }",
        "(float[N] x, bool[N] m) => (float[N] y) { f = Cast<to = 1>(m)  y = Mul(x, f) }",
    ),
    "reversed time": (
        "(float[T,K] x) => (float[T,K] y) <int64 a = {0}> { y = CumSum(x, a) }",
        "(float[T,K] x) => (float[T,K] y) <int64 a = {0}> { y = CumSum<reverse = 1>(x, a) }",
    ),
    "transposed where sizes are equal": (
        "(float[N,N] x) => (float[N,N] y) { y = Identity(x) }",
        "(float[N,N] x) => (float[N,N] y) { y = Transpose(x) }",
    ),
    "another dtype": (
        "(float[N] x) => (float[N] y) { y = Identity(x) }",
        "(float[N] x) => (float[N] y) { y = Cast<to = 11>(x) }",
    ),
    "saturation": (
        "(int8[N] x) => (int8[N] y) { y = Add(x, x) }",
        "(int8[N] x) => (int8[N] y) { w = Cast<to = 6>(x)  s = Add(w, w) "
        "l = Constant<value = int32 {-128}>()  u = Constant<value = int32 {127}>() "
        "c = Clip(s, l, u)  y = Cast<to = 3>(c) }",
    ),
    "an empty string lost": (
        '(string[N] x) => (bool[N] y) <string e = {""}> { y = Equal(x, e) }',
        '(string[N] x) => (bool[N] y) <string e = {" "}> { y = Equal(x, e) }',
    ),
    "an item of a sequence too few": (
        "(seq(float[N]) s) => (int64 y) { y = SequenceLength(s) }",
        "(seq(float[N]) s) => (int64 y) { l = SequenceLength(s) "
        "t = Constant<value = int64 {2}>()  y = Min(l, t) }",
    ),
    "an empty optional taken for a full one": (
        "(optional(float[N]) o) => (bool y) { y = OptionalHasElement(o) }",
        "(optional(float[N]) o) => (bool y) { y = Constant<value = bool {1}>() }",
    ),
}


class TestSeededFaults:
    """Each pair differs in one thing that a rewrite could get wrong."""

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_fault_is_a_mismatch_with_the_inputs_that_show_it(self, fault: str) -> None:
        before, after = FAULTS[fault]
        found = check(before, after)
        assert found.verdict == "mismatch"
        assert found.failure is not None
        assert found.failure.expected is not None
        assert found.failure.sentence in found.reason
        assert set(found.failure.case.feeds) == {v.name for v in model(before).graph.input}

    @pytest.mark.parametrize("fault", FAULTS)
    def test_the_model_without_the_fault_is_verified(self, fault: str) -> None:
        before, _ = FAULTS[fault]
        assert check(before, before).verdict == "verified"


class TestRoundedArithmetic:
    """A rewrite that regroups sums: `exact=False`."""

    BEFORE = "(float[N,8] x, float[8,K] w) => (float[N,K] y) { y = MatMul(x, w) }"
    #: The same sum, the two halves first.
    AFTER = (
        "(float[N,8] x, float[8,K] w) => (float[N,K] y) <int64 one = {1}, int64 zero = {0}> {"
        "a, b = Split<axis = 1, num_outputs = 2>(x)  c, d = Split<axis = 0, num_outputs = 2>(w)"
        "e = MatMul(a, c)  f = MatMul(b, d)  y = Add(f, e) }"
    )

    def test_regrouped_sums_differ_in_bits_but_are_near(self) -> None:
        assert check(self.BEFORE, self.AFTER).verdict == "mismatch"
        found = check(self.BEFORE, self.AFTER, exact=False)
        assert found.verdict == "verified"
        assert found.errors.ulp > 0
        assert 0 < found.errors.relative <= 1  # of a sum that cancels

    def test_roundings_are_no_excuse_for_another_constant(self) -> None:
        text = "(float[N] x) => (float[N] y) <float e = {%s}> { d = Add(x, x)  y = Add(d, e) }"
        assert check(text % "0", text % "0.25", exact=False).verdict == "mismatch"
        # 0.3 is no dyadic number: such arithmetic may round, by what its own operators round.
        assert check(text % "0.3", text % "0.55", exact=False).verdict == "mismatch"
        assert check(text % "0.3", text % "0.30001", exact=False).verdict == "mismatch"

    def test_integers_that_hang_on_rounding_are_compared_on_exact_draws(self) -> None:
        before = """(float[N,8] x, float[8,K] w) => (bool[N,K] y) {
            s = MatMul(x, w)  t = MatMul(x, w)  y = Equal(s, t) }"""
        after = """(float[N,8] x, float[8,K] w) => (bool[N,K] y) {
            s = MatMul(x, w)
            a, b = Split<axis = 1, num_outputs = 2>(x)  c, d = Split<axis = 0, num_outputs = 2>(w)
            e = MatMul(a, c)  f = MatMul(b, d)  t = Add(f, e)  y = Equal(s, t) }"""
        assert check(before, after).verdict == "mismatch"
        assert check(before, after, exact=False).verdict == "verified"
        wrong = after.replace("Add(f, e)", "Sub(f, e)")
        assert check(before, wrong, exact=False).verdict == "mismatch"


class TestBudget:
    SLOW = 0.05
    calls = 0

    def slow(self, side: str, feeds: Feeds) -> Any:
        self.calls += 1
        time.sleep(self.SLOW)
        return feeds["x"]

    def test_time_is_bounded_and_what_was_cut_is_named(self) -> None:
        unbounded = verify(*before_and_after(), executors=[REFERENCE])
        found = verify(*before_and_after(), executors=[Pretend(self.slow)], budget=0.3)
        assert self.calls < 0.3 / self.SLOW + 20
        assert found.verdict == "verified"
        assert found.cut
        assert found.cut[-1] == "N = 131"
        assert found.compared + len(found.cut) == unbounded.compared

    def test_without_time_nothing_is_compared(self) -> None:
        found = verify(*before_and_after(), executors=[Pretend(self.slow)], budget=0)
        assert found.verdict == "not-compared"
        assert found.reason == "the time budget ran out before a case could be compared"

    def test_an_endless_loop_costs_its_time_out_a_few_times(self, onnxruntime: Executor) -> None:
        text = """(bool go, float[N] x) => (float[N] y) { y = Loop <body = b
            (int64 i, bool k, float[N] a) => (bool again, float[N] o)
            { o = Neg(a)  again = Identity(k) }> ("", go, x) }"""
        found = check(text, text, executors=[onnxruntime], case_timeout=0.2, budget=20)
        assert found.verdict == "verified"  # where `go` is false
        assert any("no answer in 0.2 s" in reason for reason in found.reasons)
        assert not found.cut

    def test_where_no_run_ended_in_its_time_the_result_depends_on_it(self) -> None:
        def endless(_: str, __: Feeds) -> Any:
            raise TookTooLong("took longer than 10 s")

        found = verify(*before_and_after(), executors=[Pretend(endless)])
        assert (found.verdict, found.compared) == ("not-compared", 0)
        assert found.timed_out
        assert not found.cut

    def test_a_rewritten_model_that_does_not_end_is_a_mismatch(self, onnxruntime: Executor) -> None:
        """At n == 2 it runs 2**62 times."""
        text = """(int64 n, float[N] x) => (float[N] y)
            <int64 two = {{2}}, int64 most = {{{most}}}> {{
            is = Equal (n, two)  m = Where (is, most, n)
            y = Loop <body = b (int64 i, bool k, float[N] a) => (bool again, float[N] o)
                {{ o = Neg(a)  again = Identity(k) }}> (m, , x) }}"""
        before, after = text.format(most=2), text.format(most=2**62)
        for executor in (REFERENCE, onnxruntime):
            found = check(before, after, executors=[executor], case_timeout=0.5, budget=20)
            assert found.verdict == "mismatch"
            assert "the rewritten model does not end, the original does" in found.reason

    def test_max_cases(self) -> None:
        found = verify(*before_and_after(), executors=[Pretend(self.slow)], most=2)
        assert (found.compared, found.cut) == (2, ())


def test_the_result_is_the_same_each_time(onnxruntime: Executor) -> None:
    text = SUM + "{ z = Div(x, y)  w = Tanh(x) }"
    runs = [check(text, text, executors=[REFERENCE, onnxruntime], seed=7) for _ in range(2)]
    assert runs[0] == runs[1]


def test_given_inputs_come_first_and_are_named() -> None:
    before, after = (
        "(float[N] x) => (float[N] y) { y = Abs(x) }",
        "(float[N] x) => (float[N] y) { y = Neg(x) }",
    )
    found = check(before, after, given=[{"x": np.float32([-1])}, {"x": np.float32([2])}])
    what = "y[0] is 2.0 before and -2.0 after; 1 of 1 elements differ"
    assert found.reason == f"{what} (reference executor, given inputs 1)"


def test_observed_values_are_used() -> None:
    """The fault shows at 12345 alone, which nobody would draw."""
    text = "(int64[N] x) => (bool[N] y) <int64 a = {{12000}}, int64 k = {{{k}}}> {{"
    text += " d = Sub(x, a)  y = Equal(d, k) }}"
    before, after = text.format(k=345), text.format(k=346)
    assert check(before, after).verdict == "verified"
    hints = {"x": Hint(natural=(np.array([1, 12345]),))}
    assert check(before, after, hints=hints).verdict == "mismatch"
