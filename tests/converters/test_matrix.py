"""The steps of matrix products above version 9, run at the old opset and converted."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from proving import converted, drawn, ops, parsed, prove

from passes.rule import Refused

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


# -- down -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["float", "double"])
def test_gemm_without_c_down(kind: str) -> None:
    graph = f"({kind}[2,3] a, {kind}[3,4] b) => ({kind}[2,4] y) {{ y = Gemm<alpha = 0.5>(a, b) }}"
    after = prove(graph, opset=11, target=9, rtol=1e-6)
    assert len(after.graph.node[0].input) == 3


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize(
    ("a", "b", "y"),
    [
        *[("2,3", "3,4", "2,4"), ("3", "3", ""), ("2,2,3", "3", "2,2"), ("3", "3,4", "4")],
        *[("3", "2,3,4", "2,4"), ("2,1,3,4", "5,4,2", "2,5,3,2"), ("2,0", "0,3", "2,3")],
    ],
)
def test_matmul_of_integers_before_9(kind: str, a: str, b: str, y: str) -> None:
    graph = f"({kind}[{a}] a, {kind}[{b}] b) => ({kind}[{y}] y) {{ y = MatMul(a, b) }}"
    prove(graph.replace("[]", ""), opset=9, target=7, places=["main", "if"])


def test_det_is_refused_before_11() -> None:
    model = parsed("(float[2,2] x) => (float y) { y = Det(x) }", 11)
    with pytest.raises(Refused, match="no op before Det-11 computes a determinant"):
        converted(model, 10)


EINSUMS = {
    "ij,jk->ik": ("2,3 3,4", "MatMul"),
    "ij,jk": ("2,3 3,4", "MatMul"),
    "bhid,bhjd->bhij": ("A,B,C,4 A,B,D,4", "MatMul"),
    "bthd,hdm->btm": ("A,B,2,3 2,3,4", "MatMul"),
    "hdm,bthd->btm": ("2,3,4 A,B,2,3", "MatMul"),
    "bij,bkj->bik": ("2,1,3 1,2,3", "MatMul"),
    "...ij,...jk->...ik": ("2,1,2,3 2,3,3,2", "MatMul"),
    "bijk,bkl->bijl": ("2,2,3,2 2,2,3", "MatMul"),
    "bijk,bkl->bjil": ("A,B,C,2 A,2,3", "ReduceSum"),
    "i,j->ij": ("2 3", "Mul"),
    "ij,ij->ij": ("2,3 2,3", "Mul"),
    "i,i->": ("3 3", "MatMul"),
    "ij,jk,kl->il": ("2,3 3,4 4,2", "MatMul"),
    "ij,kl,jm->ikm": ("2,3 2,2 3,4", "MatMul"),
    "ijk->kj": ("2,3,4", "ReduceSum"),
    "ij->ji": ("2,3", "Transpose"),
    "...j->...": ("2,2,3", "ReduceSum"),
    "Ab, bA -> A": ("2,3 3,2", "MatMul"),
}


@pytest.mark.parametrize("target", [11, 9, 7])
@pytest.mark.parametrize("equation", EINSUMS)
def test_einsum_down(equation: str, target: int) -> None:
    shapes, by = EINSUMS[equation]
    inputs = [f"x{place}" for place, _ in enumerate(shapes.split())]
    given = ", ".join(f"float[{dims}] {x}" for dims, x in zip(shapes.split(), inputs, strict=True))
    sizes = [[int(d) if d.isdigit() else 2 for d in one.split(",")] for one in shapes.split()]
    rank = np.einsum(equation, *(np.zeros(one) for one in sizes)).ndim
    graph = f"""({given}) => (float[{",".join("RSTUV"[:rank])}] y)
        {{ y = Einsum<equation = "{equation}">({", ".join(inputs)}) }}""".replace("[]", "")
    places = ["main", "function" if target >= 9 else "if"]
    after = prove(graph, opset=12, target=target, places=places, rtol=1e-5)
    assert by in ops(after)


@pytest.mark.parametrize("kind", ["int32", "int64", "double"])
def test_einsum_of_other_types_down(kind: str) -> None:
    graph = f"""({kind}[2,3] a, {kind}[3,4] b) => ({kind}[2,4] y)
        {{ y = Einsum<equation = "ij,jk->ik">(a, b) }}"""
    prove(graph, opset=12, target=9, places=["main"], rtol=1e-6)


def test_einsums_that_are_refused_down() -> None:
    model = parsed('(float[2,2] x) => (float y) { y = Einsum<equation = "ii->">(x) }', 12)
    with pytest.raises(Refused, match="'ii' in 'ii->' takes a diagonal"):
        converted(model, 11)
    graph = """(float[6] x, int64[R] s) => (float[A,B] y) {
        u = Reshape(x, s)
        y = Einsum<equation = "...i->i...">(u)
    }"""
    with pytest.raises(Refused) as refused:
        converted(parsed(graph, 12), 11)
    assert refused.value.code == "unknown-rank"
