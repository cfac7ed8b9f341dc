"""onnxruntime: models are loaded and run on the CPU, in one thread, with values of every dtype.

numpy's own dtypes, strings, sequences and optionals go through `InferenceSession.run`; the
others (bfloat16, float8, int4, ...) have no numpy type there and go through `OrtValue` memory,
which holds them as `TensorProto.raw_data` does. onnx, which takes as long to import as
onnxruntime, is imported where it is needed.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime

from passes.verify.executor import CANNOT_LOAD, Array, CannotRun, ModelFailed, Value
from passes.verify.runtimes.worker import Job, shortened

#: It reads weights from the folder of a job.
READS_FOLDER = True
#: Copies of the process that imported it may serve: threads that compute start with a session.
FORKS = True
_MODEL_FOLDER = "session.model_external_initializers_file_folder_path"
_NO_WORD_ON_THE_MODEL = re.compile(r"NOT_IMPLEMENTED|EP_FAIL|Failed to allocate memory|bad_alloc")
_PLAIN_KINDS = "biufcOUS"  # ml_dtypes have kind V, or f with a foreign name
_PLAIN_TENSORS = {
    f"tensor({name})"
    for name in (
        *("float", "double", "float16", "bool", "string"),
        *(f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)),
    )
}


def version() -> str:
    """The version that is installed."""
    installed: str = onnxruntime.__version__
    return installed


def load(job: Job) -> Any:
    """A session for the job's model. Raises CannotRun."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # fatal: the answer says what went wrong, stderr stays quiet
    options.intra_op_num_threads = job.threads
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
        return _answers(session, feeds)
    except CannotRun:
        raise
    except Exception as error:  # its exceptions have no base but Exception
        if _NO_WORD_ON_THE_MODEL.search(str(error)):
            raise CannotRun(sentence(error)) from error
        raise ModelFailed(sentence(error)) from error


def prepared(session: Any, feeds: dict[str, Any]) -> Callable[[], object]:
    """What calls a session on inputs, and nothing else."""
    if not _has_foreign(session, feeds):
        return lambda: session.run(None, feeds)
    names = [output.name for output in session.get_outputs()]
    given = {name: _to_ort(name, value) for name, value in feeds.items()}
    return lambda: session.run_with_ort_values(names, given)


def _answers(session: Any, feeds: dict[str, Value]) -> dict[str, Value]:
    """The outputs by name. Raises CannotRun, or what onnxruntime raises."""
    outputs = session.get_outputs()
    names = [output.name for output in outputs]
    if _has_foreign(session, feeds):
        given = {name: _to_ort(name, value) for name, value in feeds.items()}
        values = [_from_ort(value) for value in session.run_with_ort_values(names, given)]
    else:
        values = [_clean(value) for value in session.run(names, dict(feeds))]
    for output, value in zip(outputs, values, strict=True):
        if value is None and not output.type.startswith("optional("):
            raise CannotRun(f"onnxruntime gave output {output.name} no value")
    return dict(zip(names, values, strict=True))


def _is_plain(array: Array) -> bool:
    """Return whether numpy itself defines the dtype."""
    return array.dtype.kind in _PLAIN_KINDS and array.dtype.isbuiltin != 2


def _has_foreign(session: Any, feeds: dict[str, Value]) -> bool:
    if any(isinstance(value, np.ndarray) and not _is_plain(value) for value in feeds.values()):
        return True
    types = [output.type for output in session.get_outputs()]
    return any(type_.startswith("tensor(") and type_ not in _PLAIN_TENSORS for type_ in types)


def _to_ort(name: str, value: Value) -> Any:
    from onnx import numpy_helper
    from onnxruntime import OrtValue

    if not isinstance(value, np.ndarray) or value.dtype.kind in "OUS":
        raise CannotRun(
            f"onnxruntime's Python interface takes no sequence, optional or string ({name}) "
            "in one call with bfloat16, float8 or 4-bit values"
        )
    if _is_plain(value):
        return OrtValue.ortvalue_from_numpy(np.require(value, requirements="C"))
    tensor = numpy_helper.from_array(value)
    result = OrtValue.ortvalue_from_shape_and_type(list(value.shape), tensor.data_type)
    if value.size:
        ctypes.memmove(result.data_ptr(), tensor.raw_data, len(tensor.raw_data))
    return result


def _from_ort(value: Any) -> Value:
    if not value.has_value():
        return None
    if not value.is_tensor():
        raise CannotRun("onnxruntime's Python interface gives no sequence beside bfloat16 values")
    kind = value.element_type()
    if f"{value.data_type()}" in _PLAIN_TENSORS:
        return _clean(value.numpy())
    from onnx import TensorProto, helper, numpy_helper

    shape = list(value.shape())
    like = np.zeros(shape, helper.tensor_dtype_to_np_dtype(kind))
    if 0 in shape:
        return like
    # values of 4 bits are packed; releases before 1.23 do not tell how many bytes that makes
    size = len(numpy_helper.from_array(like).raw_data)
    raw = ctypes.string_at(value.data_ptr(), size)
    return numpy_helper.to_array(TensorProto(data_type=kind, dims=shape, raw_data=raw))


def _clean(value: Any) -> Value:
    """Arrays that own their memory: `run` may give scalars and views."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, str):
        return np.array(value, dtype=object)
    return np.array(value)
