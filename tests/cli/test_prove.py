"""`passes prove`: exit codes, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from passes.__main__ import app

GOLDEN = Path(__file__).parent.parent.parent / "golden_models"

CLAMPED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[T] x) => (float[T] y) {
   most = Constant <value_float = 70000.0> ()
   y = Min (x, most)
}"""


def sides(name: str) -> list[str]:
    return [str(GOLDEN / f"{name}.{side}.onnxtxt") for side in ("before", "after")]


def test_proven(tmp_path: Path) -> None:
    report = tmp_path / "proof.json"
    done = CliRunner().invoke(app, ["prove", *sides("lower/sum"), "--json", str(report)])
    assert done.exit_code == 0
    assert "proven for all sizes" in done.output
    assert json.loads(report.read_text())["verdict"] == "proven"


def test_proven_at_sizes(tmp_path: Path) -> None:
    report = tmp_path / "proof.json"
    done = CliRunner().invoke(app, ["prove", *sides("raise/while_steps"), "--json", str(report)])
    assert done.exit_code == 0
    assert "proven at sizes " in done.output
    proof = json.loads(report.read_text())
    assert proof["scope"]["method"] == "terms"
    assert proof["scope"]["draws"][0]["shapes"]


def test_proven_up_to_the_order_of_summation() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("regroup-sum/allowed")])
    assert done.exit_code == 0
    assert ", up to the order of summation\n" in done.output
    assert "  error: below 2^-" in done.output


def test_not_proven() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("dissolve-map/minimum_of_floats")])
    assert done.exit_code == 3
    assert "unproven: element: output" in done.output
    assert "at drawn sizes: element: " in done.output


def test_not_modelled() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("simplify/random_stays")])
    assert done.exit_code == 3
    assert "not-provable: random: " in done.output


