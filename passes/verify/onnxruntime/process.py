"""The process that runs onnxruntime, seen from here: asked, waited for, killed where it hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

from passes.verify.executor import CRASHED, CannotRun, TookTooLong
from passes.verify.onnxruntime.channel import Garbled, receive, send
from passes.verify.onnxruntime.worker import Job

#: Seconds that importing onnxruntime may take.
_START_TIMEOUT = 120.0
#: Seconds between two looks at the clock.
_TICK = 0.05


class WorkerProcess:
    """The process, and one question at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            # -P: the current folder may hold an onnxruntime.py
            [sys.executable, "-P", "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )
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
            send(cast(BinaryIO, self._process.stdin), job)
        return self._receive(timeout)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # unsent bytes to a dead process
                    stream.close()

    def _receive(self, timeout: float | None) -> tuple[Any, ...]:
        with self._lock:
            self._deadline = None if timeout is None else time.monotonic() + timeout
        try:
            return cast("tuple[Any, ...]", receive(cast(BinaryIO, self._process.stdout)))
        except EOFError as error:
            code = self._process.wait()
            if self._timed_out:
                raise TookTooLong(f"no answer in {timeout:g} s") from error
            raise CannotRun(f"{CRASHED} ({_how_it_ended(code)})") from error
        except Garbled as error:
            self._process.kill()
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
                    self._process.kill()
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
