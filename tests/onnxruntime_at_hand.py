"""The process of onnxruntime that many tests use, one after the other: to start one takes longer
than most of them."""

from __future__ import annotations

from functools import cache

from passes.verify.installed import OnnxRuntimeExecutor


@cache
def at_hand() -> OnnxRuntimeExecutor:
    """The executor, which `tests/conftest.py` closes at the end."""
    return OnnxRuntimeExecutor()
