"""Inputs and outputs of the bodies that rewrites write."""

from __future__ import annotations

from onnx import ValueInfoProto

from passes.author import Author

IDENTITY_OF_SEQUENCES = 14  # earlier, Identity takes tensors only
IDENTITY_OF_OPTIONALS = 16


def own(author: Author, name: str, value: ValueInfoProto) -> str:
    """A body's output, from a node of its own; early Identity takes tensors only."""
    if value.type.HasField("sequence_type") and author.opset < IDENTITY_OF_SEQUENCES:
        return name
    return author.op("Identity", name, outputs=[author.fresh("out")])


def named(value: ValueInfoProto, name: str) -> ValueInfoProto:
    """The declaration of a value under another name."""
    copy = ValueInfoProto()
    copy.CopyFrom(value)
    copy.name = name
    return copy
