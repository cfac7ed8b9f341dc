"""The executors that are there: ours always, onnxruntime where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from passes.choices import Executors
from passes.errors import PassesError
from passes.verify.executor import Executor
from passes.verify.runtimes.process import ProcessExecutor


class NoExecutor(PassesError):
    """The requested executor is not installed."""


class OnnxRuntimeExecutor(ProcessExecutor):
    """Runs models in onnxruntime. `optimize=False` turns its own graph optimisations off, which
    round differently where they fuse."""

    def __init__(self, *, optimize: bool = True) -> None:
        super().__init__("onnxruntime", "passes.verify.runtimes.onnxruntime", optimize=optimize)

    @staticmethod
    def available() -> bool:
        """Return whether onnxruntime is installed, without importing it."""
        return importlib.util.find_spec("onnxruntime") is not None


#: The onnxruntime that is kept running from one verification to the next.
_KEPT: list[Executor] = []


@contextmanager
def kept_running() -> Iterator[None]:
    """Keep the process of onnxruntime: to start one takes longer than most verifications."""
    if not OnnxRuntimeExecutor.available():
        yield
        return
    with OnnxRuntimeExecutor() as kept:
        _KEPT.append(kept)
        try:
            yield
        finally:
            _KEPT.remove(kept)


def is_runtime(which: str) -> bool:
    """Return whether the named executor is a runtime that runs only the outcome."""
    return which not in set(Executors)


@contextmanager
def executors(which: str) -> Iterator[list[Executor]]:
    """The executors to use: ours, and onnxruntime where it is wanted and installed; both, if
    another runtime is to run the outcome.

    Raises:
        NoExecutor: only onnxruntime was requested, and it is not installed.
        NoRuntime: the runtime is not installed.
    """
    from passes.verify.reference import ReferenceExecutor

    if is_runtime(which):
        from passes.verify.runtimes.executors import runtime

        runtime(which)
        which = Executors.both

    with ExitStack() as stack:
        chosen: list[Executor] = []
        if which in ("reference", "both"):
            chosen.append(ReferenceExecutor(keep=2))
        if which in ("onnxruntime", "both") and _KEPT:
            chosen += _KEPT
        elif which in ("onnxruntime", "both") and OnnxRuntimeExecutor.available():
            chosen.append(stack.enter_context(OnnxRuntimeExecutor()))
        if not chosen:
            raise NoExecutor("onnxruntime is not installed: pip install 'onnx-passes[ort]'")
        yield chosen
