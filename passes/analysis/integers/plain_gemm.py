"""Gemms that are nothing but a product of two matrices, perhaps with an addend."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.attributes import attribute, number


def is_plain(node: NodeProto) -> bool:
    """Return whether a Gemm does not transpose its first matrix, and scales nothing."""
    plain = number(node, "alpha", 1.0) == 1.0 and not attribute(node, "transA", 0)
    return plain and (not addend(node) or number(node, "beta", 1.0) == 1.0)


def addend(node: NodeProto) -> str:
    """The addend of a Gemm, "" for none."""
    return node.input[2] if len(node.input) > 2 else ""
