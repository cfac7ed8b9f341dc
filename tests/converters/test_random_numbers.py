"""The steps of ops that draw random numbers.

onnxruntime has no kernels of their version 22, so at 22 the reference runs them: with a seed it
draws the same numbers, and where it has no seed the shape and type are what can be told.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from proving import converted, parsed, prove

pytestmark = pytest.mark.sampled

DRAWING = {
    "RandomNormal": "(float[2,3] x) => (float[2,3] y)"
    "{ y = RandomNormal<shape = [2, 3], seed = 3.0, mean = 1.0, scale = 2.0>() }",
    "RandomNormalLike": "(int32[2,3] x) => (double[2,3] y)"
    "{ y = RandomNormalLike<dtype = 11, seed = 3.0>(x) }",
    "RandomUniform": "(float[2,3] x) => (double[2,3] y)"
    "{ y = RandomUniform<shape = [2, 3], seed = 3.0, low = 1.0, high = 2.0, dtype = 11>() }",
    "RandomUniformLike": "(float[2,3] x) => (float[2,3] y){ y = RandomUniformLike<seed = 3.0>(x) }",
}
MORE = {
    "Multinomial": "(float[2,3] x) => (int32[2,5] y)"
    "{ y = Multinomial<sample_size = 5, seed = 3.0>(x) }",
    "Bernoulli": "(float[2,3] x) => (float[2,3] y) { y = Bernoulli<seed = 3.0>(x) }",
}


@pytest.mark.parametrize("target", [22, 26])
@pytest.mark.parametrize("op", DRAWING)
def test_the_same_numbers_are_drawn(op: str, target: int) -> None:
    model = parsed(DRAWING[op], 7)
    after = converted(model, target)
    onnx.checker.check_model(after, full_check=True)
    assert list(after.graph.node) == list(model.graph.node)
    feeds = {"x": np.zeros((2, 3), np.int32 if op == "RandomNormalLike" else np.float32)}
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    (actual,) = ReferenceEvaluator(after).run(None, feeds)
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("op", DRAWING)
def test_up_to_21_onnxruntime_draws_the_same(op: str) -> None:
    prove(DRAWING[op], opset=7, target=21, places=["main"])


@pytest.mark.parametrize("op", MORE)
def test_what_the_reference_does_not_seed(op: str) -> None:
    model = parsed(MORE[op], 15)
    after = converted(model, 26)
    onnx.checker.check_model(after, full_check=True)
    assert list(after.graph.node) == list(model.graph.node)
    prove(MORE[op], opset=15, target=21, places=["main"], feeds={"x": np.ones((2, 3), np.float32)})
