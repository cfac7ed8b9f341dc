"""Einsum: the new axis is one more letter."""

from __future__ import annotations

from string import ascii_letters

from onnx import NodeProto

from passes.ir.attributes import text
from passes.vectorize.vectorizer import Vectorizer, batched


@batched("Einsum")
def einsum(node: NodeProto, ctx: Vectorizer) -> None:
    """A letter that is not used yet leads the operands that carry the axis, and the result."""
    equation = text(node, "equation", "").replace(" ", "")
    left, arrow, right = equation.partition("->")
    if not arrow:
        right = _implied(left)
    free = [letter for letter in ascii_letters if letter not in equation]
    if not free:
        ctx.refuse("no-batching-rule", "an Einsum that uses every letter", *node.output)
    terms = [
        free[0] + term if ctx.carries(name) else term
        for term, name in zip(left.split(","), node.input, strict=True)
    ]
    ctx.again(node, equation=f"{','.join(terms)}->{free[0]}{right}")


def _implied(left: str) -> str:
    """Return the result if the equation names none: the ellipsis, and the letters that occur
    once."""
    letters = left.replace(",", "").replace(".", "")
    once = sorted(letter for letter in letters if letters.count(letter) == 1)
    return ("..." if "..." in left else "") + "".join(once)
