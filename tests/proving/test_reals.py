"""Proofs up to rounding: an identity over the reals, and a bound that no execution exceeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from passes.choices import ProofScope, Proving
from passes.ir.model import Model
from passes.proving.drawn.proving import prove_at_sizes
from passes.proving.pair import Pair
from passes.proving.promises import Promises
from passes.reports.proof import Proof
from passes.types import signature
from passes.verify.executor import Array, Feeds
from passes.verify.reference import ReferenceExecutor
from tests.instruments.proven import sides
from tests.proving.test_at_sizes import models

EQUAL = {
    "a variance in one pass, and in two": (
        """(float[N,4] x) => (float[N,1] y) { a = Constant <value_ints = [1]> ()
        m = ReduceMean (x, a) mm = Mul (m, m) s = Mul (x, x) q = ReduceMean (s, a)
        y = Sub (q, mm) }""",
        """(float[N,4] x) => (float[N,1] y) { a = Constant <value_ints = [1]> ()
        m = ReduceMean (x, a) d = Sub (x, m) two = Constant <value_float = 2.0> ()
        s = Pow (d, two) y = ReduceMean (s, a) }""",
    ),
    "a deviation whose variance is made in one pass": (
        """(float[N,4] x) => (float[N,4] y) { a = Constant <value_ints = [1]> ()
        m = ReduceMean (x, a) mm = Mul (m, m) s = Mul (x, x) q = ReduceMean (s, a)
        v = Sub (q, mm) e = Constant <value_float = 0.01> () w = Add (v, e) r = Sqrt (w)
        d = Sub (x, m) y = Div (d, r) }""",
        """(float[N,4] x) => (float[N,4] y) { a = Constant <value_ints = [1]> ()
        m = ReduceMean (x, a) d = Sub (x, m) s = Mul (d, d) v = ReduceMean (s, a)
        e = Constant <value_float = 0.01> () w = Add (v, e) r = Sqrt (w) i = Reciprocal (r)
        y = Mul (i, d) }""",
    ),
    "a softmax, and its quotient without a shift": (
        "(float[N,4] x) => (float[N,4] y) { y = Softmax (x) }",
        """(float[N,4] x) => (float[N,4] y) { a = Constant <value_ints = [1]> ()
        e = Exp (x) s = ReduceSum (e, a) y = Div (e, s) }""",
    ),
    "a softmax, and its quotient with a shift": (
        "(float[N,4] x) => (float[N,4] y) { y = Softmax (x) }",
        """(float[N,4] x) => (float[N,4] y) { a = Constant <value_ints = [1]> ()
        m = ReduceMax (x, a) d = Sub (x, m) e = Exp (d) s = ReduceSum (e, a) y = Div (e, s) }""",
    ),
    "both forms of the gate of a GRU": (
        """(float[N] z, float[N] h, float[N] n) => (float[N] y) {
        one = Constant <value_float = 1.0> () g = Sigmoid (z) k = Sub (one, g)
        a = Mul (k, n) b = Mul (g, h) y = Add (a, b) }""",
        """(float[N] z, float[N] h, float[N] n) => (float[N] y) {
        o = Neg (z) k = Sigmoid (o) d = Sub (n, h) e = Mul (k, d) y = Add (h, e) }""",
    ),
    "a tangent by a sigmoid": (
        "(float[N] x) => (float[N] y) { y = Tanh (x) }",
        """(float[N] x) => (float[N] y) { two = Constant <value_float = 2.0> ()
        one = Constant <value_float = 1.0> () d = Mul (x, two) s = Sigmoid (d)
        t = Mul (s, two) y = Sub (t, one) }""",
    ),
    "a linear recurrence, and its products": (
        """(float[3] a, float[3] x, float h) => (float y) {
        y = Scan <num_scan_inputs = 2, body = b (float s, float c, float e) => (float t) {
            p = Mul (c, s) t = Add (p, e) }> (h, a, x) }""",
        """(float[3] a, float[3] x, float h) => (float y) {
        a0, a1, a2 = Split <num_outputs = 3> (a) x0, x1, x2 = Split <num_outputs = 3> (x)
        b = Mul (a1, a2) c = Mul (a0, b) p = Mul (c, h) q = Mul (b, x0) r = Mul (a2, x1)
        s = Add (p, q) t = Add (r, x2) u = Add (s, t) e = Constant <value_ints = [0]> ()
        y = Squeeze (u, e) }""",
    ),
    "what is computed in float16": (
        "(float[N] x) => (float[N] y) { t = Tanh (x) y = Mul (t, x) }",
        """(float[N] x) => (float[N] y) { h = Cast <to = 10> (x) t = Tanh (h) m = Mul (t, h)
        y = Cast <to = 1> (m) }""",
    ),
    "what cancels in doubles": (
        """(double[N] x) => (double[N] y) { o = Constant <value = double {1000.0}> ()
        z = Add (x, o) y = Sub (z, o) }""",
        "(double[N] x) => (double[N] y) { y = Identity (x) }",
    ),
    "a choice by what both models compare alike": (
        """(float[N] x, float[N] w) => (float[N] y) { s = Mul (x, w) c = Less (s, x)
        a = Add (x, w) b = Sub (a, w) y = Where (c, b, w) }""",
        """(float[N] x, float[N] w) => (float[N] y) { s = Mul (x, w) c = Less (s, x)
        y = Where (c, x, w) }""",
    ),
}


def up_to_rounding(before: Model, after: Model, ranges: dict[str, tuple[float, float]]) -> Proof:
    """The proof of a pair, which is one up to rounding."""
    found = prove_at_sizes(Pair.of(before, after, Promises(ranges=ranges)), 10.0)
    assert found.scope.method == "reals", found.sentence()
    return found


def adversarial(low: float, high: float, shape: tuple[int, ...], turn: int) -> Array:
    """Inputs that are random, ends of the range, almost equal, or cancel."""
    rng = np.random.default_rng(turn)
    if turn % 4 == 0:
        return rng.uniform(low, high, shape)
    if turn % 4 == 1:
        return rng.choice([low, high], shape)
    if turn % 4 == 2:
        return np.clip(rng.uniform(low, high) + rng.uniform(-1e-4, 1e-4, shape), low, high)
    return rng.choice([high, high * (1 - 2**-20), -high if low < 0 else low], shape)


def furthest(before: Model, after: Model, found: Proof, low: float, high: float) -> float:
    """The largest difference of the outputs in execution, for inputs of the sizes of the proof."""
    executor, most = ReferenceExecutor(keep=2), 0.0
    types = {
        one.name: one.type.tensor_type.elem_type for one in signature.inputs(before.proto.graph)
    }
    for draw in found.scope.draws:
        for turn in range(24):
            feeds: Feeds = {
                name: adversarial(low, high, shape, turn + place).astype(
                    onnx.helper.tensor_dtype_to_np_dtype(types[name])
                )
                for place, (name, shape) in enumerate(draw.shapes)
            }
            one, other = (executor.run(side.proto, feeds).outputs for side in (before, after))
            for name, value in one.items():
                assert isinstance(value, np.ndarray)
                difference = np.abs(value.astype(np.float64) - np.asarray(other[name], np.float64))
                most = max(most, float(difference.max(initial=0.0)))
    return most


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.5, 2.0)])
@pytest.mark.parametrize("name", EQUAL)
def test_no_execution_exceeds_the_bound(name: str, low: float, high: float) -> None:
    before, after = models(*EQUAL[name])
    names = [one.name for one in before.proto.graph.input]
    found = up_to_rounding(before, after, dict.fromkeys(names, (low, high)))
    ((_, bound),) = found.scope.bounds
    most = furthest(before, after, found, low, high)
    assert most <= bound
    assert bound <= 1e4 * max(most, 2.0**-53 if "double" in EQUAL[name][0] else 2.0**-24)


@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
@pytest.mark.parametrize("name", ["cast/captured", "cast/scanned_backwards"])
def test_a_cast_is_within_the_bound(name: str) -> None:
    before, after = sides(Path("golden_models") / f"{name}.before.onnxtxt")
    found = up_to_rounding(before, after, {})
    assert furthest(before, after, found, -1.0, 1.0) <= max(
        bound for _, bound in found.scope.bounds
    )


UNEQUAL = {
    "a difference of squares, and the square of a difference": (
        "(float[N] x, float[N] w) => (float[N] y) { p = Mul (x, x) q = Mul (w, w) y = Sub (p, q) }",
        "(float[N] x, float[N] w) => (float[N] y) { d = Sub (x, w) y = Mul (d, d) }",
    ),
    "the next float as a factor": (
        "(float[N] x) => (float[N] y) { c = Constant <value_float = 3.0> () y = Mul (x, c) }",
        "(float[N] x) => (float[N] y) { c = Constant <value_float = 3.0000002> () y = Mul (x, c) }",
    ),
    "a sigmoid, and one of twice as much": (
        "(float[N] x) => (float[N] y) { y = Sigmoid (x) }",
        "(float[N] x) => (float[N] y) { d = Add (x, x) y = Sigmoid (d) }",
    ),
    "a softmax that adds a small number below": (
        "(float[N,2] x) => (float[N,2] y) { y = Softmax (x) }",
        """(float[N,2] x) => (float[N,2] y) { a = Constant <value_ints = [1]> ()
        o = Constant <value_float = 1e-7> () e = Exp (x) s = ReduceSum (e, a) t = Add (s, o)
        y = Div (e, t) }""",
    ),
    "a mean over one element less": (
        """(float[N,4] x) => (float[N,1] y) { a = Constant <value_ints = [1]> ()
        y = ReduceMean (x, a) }""",
        """(float[N,4] x) => (float[N,1] y) { a = Constant <value_ints = [1]> ()
        s = ReduceSum (x, a) c = Constant <value_float = 3.0> () y = Div (s, c) }""",
    ),
    "a whole number divided, and a float": (
        """(int64[N] x) => (float[N] y) { two = Constant <value = int64 {2}> () d = Div (x, two)
        y = Cast <to = 1> (d) }""",
        """(int64[N] x) => (float[N] y) { two = Constant <value_float = 2.0> ()
        f = Cast <to = 1> (x) y = Div (f, two) }""",
    ),
    "a whole number that wraps": (
        """(int32[N] x) => (double[N] y) { d = Add (x, x) y = Cast <to = 11> (d) }""",
        """(int32[N] x) => (double[N] y) { f = Cast <to = 11> (x) y = Add (f, f) }""",
    ),
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_what_is_no_identity_is_not_proven(name: str) -> None:
    found = prove_at_sizes(Pair.of(*models(*UNEQUAL[name])), 10.0)
    assert (found.verdict, found.code) == ("unproven", "element")


UNBOUNDED = {
    "the divisor may be 0": (
        "(float[N] x) => (float[N] y) { a = Add (x, x) b = Mul (a, x) y = Div (b, x) }",
        "(float[N] x) => (float[N] y) { y = Add (x, x) }",
    ),
    "Less decides by rounded floats": (
        """(float[N] x, float[N] w) => (bool[N] y) { a = Add (x, w) b = Sub (a, w)
        y = Less (b, w) }""",
        "(float[N] x, float[N] w) => (bool[N] y) { y = Less (x, w) }",
    ),
    "Cast decides by rounded floats": (
        """(float[N] x, float[N] w) => (int64[N] y) { a = Add (x, w) b = Sub (a, w)
        y = Cast <to = 7> (b) }""",
        "(float[N] x, float[N] w) => (int64[N] y) { y = Cast <to = 7> (x) }",
    ),
    "ArgMax decides by rounded floats": (
        """(float[3] x, float[3] w) => (int64[1] y) { a = Add (x, w) b = Sub (a, w)
        y = ArgMax (b) }""",
        "(float[3] x, float[3] w) => (int64[1] y) { y = ArgMax (x) }",
    ),
    "it may be undefined": (
        "(float[N] x) => (float[N] y) { a = Add (x, x) b = Sub (a, x) y = Sqrt (b) }",
        "(float[N] x) => (float[N] y) { y = Sqrt (x) }",
    ),
    "may overflow": (
        """(float[N] x) => (float[N] y) { c = Constant <value_float = 1e30> () a = Mul (x, c)
        b = Mul (a, c) d = Div (b, c) y = Div (d, c) }""",
        "(float[N] x) => (float[N] y) { y = Identity (x) }",
    ),
}


@pytest.mark.parametrize("reason", UNBOUNDED)
def test_what_has_no_finite_bound_is_refused(reason: str) -> None:
    found = prove_at_sizes(Pair.of(*models(*UNBOUNDED[reason])), 10.0)
    assert (found.verdict, found.code) == ("unproven", "rounding")
    assert reason in found.detail


def test_a_range_bounds_what_has_no_bound_otherwise() -> None:
    pair = models(*UNBOUNDED["the divisor may be 0"])
    found = up_to_rounding(*pair, {"x": (1.0, 2.0)})
    assert "|difference| <=" in found.sentence()
    assert found.sentence().endswith("for x within [1, 2], other inputs within [-1, 1]")


def test_a_range_names_an_input() -> None:
    pair = Pair.of(*models(*EQUAL["a tangent by a sigmoid"]), Promises(ranges={"z": (0.0, 1.0)}))
    found = prove_at_sizes(pair, 10.0)
    assert found.code == "input"
    assert found.detail == "--range: no free input is named 'z'"


def test_the_scope_is_wider_than_the_order_of_summation() -> None:
    assert Proving(required="reals").accepts(ProofScope.summation)
    assert Proving(required="reals").accepts(ProofScope.reals)
    assert not Proving(required="summation").accepts(ProofScope.reals)
