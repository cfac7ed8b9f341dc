"""Executors in a process of their own, which may crash or hang: it is asked, waited for, killed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from onnx import ModelProto

from passes.ir import scope
from passes.ir.external_data import byte_size, external_tensors
from passes.ir.operators import op_of
from passes.verify.executor import (
    CRASHED,
    CannotRun,
    Feeds,
    ModelFailed,
    Outcome,
    TookTooLong,
    Value,
)
from passes.verify.runtimes.channel import Garbled, receive, send
from passes.verify.runtimes.worker import CACHED_SESSIONS, Job

#: External data of which sessions hold no copies, in the order that kernels read best.
_MANY_BYTES = 1 << 26
#: Whether processes have groups, which are killed together.
_GROUPS = hasattr(os, "killpg")
#: Seconds that importing a runtime may take.
_START_TIMEOUT = 120.0
#: Seconds between two looks at the clock.
_TICK = 0.05


@dataclass(frozen=True)
class Timed:
    """The seconds of each call, those that loading took, and the bytes of memory that both needed
    at most beyond those of the runtime; 0 where the system does not report it."""

    calls: tuple[float, ...]
    loading: float
    memory: int


class ProcessExecutor:
    """Runs models in a worker process that is started by the first run and ended by `close`.

    `module` is that which loads and runs models there. A crash or a time-out raises CannotRun, and
    the next run has a new worker, or a copy of it. The models that it ran last must not change.
    `threads` are those of the runtime, 0 for as many as it likes.
    """

    def __init__(self, name: str, module: str, *, optimize: bool = True, threads: int = 1) -> None:
        self._name, self._module = name, module
        self._optimize, self._threads = optimize, threads
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
        outputs = self._ask(model, dict(feeds), base_dir, timeout)[1]
        return Outcome(outputs, guessed_shapes=_may_guess_shapes(model, outputs))

    def load(
        self, model: ModelProto, *, base_dir: Path | None = None, timeout: float | None = None
    ) -> None:
        """See that `model` loads. Raises CannotRun."""
        self._ask(model, None, base_dir, timeout)

    def time(
        self,
        model: ModelProto,
        feeds: Feeds,
        seconds: float,
        *,
        base_dir: Path | None = None,
        timeout: float | None = None,
    ) -> Timed:
        """Call `model` on `feeds` again and again for so many seconds, once at least, after a call
        that does not count. Raises what `run` raises."""
        _, calls, loading, memory = self._ask(model, dict(feeds), base_dir, timeout, seconds)
        return Timed(tuple(calls), loading, memory)

    def _ask(
        self,
        model: ModelProto,
        feeds: dict[str, Value] | None,
        base_dir: Path | None,
        timeout: float | None,
        seconds: float = 0.0,
    ) -> tuple[Any, ...]:
        job = self._job(model, base_dir)
        job = replace(job, feeds=feeds, timeout=timeout, seconds=seconds)
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
        if answer[0] == "crashed":
            raise CannotRun(f"{CRASHED} ({_how_it_ended(answer[1])})")
        return answer

    def _job(self, model: ModelProto, base_dir: Path | None) -> Job:
        """A job without the model and what it is fed: what names the model is found out once."""
        for known, where, job in self._known:
            if known is model and where == base_dir:
                return job
        folder = str(base_dir.resolve()) if base_dir is not None else None
        packs = sum(map(byte_size, external_tensors(model))) < _MANY_BYTES
        digest = hashlib.sha256(_serialized(model)).hexdigest()
        key = f"{digest}:{folder}:{self._optimize}"
        job = Job(key, None, folder, self._optimize, packs, None, None, threads=self._threads)
        self._known.append((model, base_dir, job))
        return job

    def _ready(self) -> WorkerProcess:
        if self._worker is not None and not self._worker.alive():
            self.close()
        if self._broken:
            raise CannotRun(self._broken)
        if self._worker is None:
            try:
                self._worker = WorkerProcess(self._name, self._module)
            except CannotRun as error:  # as it would each time: what is installed is broken
                self._broken = str(error)
                raise
        return self._worker


class WorkerProcess:
    """The process, and one question at a time."""

    def __init__(self, name: str, module: str) -> None:
        self._process = subprocess.Popen(
            # -P: the current folder may hold an onnxruntime.py
            [sys.executable, "-P", "-m", "passes.verify.runtimes.worker", name, module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            process_group=0 if _GROUPS else None,
        )
        assert self._process.stdin is not None  # both are pipes
        assert self._process.stdout is not None
        self._questions, self._answers = self._process.stdin, self._process.stdout
        self._lock = threading.Lock()
        self._deadline: float | None = None
        self._timed_out = False
        threading.Thread(target=self._watch, daemon=True).start()
        try:
            greeting = self._receive(_START_TIMEOUT)
            if greeting[0] != "ready":
                raise CannotRun(greeting[1])
            self.version = str(greeting[1])
        except CannotRun:
            self.stop()
            raise

    def alive(self) -> bool:
        return self._process.poll() is None

    def call(self, job: Job, timeout: float | None) -> tuple[Any, ...]:
        """Ask and wait. Raises CannotRun where the worker dies or has to be killed."""
        # A worker that died while the job was written is noticed by the read.
        with contextlib.suppress(OSError):
            send(self._questions, job)
        return self._receive(timeout)

    def stop(self) -> None:
        self._kill()
        self._process.wait()
        for stream in (self._questions, self._answers):
            with contextlib.suppress(OSError):  # unsent bytes to a dead process
                stream.close()

    def _kill(self) -> None:
        """Kill the process, and the copy of it that serves."""
        with contextlib.suppress(ProcessLookupError):
            if _GROUPS:
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def _receive(self, timeout: float | None) -> tuple[Any, ...]:
        with self._lock:
            self._deadline = None if timeout is None else time.monotonic() + timeout
        try:
            answer: tuple[Any, ...] = receive(self._answers)
            return answer
        except EOFError as error:
            code = self._process.wait()
            if self._timed_out:
                raise TookTooLong(f"no answer in {timeout:g} s") from error
            raise CannotRun(f"{CRASHED} ({_how_it_ended(code)})") from error
        except Garbled as error:
            self._kill()
            raise CannotRun(f"the process does not answer as it should: {error}") from error
        finally:
            with self._lock:
                self._deadline = None

    def _watch(self) -> None:
        """Kill the worker once its time is over; a thread for each call would cost more than most
        calls."""
        while self.alive():
            time.sleep(_TICK)
            with self._lock:
                if self._deadline is not None and time.monotonic() > self._deadline:
                    self._timed_out = True
                    self._kill()
                    return


def _environment() -> dict[str, str]:
    """The worker finds this package where this process found it, installed or not."""
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _how_it_ended(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit code {code}"


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
