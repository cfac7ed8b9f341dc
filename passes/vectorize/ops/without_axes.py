"""Ops that no axis can go through: random draws, sequences, optionals but for tensors that are only
looked at."""

from __future__ import annotations

from onnx import NodeProto

from passes.operators.table import where
from passes.vectorize.vectorizer import Vectorizer, batched


@batched(*where(lambda row: row.draws) - {"Dropout"})
def random(node: NodeProto, ctx: Vectorizer) -> None:
    """The number of draws and their order would change.

    Raises:
        Refused: `random`, always.
    """
    ctx.refuse_node("random", node, "draws other numbers for each row")


@batched(*where(lambda row: row.wraps) - {"OptionalGetElement", "OptionalHasElement"})
def sequence(node: NodeProto, ctx: Vectorizer) -> None:
    """Rows may disagree on how many elements there are, and where."""
    what = "would keep the rows in a sequence or optional, which has no axes"
    ctx.refuse_node("no-batching-rule", node, what)


@batched("OptionalGetElement")
def get_element(node: NodeProto, ctx: Vectorizer) -> None:
    """A value that carries the axis is a tensor, which gives itself."""
    ctx.name_as(node.input[0], node.output[0])


@batched("OptionalHasElement")
def has_element(node: NodeProto, ctx: Vectorizer) -> set[str]:
    """A tensor is there, in all rows."""
    ctx.again(node)
    return set(node.output)
