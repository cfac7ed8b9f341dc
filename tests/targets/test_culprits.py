"""Culprits are small models of the nodes that are in the way."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from passes.check import load_checked
from passes.targets.culprits import CannotWriteCulprits, culprits, save
from passes.targets.findings import check
from passes.targets.profile import load
from passes.testing import as_model
from tests.targets.test_findings import COUNTED, LISTED, LSTM, SCANNED


@pytest.mark.parametrize(
    ("text", "target", "names"),
    [
        (COUNTED, "no-control-flow", ["loop-Loop-1.onnx"]),
        (SCANNED, "no-control-flow", ["scan-Scan-1.onnx"]),
        (LSTM, "tract", ["attribute-LSTM-1.onnx"]),
        (LISTED, "no-control-flow", ["sequence-SequenceConstruct-1.onnx"]),
    ],
)
def test_each_is_a_valid_model_that_is_in_the_way_alone(
    text: str, target: str, names: list[str], tmp_path: Path
) -> None:
    model, _ = load_checked(as_model(text))
    checked = check(model, load(target))
    paths = save(model, checked, tmp_path / "made")
    assert [path.name for path in paths][: len(names)] == names
    for path in paths:
        alone, _ = load_checked(path)
        onnx.checker.check_model(alone.proto, full_check=True)
        assert len(alone.proto.graph.node) == 1
        codes = {finding.code for finding in check(alone, load(target)).findings}
        assert codes & {finding.code for finding in checked.findings}


def test_nothing_for_a_model_that_fits() -> None:
    model, _ = load_checked(as_model(SCANNED))
    assert not list(culprits(model, check(model, load("scan-only"))))


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    model, _ = load_checked(as_model(SCANNED))
    (tmp_path / "file").touch()
    with pytest.raises(CannotWriteCulprits, match="cannot be written"):
        save(model, check(model, load("loop-only")), tmp_path / "file" / "made")
