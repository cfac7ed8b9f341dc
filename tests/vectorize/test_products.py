"""Rules for MatMul and Gemm: every combination of ranks and of operands that carry the axis."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from looping import prove, prove_at_any_size, refused, subsets

pytestmark = pytest.mark.sampled

SIZES = (1, 3, 0)
LEFT = ["[3]", "[4,3]", "[2,4,3]", "[1,4,3]", "[5,2,4,3]", "[5,1,4,3]"]
RIGHT = ["[3]", "[3,2]", "[2,3,2]", "[1,3,2]", "[5,2,3,2]", "[1,2,3,2]"]


@pytest.mark.parametrize("carrying", subsets("ab"))
@pytest.mark.parametrize(("a", "b"), list(itertools.product(LEFT, RIGHT)))
def test_matmul_of_every_pair_of_ranks(a: str, b: str, carrying: list[str], both: list) -> None:
    """The values are small and dyadic: regrouped sums are equal to the bit."""
    text = f"g (float{a} a, float{b} b) => (float[] y) {{ y = MatMul (a, b) }}"
    prove(text, carrying, sizes=(3,), executors=both)
    prove(text, carrying, sizes=(1, 0), nonempty=False, executors=both)


@pytest.mark.parametrize("kind", ["double", "int32", "int64", "uint32", "float16"])
@pytest.mark.parametrize("carrying", subsets("ab"))
@pytest.mark.parametrize("opset", [13, 18])
def test_matmul_of_every_type(kind: str, carrying: list[str], opset: int, both: list) -> None:
    for a, b in [("[3]", "[3]"), ("[4,3]", "[3]"), ("[3]", "[3,2]"), ("[4,3]", "[3,2]")]:
        text = f"g ({kind}{a} a, {kind}{b} b) => ({kind}[] y) {{ y = MatMul (a, b) }}"
        prove(text, carrying, ranges={"a": (0, 9), "b": (0, 9)}, opset=opset, executors=both)


@pytest.mark.parametrize("carrying", subsets("ab"))
@pytest.mark.parametrize(
    ("a", "b"), [("[0]", "[0]"), ("[4,0]", "[0,2]"), ("[0,3]", "[3,2]"), ("[2,0]", "[0]")]
)
def test_matmul_of_empty_rows(a: str, b: str, carrying: list[str], both: list) -> None:
    text = f"g (float{a} a, float{b} b) => (float[] y) {{ y = MatMul (a, b) }}"
    # onnxruntime leaves sums of nothing as they were in memory
    executors = both if "0]" not in a else both[:1]
    prove_at_any_size(text, carrying, executors=executors)


@pytest.mark.parametrize("carrying", subsets("ab"))
def test_matmul_of_symbolic_rows_is_near(carrying: list[str], both: list) -> None:
    text = "g (float[M,K] a, float[K,N] b) => (float[M,N] y) { y = MatMul (a, b) }"
    a = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
    prove(text, carrying, {"a": a, "b": a.T}, rtol_terms=3, executors=both)


BIASES = [None, "", "[2]", "[1,2]", "[4,1]", "[4,2]"]


@pytest.mark.parametrize("c", BIASES)
@pytest.mark.parametrize("carrying", subsets("abc"))
@pytest.mark.parametrize(("turn_a", "turn_b"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gemm(turn_a: int, turn_b: int, carrying: list[str], c: str | None, both: list) -> None:
    a, b = ("[3,4]" if turn_a else "[4,3]"), ("[2,3]" if turn_b else "[3,2]")
    inputs, operands = f"float{a} a, float{b} b", "a, b"
    if c is None:
        carrying = [name for name in carrying if name != "c"]
        if not carrying:
            return
    else:
        inputs, operands = f"{inputs}, float{c} c", "a, b, c"
    for more in ("", ", alpha = -2.0, beta = 0.25"):
        text = (
            f"g ({inputs}) => (float[] y)"
            f" {{ y = Gemm <transA = {turn_a}, transB = {turn_b}{more}> ({operands}) }}"
        )
        prove(text, carrying, sizes=(3,), executors=both)
    prove(text, carrying, sizes=(1, 0), nonempty=False, executors=both)


@pytest.mark.parametrize("c", [None, "", "[2]", "[1,2]", "[1,1]"])
@pytest.mark.parametrize("turn_b", [0, 1])
@pytest.mark.parametrize("opset", [13, 21])
def test_rows_of_one_line_are_one_matrix(
    c: str | None, turn_b: int, opset: int, both: list
) -> None:
    b = "[2,3]" if turn_b else "[3,2]"
    more, operand = ("", "") if c is None else (f", float{c} c", ", c")
    text = (
        f"g (float[1,3] a, float{b} b{more}) => (float[] y)"
        f" {{ y = Gemm <transB = {turn_b}, alpha = 0.5, beta = 2.0> (a, b{operand}) }}"
    )
    how = {"sizes": SIZES, "opset": opset, "nonempty": False, "executors": both}
    made = prove(text, ["a"], **how)
    assert "Gemm" in [node.op_type for node in made.graph.node]
    prove(text, ["b"], **how)
    if c is not None:
        prove(text, ["a", "c"], **how)


@pytest.mark.parametrize("carrying", subsets("abc"))
@pytest.mark.parametrize("kind", ["double", "float16", "int32", "int64", "uint32"])
def test_gemm_of_every_type(kind: str, carrying: list[str], both: list) -> None:
    """onnxruntime has a Gemm of floats alone."""
    for factors in ("", "<alpha = 2.0, beta = 3.0>"):
        text = (
            f"g ({kind}[4,3] a, {kind}[3,2] b, {kind}[2] c) => ({kind}[4,2] y)"
            f" {{ y = Gemm {factors} (a, b, c) }}"
        )
        executors = both if kind in ("double", "float16") else both[:1]
        prove(text, carrying, ranges=dict.fromkeys("abc", (0, 9)), executors=executors)


def test_gemm_of_integers_takes_no_part_of_them() -> None:
    """How that rounds is not said: 'no-batching-rule'."""
    text = "g (int32[4,3] a, int32[3,2] b) => (int32[4,2] y) { y = Gemm <alpha = 0.5> (a, b) }"
    assert refused(text, ["a"]) == "no-batching-rule"


def test_gemm_with_an_omitted_bias(both: list) -> None:
    text = 'g (float[4,3] a, float[3,2] b) => (float[] y) { y = Gemm (a, b, "") }'
    for carrying in subsets("ab"):
        prove(text, carrying, executors=both)
