"""The folder in which commands are called."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

from tests.cli.calling import SUM


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, with the model of a ragged sum in m.onnx."""
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(SUM), "m.onnx")
    return tmp_path
