"""`passes prove`: exit codes, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from passes.__main__ import app

GOLDEN = Path(__file__).parent.parent.parent / "golden_models"


def sides(name: str) -> list[str]:
    return [str(GOLDEN / f"{name}.{side}.onnxtxt") for side in ("before", "after")]


def test_proven(tmp_path: Path) -> None:
    report = tmp_path / "proof.json"
    done = CliRunner().invoke(app, ["prove", *sides("lower/sum"), "--json", str(report)])
    assert done.exit_code == 0
    assert "proven for all inputs, sizes and trip counts" in done.output
    assert json.loads(report.read_text())["verdict"] == "proven"


def test_proven_at_sizes(tmp_path: Path) -> None:
    report = tmp_path / "proof.json"
    done = CliRunner().invoke(
        app, ["prove", *sides("unroll-partial/dynamic"), "--json", str(report)]
    )
    assert done.exit_code == 0
    assert "proven for all floats at sizes " in done.output
    proof = json.loads(report.read_text())
    assert proof["scope"]["method"] == "terms"
    assert proof["scope"]["draws"][0]["shapes"]


def test_proven_up_to_the_order_of_summation() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("regroup-sum/allowed")])
    assert done.exit_code == 0
    assert "proven up to the order of summation at sizes " in done.output
    assert "error < 2^-" in done.output


def test_not_proven() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("dissolve-map/minimum_of_floats")])
    assert done.exit_code == 3
    assert "unproven: element: output" in done.output
    assert "at drawn sizes: element: " in done.output


def test_not_modelled() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("peel/rows_of_a_size_that_the_run_tells")])
    assert done.exit_code == 3
    assert "not-provable: " in done.output
    assert "at drawn sizes: decision: floats decide " in done.output


def test_no_model(tmp_path: Path) -> None:
    empty = tmp_path / "empty.onnx"
    empty.write_bytes(b"")
    done = CliRunner().invoke(app, ["prove", str(empty), str(empty)])
    assert done.exit_code == 1
    assert "the file is empty" in done.output
