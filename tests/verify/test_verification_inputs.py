"""Verification: the signature, and inputs that the original takes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from verified_models import check, model


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
