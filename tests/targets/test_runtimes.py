"""Outcomes are run where they are to run: real runtimes agree, refuse, or answer wrongly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from passes.binding.inputs import Binding
from passes.errors import DONE, NOT_PRODUCED
from passes.testing import as_model
from passes.verify.runtimes.comparing import Compared, compared_files
from passes.verify.runtimes.executors import NoRuntime, runtime
from tests.cli.test_checking import run
from tests.targets.test_findings import SUM
from tests.written import changed

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "golden_models"
#: tract runs it forward.
BACKWARDS = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[3,1,2] x, float[1,2,2] w, float[1,2,2] r) => (float[3,1,1,2] y) {
      y = RNN <hidden_size = 2, direction = "reverse"> (x, w, r)
    }
"""
STRINGS = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (string[2] x) => (string[2] y) { y = Identity (x) }
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def found(name: str, before: str, after: str = "") -> Compared:
    pytest.importorskip(name)
    for path, text in (("before.onnx", before), ("after.onnx", after or before)):
        onnx.save(as_model(text), path)
    return compared_files(Path("before.onnx"), Path("after.onnx"), name, None, 10.0, 0, Binding())


@pytest.mark.parametrize("name", ["openvino", "tract"])
def test_an_outcome_that_agrees(name: str) -> None:
    result = found(name, SUM)
    assert result.agrees
    assert str(result).startswith(f"agrees with the original on {name} ")


@pytest.mark.parametrize("name", ["openvino", "tract"])
def test_an_outcome_that_is_wrong(name: str) -> None:
    result = found(name, SUM, changed(SUM, {"Add (s, e)": "Sub (s, e)"}))
    assert not result.agrees
    assert str(result).startswith(f"does not agree with the original on {name} ")


def test_what_a_runtime_answers_wrongly_is_found() -> None:
    assert "does not agree with the original on tract" in str(found("tract", BACKWARDS))


def test_what_a_runtime_does_not_take() -> None:
    result = found("openvino", STRINGS)
    assert str(result).startswith("was not compared on openvino ")


def test_a_runtime_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NoRuntime, match="tract is not installed: pip install tract"):
        runtime("tract")


def test_check_runs_the_outcome() -> None:
    pytest.importorskip("tract")
    model = GOLDEN / "exported/torch/script_for_sum.opset9.onnx"
    Path("m.onnx").write_bytes(model.read_bytes())
    code, said, errors = run("check", "m.onnx", "--target", "tract", "--fix", "--run")
    assert (code, errors) == (DONE, "")
    assert said.splitlines()[-1].startswith("m.tract.onnx: agrees with the original on tract ")
    onnx.save(as_model(BACKWARDS), "rnn.onnx")
    assert run("check", "rnn.onnx", "--target", "tract", "--run")[0] == NOT_PRODUCED
    _, _, errors = run("check", "rnn.onnx", "--target", "ort-web", "--run")
    assert errors == "--run: there is no executor for ort-web\n"


AGREES, SECONDS = "agrees with the original on", ("--verify-budget", "15")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("model", "target", "known", "last"),
    [
        ("torch/script_cell.opset13", "openvino-2026", (), AGREES),
        ("torch/script_cell.opset13", "tract", ("--dim", "x0_d0=5"), "Clashing resolution"),  # LSTM
        ("torch/operator_while_counted.opset18", "openvino-2026", (), AGREES),
        ("torch/operator_while_counted.opset18", "tract", (), "declutter_discard_unused_input"),
        ("jax/rwkv4.opset21", "openvino-2026", (), AGREES),
        ("jax/rwkv4.opset21", "tract", (), AGREES),
        ("tensorflow/keras_gru.opset13", "openvino-2026", (), AGREES),
        ("tensorflow/keras_gru.opset13", "tract", (), "1 problem on tract"),
        ("sklearn/gaussian_process.opset14", "openvino-2026", (), AGREES),
        ("sklearn/gaussian_process.opset14", "tract", (), AGREES),
    ],
)
def test_exported_models_with_loops_run_there(
    model: str, target: str, known: tuple[str, ...], last: str
) -> None:
    pytest.importorskip(target.partition("-")[0])
    Path("m.onnx").write_bytes((GOLDEN / "exported" / f"{model}.onnx").read_bytes())
    arguments = ("check", "m.onnx", "--target", target, "--fix", "--run", *known, *SECONDS)
    code, said, errors = run(*arguments)
    assert errors == ""
    assert last in said.splitlines()[-1]
    assert (code == DONE) == (last == AGREES)


def test_nothing_is_reported_over_the_network() -> None:
    """Importing OpenVINO forks a process that sends what is used, and may outlive its parent."""
    pytest.importorskip("openvino")
    code = (
        "import sys, passes.verify.runtimes.openvino\n"
        "sys.exit('openvino_telemetry.main' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
