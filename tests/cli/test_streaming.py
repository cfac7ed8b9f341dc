"""`stream` and `close` on the command line: what they write, print and exit with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner, Result

from passes.__main__ import app
from passes.streaming.plan import Reason, State

SUM = """<ir_version: 10, opset_import: ["" : 21]>
g (float[T,2] x) => (float[T,2] y) <int64 axis = {0}> { y = CumSum (x, axis) }"""
DOCS = Path(__file__).parents[2] / "docs"
QUICK = ["--executor", "reference", "--verify-budget", "5"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, *QUICK])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "sum.onnxtxt"
    path.write_text(SUM)
    return path


def test_there_and_back(model: Path, tmp_path: Path) -> None:
    report, live = tmp_path / "report.json", tmp_path / "live.onnx"
    done = run("stream", f"{model}", "--axis", "T", "-o", f"{live}", "--json", f"{report}")
    assert done.exit_code == 0, done.output
    assert "state cumsum_0_sum -> new_cumsum_0_sum: float32[1,2], at first 0" in done.output
    told = json.loads(report.read_text())
    (entry,) = [one for one in onnx.load(live).metadata_props if one.key == "passes.stream"]
    assert told["stream"] == json.loads(entry.value)
    assert told["checked"]["verdict"] == "verified"
    done = run("close", f"{live}", "--axis", "T", "--initial", "cumsum_0_sum=0")
    assert done.exit_code == 0, done.output
    closed = onnx.load(tmp_path / "live.closed.onnx")
    assert [value.name for value in closed.graph.input] == ["x"]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([], 2, "--axis is needed, or --loop; not both"),
        (["--loop", "main/scan_0"], 2, "no Scan or recurrent operator 'main/scan_0'"),
        (["--axis", "time"], 2, "sum.onnxtxt: no input has a dim 'time'; the nearest is T"),
        (["--axis", "T", "--names", "{}={}"], 2, "not of the form {}=new_{}"),
        (["--axis", "T", "--state", "x"], 2, "not of the form IN=OUT"),
        (["--axis", "T", "--chunk", "4", "--states", "every"], 2, "without --chunk"),
        (["--axis", "T", "--initial", "first.onnx"], 2, "sum.onnxtxt: no state needs --initial"),
        (["--axis", "T", "-o", "a.onnx", "--initial", "a.onnx"], 2, "where the model itself is"),
    ],
)
def test_wrong_usage(model: Path, arguments: list[str], code: int, sentence: str) -> None:
    done = run("stream", f"{model}", *arguments)
    assert done.exit_code == code
    assert sentence in " ".join(done.output.replace("│", " ").split())
    assert [*model.parent.iterdir()] == [model]


def test_the_report_alone_is_printed_on_stdout(model: Path) -> None:
    done = run("stream", f"{model}", "--axis", "T", "--json", "-")
    assert json.loads(done.stdout)["stream"]["axis"] == "T"
    assert "chunks of any number of frames" in done.stderr


def test_no_report_is_written_over_the_inputs(model: Path, tmp_path: Path) -> None:
    np.savez(given := tmp_path / "given.npz", x=np.zeros((3, 2), np.float32))
    done = run("stream", f"{model}", "--axis", "T", "--inputs", f"{given}", "--json", f"{given}")
    assert (done.exit_code, done.output) == (
        2,
        f"{given}: is a file of this command, not a place for its report\n",
    )


def test_one_frame_at_a_time(model: Path, tmp_path: Path) -> None:
    live = tmp_path / "live.onnx"
    done = run("stream", f"{model}", "--axis", "T", "--chunk", "1", "-o", f"{live}")
    assert done.exit_code == 0, done.output
    assert "sum.onnxtxt: chunks of 1 frame along T" in done.output
    assert onnx.load(live).graph.input[0].type.tensor_type.shape.dim[0].dim_value == 1


def test_a_mismatch_is_written_with_the_inputs_that_show_it(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = State.first
    monkeypatch.setattr(State, "first", lambda self, sizes: first(replace(self, fill=1.0), sizes))
    done = run("stream", f"{model}", "--axis", "T")
    assert done.exit_code == 4
    folder = model.with_name("sum.stream.onnxtxt.reproducer")
    assert f"reproducer in {folder}\n" in done.output
    data = folder / "test_data_set_0"
    assert {path.name for path in data.iterdir()} == {"input_0.pb", "output_0.pb", "after_0.pb"}
    assert "--inputs FOLDER/test_data_set_0" in (folder / "README.txt").read_text()
    assert not model.with_name("sum.stream.onnxtxt").exists()
    done = run("stream", f"{model}", "--axis", "T", "--inputs", f"{data}")
    assert done.exit_code == 4
    assert "given" in done.output


def test_a_refusal_writes_nothing(model: Path) -> None:
    model.write_text(SUM.replace("CumSum (x", "CumSum <reverse = 1> (x"))
    done = run("stream", f"{model}", "--axis", "T")
    assert done.exit_code == 3
    assert done.output.endswith("sum.onnxtxt: main/cumsum_0: CumSum sums backwards [backwards]\n")
    assert [*model.parent.iterdir()] == [model]


def test_the_page_has_every_reason() -> None:
    page = (DOCS / "streaming.md").read_text()
    for reason in Reason:
        assert f"\n| `{reason}` |" in page
