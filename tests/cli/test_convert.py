"""The command `convert`: what it is asked for, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser
from typer.testing import CliRunner

from passes.__main__ import app

DONE, FAILED, USAGE, NOT_PRODUCED = range(4)
MODEL = """<ir_version: 10, opset_import: ["" : 18, "my" : 1]>
    g (float[2] x) => (float[2] y) { [call] y = my.f (x) }
    <domain: "my", opset_import: ["" : 18]> f (x) => (y) { t = Exp (x) y = Neg (t) }"""
FAST = ("--executor", "reference", "--verify-budget", "5")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    model = parser.parse_model(MODEL)
    model.graph.node[0].metadata_props.add(key="from", value="here")
    onnx.save(model, "m.onnx")
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["convert", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.stdout, result.stderr


def written() -> set[str]:
    return {path.name for path in Path().iterdir()} - {"m.onnx"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "name an opset, a release, an IR version or functions to inline"),
        (("--opset", "6"), "--opset"),
        (("--opset", "99"), "opset 99 is unknown"),
        (("--ir-version", "2"), "--ir-version"),
        (("--ir-version", "99"), "IR version 99 is not known"),
        (("--ir-version", "8", "--for", "onnxruntime==1.18"), "do not go together"),
        (("--opset", "13", "--for", "onnxruntime==1.18"), "--for"),
        (("--inline", "other"), "the model has no function 'other'; the nearest are "),
        (("--lowest", "--opset", "9"), "does not go together with --opset"),
        (("--lowest", "--for", "onnxruntime==1.18"), "does not go together with --for"),
        (("--lowest", "--ir-version", "9"), "does not go together with --ir-version"),
        (("--lowest", "-o", "out.onnx"), "does not go together with --output"),
        (("--lowest", "--inline", "other"), "the model has no function 'other'"),
    ],
)
def test_wrong_usage(options: tuple[str, ...], sentence: str) -> None:
    code, _, said = run("m.onnx", *options)
    assert code == USAGE
    assert sentence in said
    assert not written()


def test_an_older_opset_is_written_beside_the_model() -> None:
    code, said, _ = run("m.onnx", "--opset", "13", "--drop-metadata", *FAST)
    assert code == DONE
    assert "m.onnx: opset 18 -> 13, IR version 10 -> 8, 2 nodes" not in said  # a call and its body
    assert "m.onnx: opset 18 -> 13, IR version 10 -> 8, 3 nodes" in said
    assert "note: dropped, as IR version 8 cannot hold it: main/call has metadata_props" in said
    after = onnx.load("m.opset13.onnx")
    assert (after.ir_version, after.opset_import[0].version) == (8, 13)
    assert len(after.functions) == 1


def test_where_no_opset_is_named_the_name_of_the_file_has_none() -> None:
    assert run("m.onnx", "--inline", "all", *FAST)[0] == DONE
    assert written() == {"m.converted.onnx"}
    assert [node.op_type for node in onnx.load("m.converted.onnx").graph.node] == ["Exp", "Neg"]


def test_an_ir_version_that_cannot_hold_the_model() -> None:
    code, said, error = run("m.onnx", "--ir-version", "9", "--json", "report.json")
    assert code == NOT_PRODUCED
    assert error.startswith("m.onnx: main/call: it has metadata_props, which came with IR version")
    assert "[rule ir-version, code ir-metadata]" in said
    report = json.loads(Path("report.json").read_text())
    assert report["ir_versions"] == [10, 9]
    assert [one["code"] for one in report["records"]] == ["ir-metadata"]
    assert written() == {"report.json"}
    named = run("m.onnx", "--ir-version", "7", "--inline", "f", "--drop-metadata", *FAST)
    assert named[0] == DONE


def test_functions_that_the_ir_version_cannot_hold_are_inlined_unless_others_are_named() -> None:
    assert run("m.onnx", "--ir-version", "7", *FAST)[0] == DONE
    assert not onnx.load("m.converted.onnx").functions
    again = MODEL.replace("y = my.f (x)", "t = my.f (x) y = my.h (t)")
    again += '<domain: "my", opset_import: ["" : 18]> h (x) => (y) { y = Abs (x) }'
    onnx.save(parser.parse_model(again), "two.onnx")
    code, _, error = run("two.onnx", "--ir-version", "7", "--inline", "f")
    assert code == NOT_PRODUCED
    assert "my.h: it is a function, which came with IR version 8, not 7; --inline all" in error


def test_lowest_writes_no_model() -> None:
    code, said, _ = run("m.onnx", "--lowest", "--json", "report.json")
    assert code == DONE
    assert said.splitlines()[:2] == [
        "m.onnx: opset 18, can be written down to 7 (nothing was executed)",
        "  17: can be written",
    ]
    report = json.loads(Path("report.json").read_text())
    assert report["lowest"] == 7
    assert [step["opset"] for step in report["steps"]] == list(range(17, 6, -1))
    assert written() == {"report.json"}


def test_lowest_of_no_model() -> None:
    Path("bad.onnx").write_text("no")
    code, _, error = run("bad.onnx", "--lowest")
    assert code == FAILED
    assert error.startswith("bad.onnx: is no ONNX model")
