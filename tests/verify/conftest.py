"""onnxruntime, for the tests that verify with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from passes.verify.installed import OnnxRuntimeExecutor


@pytest.fixture(scope="module")
def onnxruntime() -> Iterator[OnnxRuntimeExecutor]:
    pytest.importorskip("onnxruntime")
    with OnnxRuntimeExecutor() as one:
        yield one
