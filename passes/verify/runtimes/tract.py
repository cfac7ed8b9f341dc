"""The runtime tract: it needs a model for each set of input shapes, with sizes as numbers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np
import onnx
import tract

from passes.verify.executor import CannotRun
from passes.verify.runtimes.worker import Job

#: Names of element types in its facts, by those of numpy.
_KINDS = {"float32": "f32", "float64": "f64", "float16": "f16", "bool": "bool"}


@dataclass(frozen=True)
class Session:
    """The bytes of a model, the names of its outputs, and what is runnable, by shapes."""

    model: bytes
    outputs: list[str]
    runnable: dict[tuple[tuple[int, ...], ...], Any] = field(default_factory=dict)


def version() -> str:
    """The version that is installed."""
    return metadata.version("tract")


def load(job: Job) -> Session:
    """A model that is known to be read."""
    assert job.model is not None
    proto = onnx.load_model_from_string(job.model)
    _read(job.model)
    return Session(job.model, [output.name for output in proto.graph.output])


def run(session: Session, feeds: dict[str, Any]) -> dict[str, Any]:
    """The outputs by name. Raises CannotRun."""
    answers = [value.to_numpy() for value in prepared(session, feeds)()]
    return dict(zip(session.outputs, answers, strict=True))


def prepared(session: Session, feeds: dict[str, Any]) -> Callable[[], Any]:
    """What calls a session on inputs, and nothing else. Raises CannotRun."""
    model = _read(session.model)
    names = [model.input_name(number) for number in range(model.input_count())]
    values = [feeds.get(name) for name in names]
    if not all(isinstance(value, np.ndarray) for value in values):
        raise CannotRun("an input is no tensor")
    shapes = tuple(value.shape for value in values if value is not None)
    if shapes not in session.runnable:
        session.runnable[shapes] = _runnable(session, values)
    return lambda: session.runnable[shapes].run(values)


def _runnable(session: Session, values: list[Any]) -> Any:
    """The model with its symbols, or, if it is not taken so, with the sizes of these inputs."""
    try:
        return _read(session.model).into_model().into_runnable()
    except tract.TractError:
        sized = _read(session.model)
        for number, value in enumerate(values):
            sized.set_input_fact(number, _fact(value))
        return sized.into_model().into_runnable()


def _read(model: bytes) -> Any:
    """A model from its bytes, by way of a file."""
    handle, path = tempfile.mkstemp(suffix=".onnx")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(model)
        return tract.onnx().load(path)
    finally:
        os.unlink(path)


def _fact(value: Any) -> str:
    kind = str(value.dtype)
    kind = _KINDS.get(kind) or kind.replace("uint", "u").replace("int", "i")
    return ",".join([*map(str, value.shape), kind])
