"""Executor two: onnxruntime, in a process of its own."""

from __future__ import annotations
