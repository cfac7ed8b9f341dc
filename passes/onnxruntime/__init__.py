"""Workarounds for onnxruntime: each module answers one of its traps."""

from __future__ import annotations
