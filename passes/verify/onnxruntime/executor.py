"""Executor two: onnxruntime."""

from __future__ import annotations

import importlib.util

from passes.verify.runtimes.process import ProcessExecutor


class OnnxRuntimeExecutor(ProcessExecutor):
    """Runs models in onnxruntime. `optimize=False` turns its own graph optimisations off, which
    round differently where they fuse."""

    def __init__(self, *, optimize: bool = True) -> None:
        super().__init__("onnxruntime", "passes.verify.onnxruntime.session", optimize=optimize)

    @staticmethod
    def available() -> bool:
        """Return whether onnxruntime is installed, without importing it."""
        return importlib.util.find_spec("onnxruntime") is not None
