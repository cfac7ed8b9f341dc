"""Sequences and optionals: no axis can go through them, but for tensors that are only looked at."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.operators import op_of
from passes.vectorize.vectorizer import Vectorizer, batched


@batched(
    *("ConcatFromSequence", "Optional", "SequenceAt", "SequenceConstruct", "SequenceErase"),
    *("SequenceInsert", "SequenceLength", "SequenceMap", "SplitToSequence"),
)
def sequence(node: NodeProto, ctx: Vectorizer) -> None:
    """Rows may disagree on how many elements there are, and where."""
    ctx.refuse(
        "no-batching-rule",
        f"{op_of(node)} {list(node.output)} would keep the rows in a sequence or optional, "
        "which has no axes",
        *node.output,
    )


@batched("OptionalGetElement")
def get_element(node: NodeProto, ctx: Vectorizer) -> None:
    """A value that carries the axis is a tensor, which gives itself."""
    ctx.name_as(node.input[0], node.output[0])


@batched("OptionalHasElement")
def has_element(node: NodeProto, ctx: Vectorizer) -> set[str]:
    """A tensor is there, in all rows."""
    ctx.again(node)
    return set(node.output)
