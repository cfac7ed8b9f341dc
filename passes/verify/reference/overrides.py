"""Operators whose kernel in onnx is wrong or missing, at some opset at least."""

from __future__ import annotations

from onnx.reference.op_run import OpRun


def override(op_type: str, version: int) -> type[OpRun] | None:
    """Our kernel of a standard operator at an opset; None where onnx's own is right."""
    return None
