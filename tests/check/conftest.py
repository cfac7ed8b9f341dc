from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import ModelProto

from passes.check import check
from passes.errors import BadModel
from passes.ir.model import Model

Complaint = Callable[[str | ModelProto], str]


@pytest.fixture
def complaint() -> Complaint:
    """What `check` says against a model, path and sentence; empty where it is valid."""

    def told(source: str | ModelProto) -> str:
        proto = onnx.parser.parse_model(source) if isinstance(source, str) else source
        before = proto.SerializeToString()
        try:
            check(Model(proto))
        except BadModel as error:
            return str(error)
        finally:
            assert proto.SerializeToString() == before, "check changed the model"
        return ""

    return told
