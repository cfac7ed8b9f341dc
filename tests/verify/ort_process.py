"""onnxruntime in a process of its own, for tests that compare with it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
from onnx import ModelProto


@dataclass(frozen=True)
class OrtRefused:
    """onnxruntime did not load or run the model: its words, or that the process died."""

    sentence: str


def serve(connection: Connection) -> None:
    """Runs models sent over the connection until None comes."""
    import onnxruntime as ort

    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    # As written: an optimizer would answer in the kernel's place.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    while (request := connection.recv()) is not None:
        model, feeds = request
        try:
            session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            connection.send((True, session.run(None, feeds)))
        except Exception as error:  # its exceptions have no base but Exception
            connection.send((False, str(error).split("\n")[0][:400]))


class OrtProcess:
    """A worker that is started again when a model kills it."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None

    def run(self, model: ModelProto, feeds: dict[str, Any]) -> list[Any] | OrtRefused:
        """The outputs of the model, or why there are none."""
        connection = self._started()
        fed = {name: np.asarray(x) if np.isscalar(x) else x for name, x in feeds.items()}
        connection.send((model.SerializeToString(), fed))
        try:
            if not connection.poll(60):
                self.close()
                return OrtRefused("did not answer for 60 s")
            ran, answer = connection.recv()
        except (EOFError, ConnectionError):
            self.close()
            return OrtRefused("the process died")
        return answer if ran else OrtRefused(answer)

    def _started(self) -> Connection:
        if self._connection is None:
            self._connection, theirs = self._context.Pipe()
            self._process = self._context.Process(target=serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        return self._connection

    def close(self) -> None:
        """Ends the worker."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
        self._process = self._connection = None


@contextmanager
def ort_process() -> Iterator[OrtProcess]:
    """A worker for the length of a block."""
    process = OrtProcess()
    try:
        yield process
    finally:
        process.close()


def difference(
    got: Any, expected: Any, rtol: float = 1e-3, atol: float = 1e-7, *, guessed: bool = False
) -> str:
    """What differs between two values, empty where nothing does.

    `guessed` lets the shapes of empty arrays differ.
    """
    if expected is None or got is None:
        return "" if expected is got else f"{got} instead of {expected}"
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return f"{got} instead of {expected}"
        parts = (difference(a, b, rtol, atol) for a, b in zip(got, expected, strict=True))
        return next((part for part in parts if part), "")
    if isinstance(got, list):
        return f"{got} instead of {expected}"
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype.kind != "O" and got.dtype != expected.dtype:
        return f"{got.dtype} instead of {expected.dtype}"
    if guessed and got.size == 0 and expected.size == 0 and got.ndim == expected.ndim:
        return ""
    if got.shape != expected.shape:
        return f"shape {got.shape} instead of {expected.shape}"
    if got.dtype.kind in "OSU":
        return "" if got.astype(str).tolist() == expected.astype(str).tolist() else "other strings"
    if got.dtype.kind == "V" or got.dtype.name in ("bfloat16",) or "float" in got.dtype.name:
        got, expected = got.astype(np.float64), expected.astype(np.float64)
    if np.allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True):
        return ""
    return f"{got.ravel()[:8]} instead of {expected.ravel()[:8]}"
