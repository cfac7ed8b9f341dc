"""The steps of matrix products above version 9, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from proving import converted, drawn, parsed, prove

pytestmark = pytest.mark.sampled


@pytest.mark.parametrize("kind", ["float", "double", "int32", "int64", "uint32"])
@pytest.mark.parametrize(
    ("a", "b", "y"), [("2,3", "3,4", "2,4"), ("3", "3", ""), ("2,2,3", "3", "2,2")]
)
def test_matmul(kind: str, a: str, b: str, y: str) -> None:
    graph = f"({kind}[{a}] a, {kind}[{b}] b) => ({kind}[{y}] y) {{ y = MatMul(a, b) }}"
    opset = 7 if kind in ("float", "double") else 9
    prove(graph.replace("[]", ""), opset=opset, target=26)


@pytest.mark.parametrize("kind", ["float", "double", "float16"])
@pytest.mark.parametrize("c", ["2,4", "4", "2,1", "1", ""])
def test_gemm(c: str, kind: str) -> None:
    graph = f"""({kind}[3,2] a, {kind}[4,3] b, {kind}[{c}] c) => ({kind}[2,4] y)
        {{ y = Gemm<alpha = 0.5, beta = 2.0, transA = 1, transB = 1>(a, b, c) }}"""
    prove(graph.replace("[]", ""), opset=7, target=26)


def test_gemm_11_without_c() -> None:
    graph = "(float[2,3] a, float[3,4] b) => (float[2,4] y) { y = Gemm(a, b) }"
    prove(graph, opset=11, target=26)


def test_det() -> None:
    prove("(float[2,3,3] x) => (float[2] y) { y = Det(x) }", opset=11, target=26)


@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij,jk", "ij,jk->ki", "...j,jk->...k"])
def test_einsum(equation: str) -> None:
    graph = f"""(float[2,3] a, float[3,2] b) => (float[2,2] y)
        {{ y = Einsum<equation = "{equation}">(a, b) }}"""
    prove(graph, opset=12, target=26)


def test_einsum_28() -> None:
    """onnxruntime has no opset 28; the reference runs it."""
    model = parsed(
        '(float[2,3] a, float[3,2] b) => (float[2,2] y) { y = Einsum<equation = "ij,jk">(a, b) }',
        12,
    )
    after = converted(model, 28)
    onnx.checker.check_model(after, full_check=True)
    feeds = drawn(model)
    (expected,) = ReferenceEvaluator(model).run(None, feeds)
    np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, feeds)[0], expected)
