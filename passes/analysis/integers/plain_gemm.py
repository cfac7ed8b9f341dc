"""Gemms that are nothing but a product of two matrices, perhaps with an addend."""

from __future__ import annotations

from onnx import NodeProto

from passes.vectorize.axes import attribute


def is_plain(node: NodeProto) -> bool:
    """Whether a Gemm multiplies its first matrix as it is, and scales nothing."""
    given = {one.name: one.f for one in node.attribute if one.name in ("alpha", "beta")}
    plain = given.get("alpha", 1.0) == 1.0 and (not addend(node) or given.get("beta", 1.0) == 1.0)
    return plain and not attribute(node, "transA", 0)


def addend(node: NodeProto) -> str:
    """What a Gemm adds to the product, "" for nothing."""
    return node.input[2] if len(node.input) > 2 else ""
