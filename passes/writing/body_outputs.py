"""Inputs and outputs of the bodies that rewrites write."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, ValueInfoProto

from passes.ir.operators import op_of
from passes.ir.versions import IDENTITY_OF_SEQUENCES
from passes.writing.author import Author


def own(author: Author, name: str, value: ValueInfoProto) -> str:
    """A body's output, from a node of its own; before sequences, Identity takes only tensors."""
    if value.type.HasField("sequence_type") and author.opset < IDENTITY_OF_SEQUENCES:
        return name
    return author.op("Identity", name, outputs=[author.fresh("out")])


def without_copies(
    nodes: Sequence[NodeProto], outputs: Sequence[str]
) -> tuple[list[NodeProto], list[str]]:
    """The nodes and outputs of a body without the Identities that `own` wrote needlessly: for a
    value that a node of the body computes, and that is no other output.

    A Constant does not count: onnxruntime makes an initializer of it.
    """
    producers = {name for node in nodes if op_of(node) != "Constant" for name in node.output}
    copies = {node.output[0]: node.input[0] for node in nodes if op_of(node) == "Identity"}
    listed = set(outputs)
    gone: set[str] = set()
    results = []
    for name in outputs:
        source = copies.get(name, "")
        if source in producers and source not in listed:
            gone.add(name)
            listed.add(source)
            name = source
        results.append(name)
    return [node for node in nodes if gone.isdisjoint(node.output)], results
