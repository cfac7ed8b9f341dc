"""The process that holds a runtime, which may crash or hang without taking the program along.

Started by `python -m passes.verify.runtimes.worker NAME MODULE` with messages on stdin and stdout:

* request `Job`; answers `("need model",)` where the session is not cached and no bytes came,
  `("ran", {name: value})`, `("timed", seconds of each call, seconds of loading, bytes)`,
  `("failed", sentence)`, `("cannot", sentence)` or `("crashed", exit code)`.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from passes.verify.executor import CANNOT_LOAD, CannotRun, ModelFailed
from passes.verify.runtimes.channel import receive, send

#: Sessions kept: a region before and after, the whole model before and after.
CACHED_SESSIONS = 4
#: Seconds that the worker outlives the time-out of a job whose parent did not kill it.
_GRACE = 5.0


@dataclass(frozen=True)
class Job:
    """One run. `key` names the model bytes and settings; `model` is None where they were sent.
    `packs`: the session may copy weights into the order that its kernels read best. Without `feeds`
    the model is only loaded. `seconds`: it is called again and again for so long, and timed.
    `threads` are those of the runtime, 0 for as many as it likes."""

    key: str
    model: bytes | None
    base_dir: str | None
    optimize: bool
    packs: bool
    feeds: dict[str, Any] | None
    timeout: float | None
    seconds: float = 0.0
    threads: int = 1


#: Runs a session on inputs, or makes what calls it on them.
_Run = Callable[[Any, dict[str, Any]], Any]


def main(name: str, source: str) -> None:
    """Serve the runtime of a name, which a module loads models into."""
    answers = _kept_pipe()
    try:
        module = importlib.import_module(source)
        version, load, run = module.version(), module.load, module.run
    except Exception as error:  # whatever the import of somebody else's module may raise
        send(answers, ("cannot", f"{name} does not start: {error}"))
        return
    send(answers, ("ready", version))
    whole = (lambda job: job) if getattr(module, "READS_FOLDER", False) else _whole
    loads = _telling(lambda job: load(whole(job)), f"{CANNOT_LOAD}: ")
    prepared = getattr(module, "prepared", lambda session, feeds: lambda: run(session, feeds))
    forks = hasattr(os, "fork") and getattr(module, "FORKS", False)
    while forks and os.fork():  # one that crashes costs no import: the next one is a copy, too
        code = os.waitstatus_to_exitcode(os.wait()[1])
        if not code:
            return
        send(answers, ("crashed", code))
    _serve(sys.stdin.buffer, answers, loads, _telling(run), _telling(prepared))
    if forks:
        os._exit(0)  # threads that the import started are not in the copy: none can be waited for


def _telling(function: Callable[..., Any], before: str = "") -> Callable[..., Any]:
    """The function of a runtime, whose exceptions have no base but Exception: what it raises is why
    it cannot run."""

    def quiet(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (CannotRun, ModelFailed):
            raise
        except Exception as error:
            text = " ".join(str(error).split()).partition(" Stack backtrace")[0]
            raise CannotRun(f"{before}{shortened(text)}") from error

    return quiet


def shortened(text: str) -> str:
    """A sentence of a runtime, cut where it is long."""
    return text if len(text) <= 400 else text[:400] + "..."


def _whole(job: Job) -> Job:
    """A job whose model holds its weights."""
    if job.model is None or job.base_dir is None:
        return job
    import onnx  # onnxruntime starts quicker without it

    model = onnx.load_model_from_string(job.model)
    onnx.load_external_data_for_model(model, job.base_dir)
    return replace(job, model=model.SerializeToString())


def _serve(
    requests: BinaryIO,
    answers: BinaryIO,
    load: Callable[[Job], Any],
    run: _Run,
    prepared: _Run,
) -> None:
    """Answer jobs until the parent closes the pipe, by what makes a session and runs it."""
    sessions: OrderedDict[str, _Loaded] = OrderedDict()
    while True:
        try:
            job: Job = receive(requests)
        except EOFError:
            return
        send(answers, _answer(sessions, job, load, run, prepared))


@dataclass(frozen=True)
class _Loaded:
    """A session, the seconds that it took to load, and the memory in use before."""

    session: Any
    seconds: float
    before: int


def _answer(
    sessions: OrderedDict[str, _Loaded],
    job: Job,
    load: Callable[[Job], Any],
    run: _Run,
    prepared: _Run,
) -> tuple[Any, ...]:
    if job.timeout is not None:  # the parent kills sooner, if it is still there
        _end_after(job.timeout + _GRACE)
    try:
        if job.key not in sessions:
            if job.model is None:
                return ("need model",)
            before, started = _memory_in_use(), time.perf_counter()
            session = load(job)
            sessions[job.key] = _Loaded(session, time.perf_counter() - started, before)
            if len(sessions) > CACHED_SESSIONS:
                sessions.popitem(last=False)
        sessions.move_to_end(job.key)
        loaded = sessions[job.key]
        if job.feeds is None:
            return ("ran", {})
        if not job.seconds:
            return ("ran", run(loaded.session, job.feeds))
        calls = _timed(prepared(loaded.session, job.feeds), job.seconds)
        return ("timed", calls, loaded.seconds, max(0, _peak_memory() - loaded.before))
    except ModelFailed as error:
        return ("failed", str(error))
    except CannotRun as error:
        return ("cannot", str(error))
    finally:
        _end_after(0)


def _timed(call: Callable[[], object], seconds: float) -> list[float]:
    """The seconds of each call, for so long, after one that does not count; one call at least."""
    call()
    clock = time.perf_counter
    found: list[float] = []
    end = clock() + seconds
    while not found or clock() < end:
        started = clock()
        call()
        found.append(clock() - started)
    return found


def _memory_in_use() -> int:
    """Bytes of memory in use, where the system reports its peak; the peak begins anew."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak_memory()


def _peak_memory() -> int:
    """The most bytes of memory that were in use at a time, 0 where the system does not report it:
    `getrusage` would count those of the process that started this one, too."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def _end_after(seconds: float) -> None:
    """End the process after some time, whatever the runtime is at then; not at all after 0."""
    if hasattr(signal, "setitimer"):  # a thread for each job would cost a third of most
        signal.setitimer(signal.ITIMER_REAL, seconds)
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def _kept_pipe() -> BinaryIO:
    """Keep the pipe for messages: what a runtime prints must not get into it."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it may be ignored where this was started
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return answers


if __name__ == "__main__":
    main(*sys.argv[1:])
