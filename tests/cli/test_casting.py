"""The command `cast` on the command line: its report in all forms, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

from tests.cli.calling import NOT_PRODUCED, USAGE, fails, run
from tests.written import changed

#: A state that adds up, and a product that does not.
SUM = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[2] h, float[4,2] x) => (float[2] y, float[4,2] z) <float[2,2] w = {1, 0.3, 0.7, -1}> {
      y, z = Scan <num_scan_inputs = 1,
        body = b (float[2] s, float[2] e) => (float[2] t, float[2] u) {
          t = Add (s, e)
          p = MatMul (t, w)
          u = Tanh (p)
      }> (h, x)
    }
"""
FAST = ("--executor", "reference", "--verify-budget", "5")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(SUM), "m.onnx")


def test_what_stays_and_how_far_it_is_off() -> None:
    result = run("cast", "m.onnx", "--to", "float16", *FAST)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("m.onnx: 5 of 10 values in float16, 2 Casts")
    assert lines[1].startswith("  stays float32: main/scan_0.body/add_0 (Add): ")
    assert lines[1].endswith("[accumulator]")
    assert "the error of 'z' is " in lines[2]
    assert lines[-1].startswith("wrote m.cast.onnx: ")


def test_the_report_as_json_and_as_a_page() -> None:
    run("cast", "m.onnx", "--to", "float16", "--json", "r.json", "--html", "r.html", *FAST)
    report = json.loads(Path("r.json").read_text())
    (cast,) = report["casts"]
    assert (cast["before"], cast["after"]) == ("float32", "float16")
    assert cast["kept"][0]["operators"] == {"Add": 1}
    assert {one["output"] for one in report["within"]["errors"]} == {"y", "z"}
    page = Path("r.html").read_text()
    assert "<h2>Precision</h2>" in page
    assert '<th scope="row"><code>z</code></th>' in page


def test_an_error_that_is_too_large() -> None:
    options = ("--to", "float16", "--io", "cast", "--max-error", "1e-9")
    said = fails(NOT_PRODUCED, "cast", "m.onnx", *options, *FAST)
    assert "not within 1e-09" in said
    assert not Path("m.cast.onnx").exists()


def test_a_large_error_is_followed_by_advice() -> None:
    large = changed(SUM, {"{1, 0.3, 0.7, -1}": "{60000, 60000, 60000, 60000}", "Tanh": "Neg"})
    onnx.save(parser.parse_model(large), "m.onnx")
    said = run("cast", "m.onnx", "--to", "float16", *FAST).stdout
    assert "the error of 'z' is infinite" in said
    assert said.splitlines()[-1].startswith("next: passes cast m.onnx")
    assert "--max-error 0.01" in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "name a type"),
        (("--to", "float16", "--keep", "Foo"), "no node has an operator, path or name"),
        (("--to", "float16", "--prove"), "nothing is proven"),
    ],
)
def test_wrong_usage(options: tuple[str, ...], sentence: str) -> None:
    assert sentence in fails(USAGE, "cast", "m.onnx", *options, *FAST)
