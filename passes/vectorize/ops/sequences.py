"""Sequences and optionals: no axis can go through them, but for tensors that are only looked at."""

from __future__ import annotations

from onnx import NodeProto

from passes.operators.table import where
from passes.vectorize.vectorizer import Vectorizer, batched


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
