"""Sums of all sizes in another order, where a model has a recurrent operator."""

from __future__ import annotations

import onnx.parser
import pytest

from passes.ir.model import Model
from passes.proving.pair import Pair
from passes.proving.prover import attempt
from passes.reports.proof import Proof

HEAD = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,N] x, float[N,N] z, float[N,N] w, float[T,B,3] u, float[1,4,3] v, float[1,4,4] r)
=> (float[A,C] y, float[T,1,B,4] q) { q, last = RNN <hidden_size = 4> (u, v, r) """


def proof(before: str, after: str) -> Proof:
    """The proof for all sizes of two ways to compute `y`, beside an RNN."""
    models = (Model.load(onnx.parser.parse_model(HEAD + one)) for one in (before, after))
    return attempt(Pair.of(*models)).proof


EQUAL = {
    "within a function": (
        "a = Add (x, z) b = Add (a, w) y = Sin (b) }",
        "a = Add (z, w) b = Add (x, a) y = Sin (b) }",
    ),
    "a product of a difference": (
        "a = Sub (w, x) b = Mul (z, a) y = Add (x, b) }",
        """one = Constant <value_float = 1.0> () a = Sub (one, z) b = Mul (a, x) c = Mul (z, w)
        y = Add (b, c) }""",
    ),
    "within a sum of any length": (
        "a = Add (x, z) b = Add (a, w) y = MatMul (b, w) }",
        "a = Add (z, w) b = Add (a, x) y = MatMul (b, w) }",
    ),
    "a sum in one kernel": (
        "y = Gemm (x, z, w) }",
        "a = MatMul (x, z) y = Add (w, a) }",
    ),
    "within a loop": (
        """k = Constant <value_ints = [0]> () h = ReduceMax <keepdims = 0> (w, k)
        last_h, y = Scan <num_scan_inputs = 2, body = b (float[N] s, float[N] i, float[N] j)
        => (float[N] t, float[N] o) { a = Add (s, i) t = Add (a, j) o = Sin (t) }> (h, x, z) }""",
        """k = Constant <value_ints = [0]> () h = ReduceMax <keepdims = 0> (w, k)
        last_h, y = Scan <num_scan_inputs = 2, body = b (float[N] s, float[N] i, float[N] j)
        => (float[N] t, float[N] o) { a = Add (i, j) t = Add (s, a) o = Sin (t) }> (h, x, z) }""",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_sums_of_the_same_terms_are_equal_up_to_their_order(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.sentence() == "proven for all sizes, up to the order of summation"
    assert any(line.endswith("but for a probability below 2^-40") for line in found.assumed)


UNEQUAL = {
    "what cancels": ("a = Add (x, z) y = Sub (a, z) }", "y = Identity (x) }"),
    "zero times what may be infinite": (
        "zero = Constant <value_float = 0.0> () y = Mul (x, zero) }",
        "zero = Constant <value_float = 0.0> () a = Exp (x) y = Mul (a, zero) }",
    ),
    "what overflows in between": (
        """large = Constant <value_float = 1.2676506002282294e30> ()
        small = Constant <value_float = 7.888609052210118e-31> ()
        a = Mul (x, large) y = Mul (a, small) }""",
        "y = Identity (x) }",
    ),
    "a mean that overflows": ("y = Mean (x, x) }", "y = Identity (x) }"),
    "a negative zero": (
        "zero = Constant <value_float = 0.0> () a = Add (x, zero) y = Reciprocal (a) }",
        "y = Reciprocal (x) }",
    ),
    "another index": (
        "a = Add (x, z) b = Add (a, w) y = MatMul (b, w) }",
        "a = Add (z, w) b = Add (a, x) c = Transpose (b) y = MatMul (c, w) }",
    ),
    "another factor of a kernel": (
        "y = Gemm (x, z, w) }",
        "y = Gemm <alpha = 2.0> (x, z, w) }",
    ),
    "another term": (
        "a = Add (x, z) y = Add (a, w) }",
        "a = Add (z, w) y = Add (z, a) }",
    ),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_others_are_not_equal(name: str) -> None:
    assert proof(*UNEQUAL[name]).code == "element"


def test_without_a_recurrent_operator_no_order_is_taken_for_another() -> None:
    head = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x, float[N] z) => (float[N] y) '
    before, after = (
        Model.load(onnx.parser.parse_model(head + one))
        for one in ("{ a = Add (x, z) y = Add (a, x) }", "{ a = Add (x, x) y = Add (a, z) }")
    )
    assert attempt(Pair.of(before, after)).proof.code == "element"
