"""The process that holds onnxruntime: it may crash or hang without taking the program along.

Started by `python -m passes.verify.onnxruntime.worker` with messages on stdin and stdout:

* request `Job`; answers `("need model",)` where the session is not cached and no bytes came,
  `("ran", {name: value})`, `("failed", sentence)` or `("cannot", sentence)`.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from passes.verify.executor import CANNOT_LOAD, CannotRun, ModelFailed
from passes.verify.onnxruntime.channel import receive, send

#: Sessions kept: a region before and after, the whole model before and after.
CACHED_SESSIONS = 4
#: Seconds that the worker outlives the time-out of a job whose parent did not kill it.
_GRACE = 5.0
_MODEL_FOLDER = "session.model_external_initializers_file_folder_path"
_NO_WORD_ON_THE_MODEL = re.compile(r"NOT_IMPLEMENTED|EP_FAIL|Failed to allocate memory|bad_alloc")


@dataclass(frozen=True)
class Job:
    """One run. `key` names the model bytes and settings; `model` is None where they were sent.
    `packs`: the session may copy weights into the order that its kernels read best. Without `feeds`
    the model is only loaded."""

    key: str
    model: bytes | None
    base_dir: str | None
    optimize: bool
    packs: bool
    feeds: dict[str, Any] | None
    timeout: float | None


def load(job: Job) -> Any:
    """A session for the job's model. Raises CannotRun."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # fatal: the answer carries the error, stderr stays quiet
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    if not job.optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if not job.packs:
        options.add_session_config_entry("session.disable_prepacking", "1")
    if job.base_dir is not None:
        options.add_session_config_entry(_MODEL_FOLDER, job.base_dir)
    try:
        return onnxruntime.InferenceSession(job.model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its exceptions have no base but Exception
        raise CannotRun(f"{CANNOT_LOAD}: {sentence(error)}") from error


def sentence(error: Exception) -> str:
    """The message of an onnxruntime error without its codes and C++ signatures."""
    text = " ".join(str(error).split())
    if match := re.search(r"Opset (\d+) is under.*domain (\S+) is till opset (\d+)", text):
        found, domain, newest = match.groups()
        return f"opset {found} of {domain}, this onnxruntime loads up to {newest}"
    if match := re.search(r"Unsupported model IR version: (\d+).*IR version: (\d+)", text):
        return f"IR version {match[1]}, this onnxruntime loads up to {match[2]}"
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : (\w+) : ", r"", text)
    text = re.sub(
        r"Non-zero status code returned while running (\S+) node\. Name:'(.*?)' Status Message: ",
        r"\1 '\2' failed: ",
        text,
    )
    text = re.sub(r"/onnxruntime_src/\S*/(\S+:\d+) ", r"\1 ", text)
    return text if len(text) <= 400 else text[:400] + "..."


def run(session: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs by name, in the model's order. Raises ModelFailed or CannotRun."""
    from passes.verify.onnxruntime import values as onnxruntime_values

    try:
        return onnxruntime_values.run(session, feeds)
    except CannotRun:
        raise
    except Exception as error:  # its exceptions have no base but Exception
        if _NO_WORD_ON_THE_MODEL.search(str(error)):
            raise CannotRun(sentence(error)) from error
        raise ModelFailed(sentence(error)) from error


def serve(
    requests: BinaryIO,
    answers: BinaryIO,
    load: Callable[[Job], Any] = load,
    run: Callable[[Any, dict[str, Any]], dict[str, Any]] = run,
) -> None:
    """Answer jobs until the parent closes the pipe, by what makes a session and runs it."""
    sessions: OrderedDict[str, Any] = OrderedDict()
    while True:
        try:
            job: Job = receive(requests)
        except EOFError:
            return
        send(answers, _answer(sessions, job, load, run))


def _answer(
    sessions: OrderedDict[str, Any],
    job: Job,
    load: Callable[[Job], Any],
    run: Callable[[Any, dict[str, Any]], dict[str, Any]],
) -> tuple[Any, ...]:
    if job.timeout is not None:  # the parent kills sooner, if it is still there
        _end_after(job.timeout + _GRACE)
    try:
        if job.key not in sessions:
            if job.model is None:
                return ("need model",)
            sessions[job.key] = load(job)
            if len(sessions) > CACHED_SESSIONS:
                sessions.popitem(last=False)
        sessions.move_to_end(job.key)
        return ("ran", {} if job.feeds is None else run(sessions[job.key], job.feeds))
    except ModelFailed as error:
        return ("failed", str(error))
    except CannotRun as error:
        return ("cannot", str(error))
    finally:
        _end_after(0)


def _end_after(seconds: float) -> None:
    """End the process after some time, whatever onnxruntime is at then; not at all after 0."""
    if hasattr(signal, "setitimer"):  # a thread for each job would cost a third of most
        signal.setitimer(signal.ITIMER_REAL, seconds)
    elif seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()


def kept_pipe() -> BinaryIO:
    """Keep the pipe for messages: what a runtime prints must not get into it."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # it may be ignored where this was started
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return answers


def main() -> None:
    """Serve onnxruntime."""
    answers = kept_pipe()
    try:
        import onnxruntime
    except ImportError as error:
        send(answers, ("cannot", f"cannot import onnxruntime: {error}"))
        return
    send(answers, ("ready", onnxruntime.__version__))
    serve(sys.stdin.buffer, answers)


if __name__ == "__main__":
    main()
