"""Executor two: onnxruntime."""

from __future__ import annotations
