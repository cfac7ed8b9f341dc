"""The executors that the vectorised bodies run in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from passes.verify.executor import Executor
from passes.verify.installed import OnnxRuntimeExecutor
from passes.verify.reference import ReferenceExecutor


@pytest.fixture(scope="module")
def both() -> Iterator[list[Executor]]:
    with OnnxRuntimeExecutor() as onnxruntime:
        yield [ReferenceExecutor(), onnxruntime]
