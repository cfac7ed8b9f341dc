"""The executors that the vectorised bodies run in."""

from __future__ import annotations

import pytest

from passes.verify.executor import Executor
from passes.verify.reference import ReferenceExecutor
from tests.onnxruntime_at_hand import at_hand


@pytest.fixture(scope="module")
def both() -> list[Executor]:
    return [ReferenceExecutor(), at_hand()]