def test_disproven(tmp_path: Path) -> None:
    before, after = tmp_path / "before.onnxtxt", tmp_path / "after.onnxtxt"
    before.write_text(CLAMPED)
    after.write_text(CLAMPED.replace("most)", "x)"))
    report, folder = tmp_path / "proof.json", tmp_path / "after.onnxtxt.reproducer"
    asked = ["prove", str(before), str(after), "--executor", "reference", "--json", str(report)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 4
    assert f"{after}: disproven by x: float32[" in done.output
    proof = json.loads(report.read_text())
    assert (proof["verdict"], proof["code"], len(proof["inputs"])) == ("disproven", "mismatch", 1)
    assert proof["where"] == []
    again = ["verify", str(before), str(after), "--inputs", str(folder / "test_data_set_0")]
    assert CliRunner().invoke(app, again).exit_code == 4


def test_an_executor_that_cannot_run_the_original() -> None:
    done = CliRunner().invoke(app, ["prove", *sides("lower/sum"), "--executor", "tract"])
    assert done.exit_code == 2


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
    done = rewrites("lower", before, *written, "--require-proof", "all")
    assert done.exit_code == 0
    assert "; proven for all " in done.output.splitlines()[0]
    proof = json.loads(report.read_text())["proof"]
    assert (proof["verdict"], proof["code"]) == ("proven", "")
    assert "axes of one name have one size" in proof["assumed"]
    assert "Written, verified and proven" in page.read_text()
    assert "; proven for all " in page.read_text()
    assert json.loads(report.read_text())["spent"]["proving"] > 0


def test_an_outcome_is_written_only_if_it_is_proven_as_far_as_required(tmp_path: Path) -> None:
    before, _ = sides("raise/checked_state")
    out = tmp_path / "out.onnx"
    written = ["raise", before, "-o", str(out)]
    done = rewrites(*written, "--require-proof", "all")
    assert done.exit_code == 3
    assert "the outcome is only proven for K >= 2" in done.output
    assert not out.exists()
    done = rewrites(*written, "--require-proof", "sizes")
    assert done.exit_code == 0
    assert "; proven for K >= 2" in done.output.splitlines()[0]
    assert out.exists()


def test_an_outcome_that_is_not_proven_is_written_unless_a_proof_is_required(
    tmp_path: Path,
) -> None:
    before, _ = sides("lower/strings")
    out, report = tmp_path / "out.onnx", tmp_path / "report.json"
    written = ["lower", before, "-o", str(out), "--json", str(report), "--prove-budget", "0"]
    done = rewrites(*written, "--require-proof", "summation")
    assert done.exit_code == 3
    assert "the outcome is not proven: budget: more than 0 s" in done.output
    assert not out.exists()
    assert json.loads(report.read_text())["proof"]["code"] == "budget"
    done = rewrites(*written, "--prove")
    assert done.exit_code == 0
    assert done.output.splitlines()[0].endswith("; not proven: budget: more than 0 s")
    assert "\n  not proven: budget: more than 0 s" in done.output
    assert out.exists()


def test_a_build_counts_proofs(tmp_path: Path) -> None:
    models = [sides(name)[0] for name in ("raise/backwards", "raise/checked_state")]
    summary = tmp_path / "summary.md"
    done = rewrites(
        "raise", *models, "--out-dir", str(tmp_path), "--prove", "--markdown", str(summary)
    )
    assert done.exit_code == 0
    assert "proofs:\n  proven" in done.output
    assert "| proven for all sizes | 1 |" in summary.read_text()
    assert "| proven at stated sizes | 1 |" in summary.read_text()


def test_a_certificate_is_checked(tmp_path: Path) -> None:
    file, report = tmp_path / "certificate.json", tmp_path / "proof.json"
    pair = sides("lower/sum")
    done = CliRunner().invoke(app, ["prove", *pair, "--certify", str(file)])
    assert done.exit_code == 0
    check = ["certificate", "check"]
    done = CliRunner().invoke(app, [*check, *pair, str(file), "--json", str(report)])
    assert done.exit_code == 0
    assert "proven for all sizes" in done.output
    assert json.loads(report.read_text())["verdict"] == "proven"
    done = CliRunner().invoke(app, [*check, *sides("peel/vector_iteration"), str(file)])
    assert done.exit_code == 3
    assert f"{file}: this certificate is for a different first model" in done.output
    done = CliRunner().invoke(app, [*check, *pair])
    assert done.exit_code == 1
    assert "there is no certificate in its metadata" in done.output
    file.write_text("{")
    done = CliRunner().invoke(app, [*check, *pair, str(file)])
    assert done.exit_code == 1
    assert f"{file}: is no certificate, or is cut short" in done.output


def certified(tmp_path: Path) -> Path:
    """The file of the certificate of a golden pair."""
    file = tmp_path / "certificate.json"
    done = CliRunner().invoke(app, ["prove", *sides("lower/sum"), "--certify", str(file)])
    assert done.exit_code == 0
    return file


def test_a_certificate_holds(tmp_path: Path) -> None:
    asked = ["certificate", "check", *sides("lower/sum"), f"{certified(tmp_path)}"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0
    assert "after.onnxtxt: proven for all sizes" in done.output


def test_a_certificate_of_another_pair(tmp_path: Path) -> None:
    file = certified(tmp_path)
    before, after = sides("lower/strings")
    done = CliRunner().invoke(app, ["certificate", "check", before, after, f"{file}"])
    assert done.exit_code == 3
    assert f"{file}: this certificate is for a different first model, with SHA-256 " in done.stderr
    assert f"...; {before} has " in done.stderr


def test_what_is_no_certificate(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\x00")
    (tmp_path / "list").write_text("[]")
    (tmp_path / "key").write_text("{}")
    (tmp_path / "newer").write_text('{"version": 4}')
    sentences = {
        "folder": (1, "cannot be read (Is a directory)"),
        "binary": (1, "is no certificate, but a binary file"),
        "list": (1, "is no certificate, or is cut short (it begins with [)"),
        "key": (1, "is no certificate, or is cut short (key 'version')"),
        "missing": (1, "cannot be read (No such file or directory)"),
        "newer": (3, "it has version 4, and version 3 is supported"),
    }
    for name, (code, sentence) in sentences.items():
        file = tmp_path / name
        done = CliRunner().invoke(app, ["certificate", "check", *sides("lower/sum"), f"{file}"])
        assert (done.exit_code, done.stderr) == (code, f"{file}: {sentence}\n")


def test_no_certificate_rests_on_promises(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    for promise in (["--max-trips", "3"], ["--dim", "T=3"], ["--assume", "non-empty"]):
        asked = ["prove", *sides("lower/sum"), "--certify", f"{file}", *promise]
        done = CliRunner().invoke(app, asked)
        assert done.exit_code == 2
        assert "--certify is for a proof without promises" in done.stderr
        assert not file.exists()


def test_a_dim_that_the_original_does_not_have() -> None:
    before, after = sides("lower/sum")
    done = CliRunner().invoke(app, ["prove", before, after, "--dim", "Z=3"])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"{before}: no input has a dim 'Z'; ")
