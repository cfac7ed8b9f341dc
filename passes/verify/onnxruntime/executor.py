"""Executors in a process of their own, which may crash or hang: onnxruntime, and others like it."""

from __future__ import annotations

import hashlib
import importlib.util
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, cast

from onnx import ModelProto

from passes.ir import scope
from passes.ir.external_data import byte_size, external_tensors
from passes.ir.operators import op_of
from passes.verify.executor import CannotRun, Feeds, ModelFailed, Outcome, Value
from passes.verify.onnxruntime.process import WorkerProcess
from passes.verify.onnxruntime.worker import CACHED_SESSIONS, Job

#: External data of which sessions hold no copies, in the order that kernels read best.
_MANY_BYTES = 1 << 26


class ProcessExecutor:
    """Runs models in a worker process that is started by the first run and ended by `close`.

    `command` is the module of the worker, with its arguments. A crash or a time-out raises
    CannotRun, and the next run has a new worker. The models that it ran last must not change.
    """

    def __init__(self, name: str, command: Sequence[str], *, optimize: bool = True) -> None:
        self._name, self._command = name, command
        self._optimize = optimize
        self._known: deque[tuple[ModelProto, Path | None, Job]] = deque(maxlen=CACHED_SESSIONS)
        self._worker: WorkerProcess | None = None
        self._broken = ""

    @property
    def name(self) -> str:
        return self._name

    @property
    def version(self) -> str:
        """The version that is installed; starts the worker."""
        return self._ready().version

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker process, if there is one."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None

    def run(
        self,
        model: ModelProto,
        feeds: Feeds,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Outcome:
        """Run `model` on `feeds` (names of inputs to values) for at most `timeout` seconds.

        `base_dir` holds the external data. Raises ModelFailed where the run fails, CannotRun
        where the model does not load, a kernel is missing, the worker dies or time is out.
        """
        outputs = self._ask(model, dict(feeds), base_dir, timeout)
        return Outcome(outputs, guessed_shapes=_may_guess_shapes(model, outputs))

    def load(
        self, model: ModelProto, *, base_dir: Path | None = None, timeout: float | None = None
    ) -> None:
        """See that `model` loads. Raises CannotRun."""
        self._ask(model, None, base_dir, timeout)

    def _ask(
        self,
        model: ModelProto,
        feeds: dict[str, Value] | None,
        base_dir: Path | None,
        timeout: float | None,
    ) -> dict[str, Value]:
        job = replace(self._job(model, base_dir), feeds=feeds, timeout=timeout)
        worker = self._ready()
        try:
            # The bytes are sent only where the worker asks for them: a case more, no copy more.
            answer = worker.call(job, timeout)
            if answer[0] == "need model":
                answer = worker.call(replace(job, model=_serialized(model)), timeout)
        except CannotRun:
            self.close()
            raise
        if answer[0] == "failed":
            raise ModelFailed(answer[1])
        if answer[0] == "cannot":
            raise CannotRun(answer[1])
        return cast("dict[str, Value]", answer[1])

    def _job(self, model: ModelProto, base_dir: Path | None) -> Job:
        """A job without the model and what it is fed: what names the model is found out once."""
        for known, where, job in self._known:
            if known is model and where == base_dir:
                return job
        folder = str(base_dir.resolve()) if base_dir is not None else None
        packs = sum(map(byte_size, external_tensors(model))) < _MANY_BYTES
        digest = hashlib.sha256(_serialized(model)).hexdigest()
        key = f"{digest}:{folder}:{self._optimize}"
        job = Job(key, None, folder, self._optimize, packs, None, None)
        self._known.append((model, base_dir, job))
        return job

    def _ready(self) -> WorkerProcess:
        if self._worker is not None and not self._worker.alive():
            self.close()
        if self._broken:
            raise CannotRun(self._broken)
        if self._worker is None:
            try:
                self._worker = WorkerProcess(self._command)
            except CannotRun as error:  # as it would each time: what is installed is broken
                self._broken = str(error)
                raise
        return self._worker


class OnnxRuntimeExecutor(ProcessExecutor):
    """Runs models in onnxruntime. `optimize=False` turns its own graph optimisations off, which
    round differently where they fuse."""

    def __init__(self, *, optimize: bool = True) -> None:
        super().__init__("onnxruntime", ("passes.verify.onnxruntime.worker",), optimize=optimize)

    @staticmethod
    def available() -> bool:
        """Return whether onnxruntime is installed, without importing it."""
        return importlib.util.find_spec("onnxruntime") is not None


def _serialized(model: ModelProto) -> bytes:
    try:
        return model.SerializeToString()
    except ValueError as error:  # protobuf's limit of 2 GB
        raise CannotRun(f"the model does not fit into one message: {error}") from error


def _may_guess_shapes(model: ModelProto, outputs: dict[str, Value]) -> bool:
    """Return whether onnxruntime may have replaced unknown dims by 0, as after an idle loop."""
    if not any(_holds_empty(value) for value in outputs.values()):
        return False
    return any(op_of(place.node) in ("Loop", "Scan") for place in scope.walk_model(model))


def _holds_empty(value: Value) -> bool:
    if isinstance(value, list):
        return any(_holds_empty(item) for item in value)
    return value is not None and 0 in value.shape
