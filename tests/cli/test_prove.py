"""`passes prove`: exit codes, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import Result
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


def test_not_proven() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("regroup-sum/allowed")])
    assert done.exit_code == 3
    assert "unproven: element: output" in done.output


def test_not_modelled() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("recognize-cell/gru")])
    assert done.exit_code == 3
    assert "not-provable: operator: " in done.output
    assert "GRU is not modelled" in done.output


def test_no_model(tmp_path: Path) -> None:
    empty = tmp_path / "empty.onnx"
    empty.write_bytes(b"")
    done = CliRunner().invoke(app, ["prove", str(empty), str(empty)])
    assert done.exit_code == 1
    assert "the file is empty" in done.output


def rewrites(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--executor", "reference"])


def test_an_outcome_that_is_proven(tmp_path: Path) -> None:
    before, _ = sides("lower/sum")
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    written = ["-o", str(tmp_path / "out.onnx"), "--json", str(report), "--html", str(page)]
    done = rewrites("lower", before, *written, "--require-proof")
    assert done.exit_code == 0
    assert "\n  proven for all inputs, sizes and trip counts" in done.output
    proof = json.loads(report.read_text())["proof"]
    assert (proof["verdict"], proof["code"]) == ("proven", "")
    assert "axes of one name have one size" in proof["assumed"]
    assert "Written, verified and proven" in page.read_text()


def test_an_outcome_that_is_not_proven_is_written_unless_a_proof_is_required(
    tmp_path: Path,
) -> None:
    before, _ = sides("hoist-invariants/random_stays")
    out, report = tmp_path / "out.onnx", tmp_path / "report.json"
    written = ["hoist", before, "-o", str(out), "--json", str(report)]
    done = rewrites(*written, "--require-proof")
    assert done.exit_code == 3
    assert "the outcome is not proven: operator: main/loop_0.body/" in done.output
    assert not out.exists()
    assert json.loads(report.read_text())["proof"]["code"] == "operator"
    done = rewrites(*written, "--prove")
    assert done.exit_code == 0
    assert "  not proven: operator: main/loop_0.body/" in done.output
    assert out.exists()


def test_a_build_counts_proofs(tmp_path: Path) -> None:
    models = [sides(name)[0] for name in ("lower/sum", "lower/strings")]
    summary = tmp_path / "summary.md"
    done = rewrites(
        "lower", *models, "--out-dir", str(tmp_path), "--prove", "--markdown", str(summary)
    )
    assert done.exit_code == 0
    assert "proofs:\n  proven" in done.output
    assert "| proven | 1 |" in summary.read_text()
