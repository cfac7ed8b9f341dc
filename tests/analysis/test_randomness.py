"""Which nodes give the same result each time."""

from __future__ import annotations

import onnx
import pytest
from onnx import NodeProto

from passes.analysis.safety.randomness import is_pure


def node(text: str) -> NodeProto:
    return onnx.parser.parse_node(text)


@pytest.mark.parametrize("op", ["RandomNormal", "RandomUniformLike", "Multinomial", "Bernoulli"])
def test_random_ops_are_impure(op: str) -> None:
    assert not is_pure(node(f"y = {op} (x)"))


@pytest.mark.parametrize(
    ("text", "pure"),
    [
        ("y = Add (a, b)", True),
        ("y = ai.onnx.Add (a, b)", True),
        ("y = ai.onnx.ml.Scaler (a)", True),
        ("y = com.acme.Dice (a)", False),
        ("y = Dropout (x)", True),
        ("y = Dropout (x, ratio)", True),
        ('y = Dropout (x, ratio, "")', True),
        ("y = Dropout (x, ratio, training)", False),
    ],
)
def test_purity_of_a_node(text: str, pure: bool) -> None:
    assert is_pure(node(text)) is pure


def test_a_random_op_makes_what_holds_it_impure_at_any_depth() -> None:
    def nested(op: str) -> NodeProto:
        return node(f"""
            y = If (c) <then_branch = a () => (float p) {{
              p = If (d) <then_branch = k () => (float q) {{ q = {op} (x) }},
                          else_branch = l () => (float q) {{ q = Abs (x) }}>
            }}, else_branch = b () => (float p) {{ p = Neg (x) }}>
        """)

    assert is_pure(nested("Neg"))
    assert not is_pure(nested("Bernoulli"))
