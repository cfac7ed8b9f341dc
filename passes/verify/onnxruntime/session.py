"""onnxruntime in the process of a worker: models are loaded and run on the CPU, in one thread."""

from __future__ import annotations

import re
from typing import Any

import onnxruntime

from passes.verify.executor import CANNOT_LOAD, CannotRun, ModelFailed
from passes.verify.onnxruntime import values
from passes.verify.runtimes.worker import Job, shortened

#: It reads weights from the folder of a job.
READS_FOLDER = True
_MODEL_FOLDER = "session.model_external_initializers_file_folder_path"
_NO_WORD_ON_THE_MODEL = re.compile(r"NOT_IMPLEMENTED|EP_FAIL|Failed to allocate memory|bad_alloc")


def version() -> str:
    """The version that is installed."""
    installed: str = onnxruntime.__version__
    return installed


def load(job: Job) -> Any:
    """A session for the job's model. Raises CannotRun."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # fatal: the answer says what went wrong, stderr stays quiet
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
    return shortened(text)


def run(session: Any, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs by name, in the model's order. Raises ModelFailed or CannotRun."""
    try:
        return values.run(session, feeds)
    except CannotRun:
        raise
    except Exception as error:  # its exceptions have no base but Exception
        if _NO_WORD_ON_THE_MODEL.search(str(error)):
            raise CannotRun(sentence(error)) from error
        raise ModelFailed(sentence(error)) from error
