"""The command `inspect`: what it shows, what filters leave, and what is wrong usage."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import jsonschema
import onnx
import pytest
from onnx import parser

from passes.errors import DONE, FAILED, NOT_PRODUCED, USAGE
from tests.cli.calling import SUM, fails, run
from tests.inspection.test_inspecting import LAYERS


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(LAYERS), "m.onnx")


def lines(*arguments: str) -> list[str]:
    """What it prints between the first line and the last ones, which are about all of it."""
    result = run("inspect", "m.onnx", *arguments)
    assert (result.exit_code, result.stderr) == (DONE, "")
    verdict, *rest, following = result.stdout.splitlines()
    assert verdict == "m.onnx: opset 16, IR 8, 9 nodes, 3 loops of 2 kinds, 1 If"
    assert following.startswith("next: passes ")
    return [line for line in rest if not line.startswith("in all")]


def test_filters() -> None:
    assert [line for line in lines() if line[0] != " "] == [
        "2 x main/layer_*_rnn: Scan-16, T iterations, 1 node in the body",
        "main/pick: If-16, 4 nodes in the branches",
    ]
    assert lines("--op", "If", "--depth", "1")[0].startswith("main/pick: If-16")
    assert lines("--loop", "main/layer_1*")[0].startswith("main/layer_1_rnn: Scan-16")
    assert lines("--rule", "unroll", "--loop", "*again") == [
        "main/pick.then_branch/again: Loop-16, 3 iterations, 2 nodes in the body",
        "  carries float[T,2]",
        "  rewrites: unroll (3 iterations)",
    ]
    assert lines("--code", "may-fail", "-v")[0] == "main/pick: If-16, 4 nodes in the branches"


def test_nothing_matches() -> None:
    result = run("inspect", "m.onnx", "--rule", "flatten-scan")
    assert result.stdout.splitlines()[1:] == ["none of them matches"]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", "m.onnx", "--json", "i.json").exit_code == DONE
    schema = json.loads((resources.files("passes.builds") / "inspect-1.schema.json").read_text())
    found = json.loads(Path("i.json").read_text())
    jsonschema.validate(found, schema)
    assert found["file"] == "m.onnx"
    assert {one["rule"] for one in found["groups"][1]["answers"]} >= {"select-branches"}
    result = run("inspect", "m.onnx", "--json", "-")
    assert json.loads(result.stdout) == found
    assert "main/pick" in result.stderr


def test_a_folder() -> None:
    Path("nets").mkdir()
    Path("nets/text.onnxtxt").write_text(SUM)
    Path("nets/broken.onnx").write_bytes(b"no model")
    result = run("inspect", "nets")
    assert (result.exit_code, result.stdout.partition(":")[0]) == (FAILED, "nets/text.onnxtxt")
    assert result.stderr.startswith("nets/broken.onnx: ")
    assert len(result.stderr.splitlines()) == 1


def test_bad_input() -> None:
    assert "no loop or If has a path that matches 'x'" in fails(
        USAGE, "inspect", "m.onnx", "--loop", "x"
    )
    assert "there is no rule 'unrol'" in fails(USAGE, "inspect", "m.onnx", "--rule", "unrol")
    assert "no rule refuses with the code 'x'" in fails(USAGE, "inspect", "m.onnx", "--code", "x")
    assert "'Add'" in fails(USAGE, "inspect", "m.onnx", "--op", "Add")
    assert "opset 99 is unknown" in fails(USAGE, "inspect", "m.onnx", "--opset", "99")
    assert fails(NOT_PRODUCED, "inspect", "m.onnx", "--opset", "9").startswith("m.onnx: the model")
    assert fails(FAILED, "inspect", "n.onnx").startswith("n.onnx: cannot be read")
