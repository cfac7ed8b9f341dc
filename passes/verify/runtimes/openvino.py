"""OpenVINO, on the CPU, in the precision of the model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from passes.verify.executor import CannotRun
from passes.verify.runtimes.worker import Job

# OpenVINO reports its imports over the network, from a forked process that may never end. It has a
# stand-in for where the package that does so is not installed.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # the import fails then
import openvino  # noqa: E402  # after that

_SETTINGS = {"INFERENCE_PRECISION_HINT": "f32"}


@dataclass(frozen=True)
class Session:
    """A compiled model, with the names of its outputs, in order."""

    compiled: Any
    outputs: list[str]


def version() -> str:
    """The version that is installed."""
    return str(openvino.__version__).partition("-")[0]


def load(job: Job) -> Session:
    """A compiled model."""
    assert job.model is not None
    proto = onnx.load_model_from_string(job.model)
    model = openvino.Core().read_model(job.model)
    settings = {**_SETTINGS, "INFERENCE_NUM_THREADS": job.threads}
    compiled = openvino.compile_model(model, "CPU", settings)
    return Session(compiled, [output.name for output in proto.graph.output])


def run(session: Session, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs by name. Raises CannotRun."""
    answers = session.compiled(_given(session, feeds), share_inputs=False, share_outputs=False)
    values = [np.array(answers[port]) for port in session.compiled.outputs]
    return dict(zip(session.outputs, values, strict=True))


def prepared(session: Session, feeds: dict[str, Any]) -> Callable[[], object]:
    """What calls a session on inputs, and nothing else. Raises CannotRun."""
    given = _given(session, feeds)
    return lambda: session.compiled(given, share_inputs=True, share_outputs=True)


def _given(session: Session, feeds: dict[str, Any]) -> dict[Any, Any]:
    given = {}
    for port in session.compiled.inputs:
        known = [name for name in port.get_names() if name in feeds]
        if not known or not isinstance(feeds[known[0]], np.ndarray):
            raise CannotRun("an input is no tensor")
        given[port] = feeds[known[0]]
    return given
