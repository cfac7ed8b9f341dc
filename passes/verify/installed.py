"""The executors that are there: ours always, onnxruntime where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from passes.errors import PassesError
from passes.verify.executor import Executor


class NoExecutor(PassesError):
    """The requested executor is not installed."""


@contextmanager
def executors(which: str) -> Iterator[list[Executor]]:
    """The executors to use: ours, and onnxruntime where it is wanted and installed.

    Raises:
        NoExecutor: only onnxruntime was requested, and it is not installed.
    """
    from passes.verify.reference import ReferenceExecutor

    with ExitStack() as stack:
        chosen: list[Executor] = []
        if which in ("reference", "both"):
            chosen.append(ReferenceExecutor(keep=2))
        if which in ("onnxruntime", "both") and importlib.util.find_spec("onnxruntime"):
            from passes.verify.onnxruntime.executor import OnnxRuntimeExecutor

            chosen.append(stack.enter_context(OnnxRuntimeExecutor()))
        if not chosen:
            raise NoExecutor("onnxruntime is not installed: pip install 'onnx-passes[ort]'")
        yield chosen
