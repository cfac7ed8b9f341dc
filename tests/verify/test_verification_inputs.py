"""Verification: the signature, and inputs that the original takes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from verified_models import check, model

from tests.verification import Verification


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
        assert found.tallies["reference"]["both failed"] > 10

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


class TestNothingToScan:
    """What a user promised not to be empty, and inputs do not tell: how often inner loops run."""

    LOOPS = """(float[T,2] x, int64 n, float[2] w) => (float[T,U,2] z) {{
        zero = Constant <value_ints = [0]> ()
        z = Scan <num_scan_inputs = 1, body = outer (float[2] x_t) => (float[U,2] ys) {{
            one = Constant <value_ints = [1]> ()
            ends = Reshape (n, one)
            rows = Slice (x, zero, ends)
            {moved}
            ys = {inner}
        }}> (x)
    }}"""
    SCAN = """Scan <num_scan_inputs = 1, body = step (float[2] r) => (float[2] y) {
        y = Add (r, w) }> (rows)"""
    LOOP = """Loop <body = step (int64 i, bool go) => (bool on, float[2] y) {
        on = Identity (go) y = Identity (w) }> (n, "")"""
    FAILS_ON_NOTHING = "first = Gather (rows, zero)"

    def found(self, inner: str, *, non_empty: bool) -> Verification:
        before = self.LOOPS.format(moved="", inner=inner)
        after = self.LOOPS.format(moved=self.FAILS_ON_NOTHING, inner=inner)
        return check(before, after, non_empty=non_empty)

    def test_a_broken_promise_is_no_mismatch_but_noted(self) -> None:
        found = self.found(self.SCAN, non_empty=True)
        assert found.verdict == "verified"
        assert "reference differs where a Scan has nothing to scan" in found.notes[0]

    def test_without_the_promise_it_is_one(self) -> None:
        found = self.found(self.SCAN, non_empty=False)
        assert "the rewritten model fails: Gather 'first' failed" in found.reason

    def test_a_trip_count_of_0_is_not_what_was_promised(self) -> None:
        assert self.found(self.LOOP, non_empty=True).verdict == "mismatch"

    def test_nor_does_it_excuse_anything_where_scans_run(self) -> None:
        before = self.LOOPS.format(moved="", inner=self.SCAN)
        after = before.replace("Add (r, w)", "Sub (r, w)")
        assert check(before, after, non_empty=True).verdict == "mismatch"


def test_floats_that_a_model_takes_for_whole_numbers_are_small_ones() -> None:
    looked_up = """(float[200] x, float[2] table) => (float[200] y) <int64 one = {1}> {
        k = Cast <to = 7> (x)
        place = Sub (k, one)
        y = Gather (table, place)
    }"""
    assert check(looked_up, looked_up).tallies["reference"]["compared"] > 3  # else one, of zeros
