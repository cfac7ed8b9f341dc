"""Gemms that are nothing but a product of two matrices, perhaps with an addend."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.attributes import attribute


def is_plain(node: NodeProto) -> bool:
    """Whether a Gemm does not transpose its first matrix, and scales nothing."""
    scales = {entry.name: entry.f for entry in node.attribute if entry.name in ("alpha", "beta")}
    plain = scales.get("alpha", 1.0) == 1.0 and (not addend(node) or scales.get("beta", 1.0) == 1.0)
    return plain and not attribute(node, "transA", 0)


def addend(node: NodeProto) -> str:
    """The addend of a Gemm, "" for none."""
    return node.input[2] if len(node.input) > 2 else ""
