"""Processes that take one task at a time, each under a time and a memory limit.

A process that exceeds a limit is killed, with all that it started, and replaced; the others go on.
Python's own pool gives up all of them if one dies, and has no limits.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import IO, Any, BinaryIO, Generic, TypeVar

from passes.errors import End, WrongUsage
from passes.verify.runtimes.channel import Garbled, receive, send

#: Seconds between two looks at the clock and the memory.
_TICK = 0.05
#: Memory is looked at in every so many ticks: it takes a millisecond a process.
_MEGA = 1 << 20
#: Seconds for a process that closed its answers to end.
_DYING = 5.0
_LAST_WORDS = 200
_Ask = TypeVar("_Ask")


@dataclass(frozen=True)
class Limits:
    """The limits of a task: seconds, and bytes of memory of its own.

    Raises:
        WrongUsage: memory is limited, and psutil, which measures it, is not installed.
    """

    seconds: float | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        if self.memory is not None and find_spec("psutil") is None:
            needs = "a memory limit needs psutil, which is not installed: pip install psutil"
            raise WrongUsage(needs)

    def exceeded(self, seconds: float, memory: Callable[[], int]) -> tuple[End, str] | None:
        """The limit that is exceeded, with a sentence."""
        if self.seconds is not None and seconds > self.seconds:
            return End.TIME, f"was ended after {self.seconds:g} seconds"
        if self.memory is not None and (used := memory()) > self.memory:
            limit = f"{self.memory // _MEGA} MiB"
            return End.MEMORY, f"was ended when it used {used // _MEGA} MiB, the limit is {limit}"
        return None


@dataclass(frozen=True)
class Ended:
    """A task that has no answer: it exceeded a limit, or its process died."""

    end: End
    sentence: str
    seconds: float


@dataclass
class _Worker(Generic[_Ask]):
    """A process, and the task that it works on."""

    module: str
    task: _Ask | None = None
    limits: Limits = field(default_factory=Limits)
    started: float = 0.0
    process: subprocess.Popen[bytes] = field(init=False)
    errors: BinaryIO = field(init=False)

    def __post_init__(self) -> None:
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by kill)
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,
        )

    @property
    def answers(self) -> IO[bytes]:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def give(self, task: _Ask, limits: Limits) -> None:
        assert self.process.stdin is not None
        self.task, self.limits, self.started = task, limits, time.monotonic()
        with contextlib.suppress(OSError):  # it died: its answers end, which is seen there
            send(self.process.stdin, task)

    def memory(self) -> int:
        """Bytes that it and what it started hold, without files that are mapped."""
        import psutil  # has no wheel on some machines, and only a memory limit needs it

        total = 0
        try:
            here = psutil.Process(self.process.pid)
            for process in (here, *here.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    used = process.memory_info()
                    total += int(used.rss) - int(getattr(used, "shared", 0))
        except psutil.Error:
            return 0
        return total

    def last_words(self) -> str:
        """Why it died: its exit code or signal, and the last line that it wrote."""
        try:
            code = self.process.wait(_DYING)
        except subprocess.TimeoutExpired:  # what it sent is no answer
            self.process.kill()
            code = self.process.wait()
        why = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"its process died ({why})" + (f": {lines[-1][:_LAST_WORDS]}" if lines else "")

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class Pool(Generic[_Ask]):
    """`jobs` processes that run a module, whose `main` calls `serve`."""

    def __init__(self, module: str, jobs: int) -> None:
        self._module, self._jobs = module, jobs
        self._workers: list[_Worker[_Ask]] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Pool[_Ask]:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the processes."""
        for worker in self._workers:
            worker.kill()
        self._workers.clear()
        self._selector.close()

    def run(self, tasks: Iterable[tuple[_Ask, Limits]]) -> Iterator[tuple[_Ask, Any | Ended]]:
        """Give out tasks, one a process, and yield each with its answer, in the order in which
        they end. What a task raises is raised here."""
        waiting = iter(tasks)
        while True:
            self._give_out(waiting)
            busy = [worker for worker in self._workers if worker.task is not None]
            if not busy:
                return
            for worker in [key.data for key, _ in self._selector.select(_TICK)]:
                task = worker.task
                if task is None:
                    continue
                try:
                    answer = receive(worker.answers)
                except (EOFError, OSError, Garbled):
                    answer = Ended(End.DIED, worker.last_words(), worker.seconds)
                    self._drop(worker)
                worker.task = None
                yield task, answer
            for worker in busy:
                task = worker.task
                if task is None or worker not in self._workers:
                    continue
                hit = worker.limits.exceeded(worker.seconds, worker.memory)
                if hit is not None:
                    self._drop(worker)
                    worker.task = None
                    yield task, Ended(*hit, worker.seconds)

    def _give_out(self, waiting: Iterator[tuple[_Ask, Limits]]) -> None:
        idle = [worker for worker in self._workers if worker.task is None]
        free = self._jobs - (len(self._workers) - len(idle))
        for _, (task, limits) in zip(range(free), waiting, strict=False):
            (idle.pop(0) if idle else self._start()).give(task, limits)

    def _start(self) -> _Worker[_Ask]:
        worker: _Worker[_Ask] = _Worker(self._module)
        self._workers.append(worker)
        self._selector.register(worker.answers, selectors.EVENT_READ, worker)
        return worker

    def _drop(self, worker: _Worker[_Ask]) -> None:
        self._selector.unregister(worker.answers)
        self._workers.remove(worker)
        worker.kill()


class Kept(Generic[_Ask]):
    """A process that works on one task after the other, and the thread that it belongs to: the
    process would end with the thread that started it."""

    def __init__(self, module: str) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._pool = Pool[_Ask](module, 1)

    def ask(self, task: _Ask, limits: Limits) -> Future[Any]:
        """The answer to a task, once it is done, or how it was ended."""
        return self._thread.submit(lambda: next(self._pool.run([(task, limits)]))[1])

    def close(self) -> None:
        """End the process when what it works on is done."""
        with contextlib.suppress(RuntimeError):  # the program ends, and the process with it
            self._thread.submit(self._pool.close)
        self._thread.shutdown(wait=False)


def serve(answer: Callable[[Any], Any]) -> None:
    """Answer tasks on stdin until the parent closes it; what tasks print is not part of the
    answers. The process dies with its parent."""
    _die_with_parent()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    while True:
        try:
            task = receive(sys.stdin.buffer)
        except EOFError:
            return
        send(answers, answer(task))


def _die_with_parent() -> None:
    """Ask Linux to kill this process when its parent ends; elsewhere it ends with its stdin."""
    if sys.platform != "linux":
        return
    import ctypes

    set_pdeathsig = 1
    ctypes.CDLL(None).prctl(set_pdeathsig, signal.SIGKILL)
