"""Attention rules: the new axis is merged into the batch."""

from __future__ import annotations

import pytest
from looping import prove, refused

pytestmark = pytest.mark.sampled

OPSET = 23


def attention(n: object, mask: str = "2,3") -> str:
    return (
        f"g (float[{n},2,2,4] q, float[{n},2,3,4] k, float[{n},2,3,4] v, float[{mask}] m) "
        "=> (float[] y) { y = Attention (q, k, v, m) }"
    )


@pytest.mark.parametrize("n", [1, 2, "N"])
@pytest.mark.parametrize("carrying", [["q"], ["k", "v"], ["q", "k", "v"]])
def test_each_element_attends_by_itself(n: object, carrying: list[str], both: list) -> None:
    for mask in ("2,3", "2,2,3", "1,2,2,3", f"{n},2,2,3"):
        prove(attention(n, mask), carrying, opset=OPSET, executors=both, rtol_terms=12)


@pytest.mark.parametrize("mask", ["2,3", "2,2,3", "1,1,2,3"])
def test_masks_may_come_from_each_row(mask: str, both: list) -> None:
    prove(attention(1, mask), ["m"], opset=OPSET, executors=both, rtol_terms=12)
    prove(attention(1, mask), ["q", "m"], opset=OPSET, executors=both, rtol_terms=12)


def test_masks_that_do_not_fit_are_refused() -> None:
    for n, mask, carrying in ((2, "2,3", ["m"]), (2, "M,1,2,3", ["q"])):
        assert refused(attention(n, mask), carrying, OPSET) == "batched-operand"


def test_past_keys_and_values(both: list) -> None:
    text = (
        "g (float[2,2,2,4] q, float[2,2,3,4] k, float[2,2,3,4] v, float[2,2,1,4] pk, "
        "float[2,2,1,4] pv) => (float[] y, float[] newk, float[] newv) "
        "{ y, newk, newv = Attention (q, k, v, , pk, pv) }"
    )
    for carrying in (["q"], ["pk"], ["q", "k", "v", "pk", "pv"]):
        prove(text, carrying, opset=OPSET, executors=both, rtol_terms=12)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("carrying", [["x"], ["c"], ["x", "c", "s"]])
def test_rotary_caches_may_have_a_batch(n: int, carrying: list[str], both: list) -> None:
    text = (
        f"g (float[{n},2,3,4] x, float[{n},3,2] c, float[{n},3,2] s) => (float[] y) "
        "{ y = RotaryEmbedding (x, c, s) }"
    )
    prove(text, carrying, opset=OPSET, executors=both, rtol_terms=2)


@pytest.mark.parametrize("carrying", [["x"], ["p"], ["x", "p"]])
def test_rotary_caches_may_be_looked_up(carrying: list[str], both: list) -> None:
    text = (
        "g (float[2,2,3,4] x, float[8,2] c, float[8,2] s, int64[2,3] p) => (float[] y) "
        "{ y = RotaryEmbedding (x, c, s, p) }"
    )
    ranges = {"p": (0, 8)}
    prove(text, carrying, opset=OPSET, executors=both, rtol_terms=2, ranges=ranges)
    assert refused(text, ["x", "c"], OPSET) == "batched-operand"
