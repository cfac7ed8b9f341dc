"""The rule for Einsum: one more letter."""

from __future__ import annotations

import pytest
from looping import prove, refused, subsets

pytestmark = pytest.mark.sampled

EQUATIONS = [
    # equation, shapes
    ("i->i", "[3]"),
    ("ij->ji", "[2,3]"),
    ("ij->", "[2,3]"),
    ("ij->i", "[2,3]"),
    ("ji", "[2,3]"),
    ("ii->i", "[3,3]"),
    ("ii", "[3,3]"),
    ("...i->i...", "[2,4,3]"),
    ("i,i->", "[3] [3]"),
    ("i,j->ij", "[3] [2]"),
    ("ij,jk->ik", "[2,3] [3,4]"),
    ("ij,jk", "[2,3] [3,4]"),
    (" i j , j -> i ", "[2,3] [3]"),
    ("bij,bjk->bik", "[2,2,3] [2,3,4]"),
    ("...ij,...jk->...ik", "[2,2,3] [2,3,4]"),
    ("...ij,jk->...ik", "[2,2,3] [3,4]"),
    ("...ij,...jk", "[2,3] [3,4]"),
    ("i...,i...->...", "[3,2] [3,2]"),
    (",i->i", " [3]"),
    ("aA,Ab->ab", "[2,3] [3,2]"),
    ("ij,jk,kl->il", "[2,3] [3,2] [2,4]"),
    ("i,ij,j", "[2] [2,3] [3]"),
]


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_any_operands_may_carry_the_axis(
    equation: str, shapes: str, opset: int, both: list
) -> None:
    names = "xyz"[: shapes.count(" ") + 1]
    operands = zip(names, shapes.split(" "), strict=True)
    inputs = ", ".join(f"float{shape} {name}" for name, shape in operands)
    call = f'r = Einsum <equation = "{equation}"> ({", ".join(names)})'
    for carrying in subsets(names):
        text = f"g ({inputs}) => (float[] r) {{ {call} }}"
        prove(text, carrying, opset=opset, executors=both)


def test_an_empty_axis(both: list) -> None:
    text = 'g (float[2,3] x, float[3] y) => (float[] z) { z = Einsum <equation = "ij,j"> (x, y) }'
    for carrying in subsets("xy"):
        prove(text, carrying, sizes=(1, 0), nonempty=False, executors=both)


def test_every_letter_in_use_is_refused() -> None:
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    ones = ",".join("1" * len(letters))
    text = f'g (float[{ones}] x) => (float[] y) {{ y = Einsum <equation = "{letters}->"> (x) }}'
    assert refused(text, ["x"]) == "no-batching-rule"
