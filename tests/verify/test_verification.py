"""Verification: right rewrites are verified, seeded faults are caught, and nothing is claimed
that was not compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, parser

from passes.verify.draw import Hint
from passes.verify.executor import CRASHED, CannotRun, Executor, Feeds, ModelFailed, Outcome
from passes.verify.onnxruntime import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor
from passes.verify.verification import Verification, verify

REFERENCE = ReferenceExecutor()


@pytest.fixture(scope="module")
def onnxruntime() -> Iterator[OnnxRuntimeExecutor]:
    pytest.importorskip("onnxruntime")
    with OnnxRuntimeExecutor() as one:
        yield one


def model(text: str, *, ir: int = 10, opset: int = 21) -> ModelProto:
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]> g {text}')


def check(before: str | ModelProto, after: str | ModelProto, **options: Any) -> Verification:
    one, other = (model(m) if isinstance(m, str) else m for m in (before, after))
    return verify(one, other, **{"executors": [REFERENCE], **options})


class Pretend:
    """An executor that answers with a function of the feeds. A model is told by its doc string."""

    def __init__(self, answer: Callable[[str, Feeds], Any], name: str = "reference") -> None:
        self.answer = answer
        self.name = name
        self.runs: list[str] = []

    def run(
        self,
        model: ModelProto,
        feeds: Feeds,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Outcome:
        self.runs.append(model.doc_string)
        return Outcome({"y": np.asarray(self.answer(model.doc_string, feeds))})


def before_and_after() -> tuple[ModelProto, ModelProto]:
    pair = model("(float[N] x) => (float[N] y) { y = Neg(x) }"), ModelProto()
    pair[1].CopyFrom(pair[0])
    pair[0].doc_string, pair[1].doc_string = "before", "after"
    return pair


def raising(error: Exception) -> Any:
    raise error


SUM = "(float[N,K] x, float[N,K] y) => (float[N,K] z, float[N,K] w)"


def test_a_model_agrees_with_itself_in_both_executors(onnxruntime: Executor) -> None:
    text = SUM + "{ z = Add(x, y)  w = Mul(x, y) }"
    found = check(text, text, executors=[REFERENCE, onnxruntime])
    assert found.verdict == "verified"
    assert found.tallies["reference"].compared == found.tallies["onnxruntime"].compared > 10
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


SCAN8 = """(int64[B] lens, float[B,S] s0, float[B,T,S] x) => (float[B,S] s, float[B,T,S] y) {
    s, y = Scan <num_scan_inputs = 1, directions = [%s], body = b
        (float[S] i, float[S] e) => (float[S] o, float[S] c)
        { o = Add(i, e)  c = Identity(o) }> (%s, s0, x)
}"""
LENGTHS = {"lens": Hint(length_of="T")}


class TestScan8:
    """Faults of lengths, which only show where rows are ragged."""

    @staticmethod
    def scan(directions: str = "0", lens: str = "lens") -> ModelProto:
        return model(SCAN8 % (directions, lens), ir=6, opset=8)

    @staticmethod
    def with_lens(op: str, other: str) -> ModelProto:
        """The scan with its lengths changed by an operator."""
        text = SCAN8 % ("0", "l2")
        return model(
            text.replace("{", f"<int64 k = {other}> {{ l2 = {op}(lens, k)", 1), ir=6, opset=8
        )

    def check(self, after: ModelProto, *executors: Executor) -> Verification:
        return check(self.scan(), after, executors=executors or (REFERENCE,), hints=LENGTHS)

    def test_the_right_one_is_verified_where_onnxruntime_refuses_length_0(
        self, onnxruntime: Executor
    ) -> None:
        found = self.check(self.scan(), REFERENCE, onnxruntime)
        assert found.verdict == "verified"
        assert found.tallies["reference"].compared > 25
        assert found.tallies["onnxruntime"].compared > 5
        assert any("sequence_lens" in reason for reason in found.reasons)

    def test_onnxruntime_alone_is_drawn_lengths_from_1(self, onnxruntime: Executor) -> None:
        found = self.check(self.scan(), onnxruntime)
        assert found.verdict == "verified"
        assert found.tallies["onnxruntime"].compared > 15

    def test_reversed_time(self) -> None:
        assert self.check(self.scan("1")).verdict == "mismatch"

    def test_lengths_left_out(self) -> None:
        assert self.check(self.scan(lens='""')).verdict == "mismatch"

    def test_lengths_one_too_small(self) -> None:
        assert self.check(self.with_lens("Sub", "{1}")).verdict == "mismatch"

    def test_what_must_fail_and_does_not(self) -> None:
        """Negative lengths taken for 0: only the invalid case tells."""
        found = self.check(self.with_lens("Max", "{0}"))
        assert found.verdict == "mismatch"
        assert found.failure is not None
        assert found.failure.case.label == "a negative length"
        assert "it answers where the original fails" in found.reason

    def test_padding_that_leaks(self) -> None:
        """A sum over all of time is right only while there are zeros behind the lengths."""
        good = """(int64[B] lens, float[B,T] x) => (float[B] y) <int64[1] one = {1}> {
            s = Shape<start = 1>(x)  e = Squeeze(s)  z = Sub(lens, lens)  r = Unsqueeze(lens, one)
            f = Constant<value = int64 {0}>()  d = Constant<value = int64 {1}>()
            t = Range(f, e, d)  m = Less(t, r)  n = Constant<value = float {0}>()
            v = Where(m, x, n)  y = ReduceSum<keepdims = 0>(v, one) }"""
        leaky = good.replace("v = Where(m, x, n)", "q = Cast<to = 1>(m)  v = Mul(x, q)")
        hints = {"lens": Hint(length_of="T")}
        assert check(good, good, hints=hints).verdict == "verified"
        found = check(good, leaky, hints=hints)
        assert found.verdict == "mismatch"
        assert found.failure is not None
        assert found.failure.case.label == "NaN behind the lengths"


class TestSignature:
    BEFORE = "(float[N] x, float[N] y) => (float[N] z) { z = Add(x, y) }"

    @pytest.mark.parametrize(
        ("after", "reason"),
        [
            (
                "(float[N] y, float[N] x) => (float[N] z) { z = Add(x, y) }",
                "the inputs are (float[N] x, float[N] y) before and (float[N] y, float[N] x) after",
            ),
            (
                "(float[N] x, float[M] y) => (float[N] z) { z = Add(x, y) }",
                "the inputs are (float[N] x, float[N] y) before and (float[N] x, float[M] y) after",
            ),
            (
                "(float[N] x, float[N] y) => (float[?] z) { z = Add(x, y) }",
                "the outputs are (float[N] z) before and (float[?] z) after",
            ),
            (
                "(float[N] x, float[N] y) => (double[N] z) { z = Add(x, y) }",
                "the outputs are (float[N] z) before and (double[N] z) after",
            ),
        ],
    )
    def test_a_changed_signature_is_told_with_both_sides(self, after: str, reason: str) -> None:
        found = check(self.BEFORE, after)
        assert (found.verdict, found.reason) == ("mismatch", reason)
        assert found.tallies == {}

    @staticmethod
    def with_default(ir: int, *, listed: bool = True, folded: bool = False) -> ModelProto:
        """x + w, w an initializer of 5, perhaps also an input, perhaps folded away."""
        result = model(
            "(float[N] x, float w) => (float[N] y) "
            + (
                "{ c = Constant<value = float {5}>()  y = Add(x, c) }"
                if folded
                else "{ y = Add(x, w) }"
            ),
            ir=ir,
        )
        result.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [], [5.0]))
        if not listed:
            del result.graph.input[1]
        return result

    def test_at_ir_3_an_input_that_names_an_initializer_is_no_input(self) -> None:
        found = check(self.with_default(3), self.with_default(4, listed=False))
        assert found.verdict == "verified"

    def test_from_ir_4_a_default_stays_an_input(self) -> None:
        found = check(self.with_default(4), self.with_default(4, listed=False))
        assert found.reason == "the overridable defaults are (float w) before and () after"

    def test_a_folded_default_is_caught_by_overriding_it(self) -> None:
        assert check(self.with_default(4), self.with_default(4)).verdict == "verified"
        found = check(self.with_default(4), self.with_default(4, folded=True))
        assert found.verdict == "mismatch"
        assert found.failure is not None
        assert found.failure.case.label == "w overridden"


class TestInputsFoundByTrying:
    """The types say less than the model demands."""

    @pytest.mark.parametrize(
        "text",
        [
            # indices below a size, dims that must be equal though unnamed, or named otherwise
            "(float[5,N] x, int64[K] i) => (float[K,N] y) { y = Gather(x, i) }",
            "(float[?,?] x, float[?,?] y) => (float[?,?] z) { z = MatMul(x, y) }",
            "(float[A] x, float[B] y) => (float[C] z) { z = Add(x, y) }",
            # a shape, and axes
            "(float[6,N] x, int64[2] s) => (float[?,?] y) { y = Reshape(x, s) }",
            "(float[N] x, int64[1] a) => (float[?,?] y) { y = Unsqueeze(x, a) }",
        ],
    )
    def test_inputs_that_the_original_takes_are_found(self, text: str) -> None:
        found = check(text, text)
        assert found.verdict == "verified"
        assert found.compared >= 3

    def test_an_unknown_rank_is_found(self) -> None:
        text = "(float[2,3] x, float[N] y) => (float[N] z) { z = MatMul(x, y) }"
        unknown = model(text)
        unknown.graph.input[1].type.tensor_type.ClearField("shape")
        assert check(unknown, unknown).verdict == "verified"

    def test_where_nothing_is_found_nothing_is_claimed(self) -> None:
        text = "(float[2] x, float[3] y) => (float[3] z) { z = Add(x, y) }"
        found = check(text, text)
        assert found.verdict == "not-compared"
        assert "Add" in found.reason
        assert found.tallies["reference"].both_failed > 10

    def test_an_input_without_dtype_is_said(self) -> None:
        bare = model("(float[N] x) => (float[N] y) { y = Neg(x) }")
        bare.graph.input[0].type.tensor_type.elem_type = 0
        found = check(bare, bare)
        assert (found.verdict, found.reason) == ("not-compared", "input x has no dtype")

    def test_given_inputs_do_without_drawing(self) -> None:
        bare = model("(float[N] x) => (float[N] y) { y = Neg(x) }")
        bare.graph.input[0].type.tensor_type.elem_type = 0
        found = check(bare, bare, given=[{"x": np.ones(2, np.float32)}])
        assert (found.verdict, found.compared) == ("verified", 1)


class TestSemantics:
    """What a failure on either side means, shown with executors that do as they are told."""

    def test_a_rewritten_model_that_fails_is_a_mismatch(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(ModelFailed("no"))

        found = verify(*before_and_after(), executors=[Pretend(answer)])
        assert found.reason == "reference, exact values: the rewritten model fails: no"

    def test_a_rewritten_model_that_answers_where_the_original_fails_is_a_mismatch(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "after" else raising(ModelFailed("no"))

        found = verify(*before_and_after(), executors=[Pretend(answer)])
        assert found.verdict == "mismatch"
        assert "it answers where the original fails: no" in found.reason

    def test_in_another_executor_it_is_not_compared(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "after" else raising(ModelFailed("no"))

        found = verify(*before_and_after(), executors=[Pretend(answer, "other")])
        assert (found.verdict, found.reason) == ("not-compared", "other: the original: no")

    def test_what_another_executor_answers_where_the_original_fails_does_not_count(self) -> None:
        """onnxruntime leaves out a dead node of the original that fails."""

        def other(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(ModelFailed("no"))

        fails = Pretend(lambda side, feeds: raising(ModelFailed("both")))
        found = verify(*before_and_after(), executors=[fails, Pretend(other, "other")])
        assert found.verdict == "not-compared"
        assert any("other answers where the original fails" in note for note in found.notes)

    @pytest.mark.parametrize("error", [ModelFailed("refused"), CannotRun("no kernel")])
    def test_what_another_executor_refuses_is_compared_with_the_reference(
        self, error: Exception
    ) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "after" else raising(error)

        executors = [Pretend(lambda side, feeds: feeds["x"]), Pretend(answer, "other")]
        found = verify(*before_and_after(), executors=executors)
        assert found.verdict == "verified"
        assert found.tallies["other"].crossed > 10
        assert found.tallies["other"].compared == 0

    def test_and_a_wrong_answer_there_is_a_mismatch(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return np.asarray(feeds["x"]) + 1 if side == "after" else raising(ModelFailed("no"))

        executors = [Pretend(lambda side, feeds: feeds["x"]), Pretend(answer, "other")]
        found = verify(*before_and_after(), executors=executors)
        assert found.verdict == "mismatch"
        assert "before in the reference executor and" in found.reason

    def test_executors_that_disagree_on_the_original_are_noted(self) -> None:
        executors = [
            Pretend(lambda side, feeds: feeds["x"]),
            Pretend(lambda side, feeds: np.asarray(feeds["x"]) + 1, "other"),
        ]
        found = verify(*before_and_after(), executors=executors)
        assert found.verdict == "verified"
        assert any("other and the reference executor disagree" in note for note in found.notes)

    def test_an_original_that_disagrees_with_itself_is_not_compared(self) -> None:
        rng = np.random.default_rng(0)

        def answer(side: str, feeds: Feeds) -> Any:
            return rng.random(3)

        found = verify(*before_and_after(), executors=[Pretend(answer)])
        assert found.verdict == "not-compared"
        assert "different answers on the same inputs" in found.reason

    def test_an_executor_that_only_rounds_differently_is_noted(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            shift = np.float32(1e-7) if side == "after" else np.float32(0)
            return np.asarray(feeds["x"]) + shift

        same = Pretend(lambda side, feeds: feeds["x"])
        found = verify(*before_and_after(), executors=[same, Pretend(answer, "other")])
        assert found.verdict == "verified"
        assert found.notes[0].startswith("other rounds differently before and after (")
        assert 0 < found.errors.absolute < 1e-6
        assert verify(*before_and_after(), executors=[Pretend(answer)]).verdict == "mismatch"

    def test_a_rewritten_model_that_another_executor_cannot_run_is_noted(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(CannotRun(reason))

        reason = "cannot load: NOT_IMPLEMENTED"
        same = Pretend(lambda side, feeds: feeds["x"])
        found = verify(*before_and_after(), executors=[same, Pretend(answer, "other")])
        assert found.verdict == "verified"
        assert found.notes[0].startswith("other runs the original alone (")

    def test_a_rewritten_model_that_another_executor_finds_invalid_is_a_mismatch(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(CannotRun("cannot load: two nodes"))

        same = Pretend(lambda side, feeds: feeds["x"])
        found = verify(*before_and_after(), executors=[same, Pretend(answer, "other")])
        assert found.verdict == "mismatch"
        assert "not valid there: cannot load: two nodes" in found.reason

    def test_a_rewritten_model_that_always_ends_another_executor_is_a_mismatch(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            return feeds["x"] if side == "before" else raising(CannotRun(f"{CRASHED} (SIGABRT)"))

        same = Pretend(lambda side, feeds: feeds["x"])
        found = verify(*before_and_after(), executors=[same, Pretend(answer, "other")])
        assert found.verdict == "mismatch"
        assert "only the rewritten model ends it, in every case" in found.reason

    def test_one_that_ends_it_on_some_inputs_is_noted(self) -> None:
        def answer(side: str, feeds: Feeds) -> Any:
            if side == "before" or len(np.asarray(feeds["x"])):
                return feeds["x"]
            raise CannotRun(f"{CRASHED} (SIGSEGV)")

        same = Pretend(lambda side, feeds: feeds["x"])
        found = verify(*before_and_after(), executors=[same, Pretend(answer, "other")])
        assert found.verdict == "verified"
        assert any(note.startswith("other runs the original alone") for note in found.notes)

    def test_what_cannot_run_is_not_compared_and_soon_left_alone(self) -> None:
        executor = Pretend(lambda side, feeds: raising(CannotRun("no kernel for Foo")))
        found = verify(*before_and_after(), executors=[executor])
        assert found.verdict == "not-compared"
        assert found.reason == "reference: the original: no kernel for Foo"
        assert executor.runs == ["before"] * 3

    def test_empty_outputs_prove_nothing(self) -> None:
        found = verify(*before_and_after(), executors=[Pretend(lambda side, feeds: np.zeros(0))])
        assert (found.verdict, found.reason) == ("not-compared", "every compared output was empty")

    def test_without_executors_nothing_is_compared(self) -> None:
        assert verify(*before_and_after(), executors=[]).verdict == "not-compared"


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
        found = check(self.BEFORE, self.AFTER, exact=False, reduction=8)
        assert found.verdict == "verified"
        assert found.errors.ulp > 0
        assert 0 < found.errors.absolute < 1e-5
        assert found.reduction == 8

    def test_on_exact_draws_numbers_are_equal_however_wide_the_tolerance(self) -> None:
        text = "(float[N] x) => (float[N] y) <float e = {%s}> { d = Add(x, x)  y = Add(d, e) }"
        wide = {"exact": False, "reduction": 10**12}  # allows for errors of about 2
        assert check(text % "0", text % "0.25", **wide).verdict == "mismatch"
        # 0.3 is no dyadic number: such arithmetic may round, and only the tolerance counts.
        assert check(text % "0.3", text % "0.55", **wide).verdict == "verified"

    def test_integers_that_hang_on_rounding_are_compared_on_exact_draws(self) -> None:
        signature = "(float[N,8] x, float[8,K] w) => (bool[N,K] y)"
        before = signature + "{ s = MatMul(x, w)  t = MatMul(x, w)  y = Equal(s, t) }"
        split = self.AFTER[self.AFTER.index("{a") + 1 :].replace("y = Add", "t = Add")
        after = signature + "{ s = MatMul(x, w) " + split.replace("}", "y = Equal(s, t) }")
        assert check(before, after).verdict == "mismatch"
        assert check(before, after, exact=False).verdict == "verified"
        wrong = after.replace("Add(f, e)", "Sub(f, e)")
        assert check(before, wrong, exact=False).verdict == "mismatch"


class TestBudget:
    SLOW = 0.05

    def slow(self, side: str, feeds: Feeds) -> Any:
        time.sleep(self.SLOW)
        return feeds["x"]

    def test_time_is_bounded_and_what_was_cut_is_named(self) -> None:
        unbounded = verify(*before_and_after(), executors=[REFERENCE])
        started = time.monotonic()
        found = verify(*before_and_after(), executors=[Pretend(self.slow)], budget=0.3)
        assert time.monotonic() - started < 0.3 + 4 * self.SLOW
        assert found.verdict == "verified"
        assert found.budget_exhausted
        assert found.cut[-1] == "exact values 4"
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
        assert not found.budget_exhausted

    def test_max_cases(self) -> None:
        found = verify(*before_and_after(), executors=[Pretend(self.slow)], max_cases=2)
        assert (found.compared, found.budget_exhausted) == (2, False)


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
    assert found.reason.startswith("reference, given inputs 1: y[0] is 2.0 before and -2.0 after")


def test_observed_values_are_used() -> None:
    """The fault shows at 12345 alone, which nobody would draw."""
    signature = "(int64[N] x) => (bool[N] y)"
    before = signature + "<int64 k = {12345}> { y = Equal(x, k) }"
    after = signature + "<int64 k = {12346}> { y = Equal(x, k) }"
    assert check(before, after).verdict == "verified"
    hints = {"x": Hint(natural=(np.array([1, 12345]),))}
    assert check(before, after, hints=hints).verdict == "mismatch"
