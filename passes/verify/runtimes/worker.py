"""The process that holds a runtime: `python -m passes.verify.runtimes.worker NAME MODULE`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import onnx

from passes.verify.executor import CANNOT_LOAD, CannotRun, ModelFailed
from passes.verify.onnxruntime.channel import send
from passes.verify.onnxruntime.worker import Job, kept_pipe, sentence, serve


def main(name: str, source: str) -> None:
    """Serve the runtime of a name, which a module makes."""
    answers = kept_pipe()
    try:
        module = importlib.import_module(source)
        version, load, run = module.version(), module.load, module.run
    except Exception as error:  # whatever the import of somebody else's module may raise
        send(answers, ("cannot", f"{name} does not start: {error}"))
        return
    send(answers, ("ready", version))
    loads = _telling(lambda job: load(_whole(job)), f"{CANNOT_LOAD}: ")
    serve(sys.stdin.buffer, answers, loads, _telling(run))


def _telling(function: Callable[..., Any], before: str = "") -> Callable[..., Any]:
    """The function of a runtime, whose exceptions have no base but Exception: what it raises is why
    it cannot run."""

    def told(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (CannotRun, ModelFailed):
            raise
        except Exception as error:
            reason = sentence(error).partition(" Stack backtrace")[0]
            raise CannotRun(f"{before}{reason}") from error

    return told


def _whole(job: Job) -> Job:
    """A job whose model holds its weights."""
    if job.model is None or job.base_dir is None:
        return job
    model = onnx.load_model_from_string(job.model)
    onnx.load_external_data_for_model(model, job.base_dir)
    return replace(job, model=model.SerializeToString())


if __name__ == "__main__":
    main(*sys.argv[1:])
