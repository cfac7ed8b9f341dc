"""Verification of an upgraded Scan-8: the right one, and faults in it."""

from __future__ import annotations

from onnx import ModelProto
from verified_models import REFERENCE, check, model

from passes.verify.executor import Executor
from passes.verify.inputs.drawer import Hint
from tests.verification import Verification

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
        assert found.tallies["reference"]["compared"] > 25
        assert found.tallies["onnxruntime"]["compared"] > 5
        assert any("sequence_lens" in reason for reason in found.reasons)

    def test_onnxruntime_alone_is_drawn_lengths_from_1(self, onnxruntime: Executor) -> None:
        found = self.check(self.scan(), onnxruntime)
        assert found.verdict == "verified"
        assert found.tallies["onnxruntime"]["compared"] > 15

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
        """A sum over all of time is right only while there are zeros after the lengths."""
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
        assert found.failure.case.label == "NaN after the lengths"
