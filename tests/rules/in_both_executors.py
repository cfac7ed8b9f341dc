"""Runs a model in the reference executor and in onnxruntime: what both give, that both fail."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from onnx import ModelProto

from passes.verify.executor import Executor, ModelFailed
from passes.verify.reference import ReferenceExecutor
from tests.onnxruntime_at_hand import at_hand


def both_executors() -> tuple[Executor, Executor]:
    return ReferenceExecutor(), at_hand()


def tensors(
    executor: Executor, model: ModelProto, feeds: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The outputs of a model that gives tensors only."""
    outputs = executor.run(model, feeds).outputs
    return {name: output for name, output in outputs.items() if isinstance(output, np.ndarray)}


def run_both(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """What a model gives, executor by executor."""
    return [tensors(executor, model, feeds) for executor in both_executors()]


def assert_both_fail(model: ModelProto, feeds: Mapping[str, np.ndarray]) -> None:
    for executor in both_executors():
        with pytest.raises(ModelFailed):
            executor.run(model, feeds)
