"""Runs a model in the reference executor and in onnxruntime: what both give, that both fail."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pytest
from onnx import ModelProto

from passes.verify.executor import Executor, ModelFailed
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor


@contextmanager
def both_executors() -> Iterator[tuple[Executor, Executor]]:
    with OnnxRuntimeExecutor() as onnxruntime:
        yield ReferenceExecutor(), onnxruntime


def tensors(
    executor: Executor, model: ModelProto, feeds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The outputs of a model that gives tensors only."""
    outputs = executor.run(model, feeds).outputs
    return {name: output for name, output in outputs.items() if isinstance(output, np.ndarray)}


def run_both(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """What a model gives, executor by executor."""
    with both_executors() as executors:
        return [tensors(executor, model, feeds) for executor in executors]


def assert_both_fail(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> None:
    with both_executors() as executors:
        for executor in executors:
            with pytest.raises(ModelFailed):
                executor.run(model, feeds)
