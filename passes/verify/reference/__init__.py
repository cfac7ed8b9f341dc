"""Executor one: `onnx.reference`, with control flow and whatever else is wrong in it done right."""

from __future__ import annotations

from passes.verify.reference.executor import ReferenceExecutor

__all__ = ["ReferenceExecutor"]
