"""The JSON report: every exit writes it, and its schema, which the package ships, describes it."""

from __future__ import annotations

import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import onnx
import pytest

from passes.commands.building import example
from passes.errors import DONE, FAILED, NOT_PRODUCED, USAGE
from passes.testing import as_model
from tests.builds.test_batch import NEGATED
from tests.builds.test_config import FULL
from tests.called import called

FAST = ("--executor", "reference")


def schema(name: str) -> Any:
    return json.loads((resources.files("passes.builds") / name).read_text())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    monkeypatch.chdir(tmp_path)
    onnx.save(as_model(NEGATED), "m.onnx")
    Path("bad.onnx").write_bytes(b"no model")
    return tmp_path


def run(*arguments: str) -> tuple[int, bytes]:
    done = called(*arguments)
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "end"),
    [
        (("simplify", "m.onnx", *FAST), DONE, "written"),
        (("unroll", "m.onnx", "--no-verify"), DONE, "written"),
        (("upgrade", "m.onnx"), DONE, "unchanged"),
        (("lower", "m.onnx", "--opset", "9"), NOT_PRODUCED, "refused"),
        (("simplify", "bad.onnx"), FAILED, "invalid"),
        (("simplify", "none.onnx"), FAILED, "invalid"),
        (("simplify", "m.onnx", "-o", "no/out.onnx"), FAILED, "invalid"),
        (("simplify", "m.onnx", "--rule", "nonsense"), USAGE, "usage"),
        (("simplify", "m.onnx", "--opset", "99"), USAGE, "usage"),
        (("simplify", "m.onnx", "--for", "onnxruntime==0.1"), USAGE, "usage"),
        (("simplify", "m.onnx", "--nonsense"), USAGE, "usage"),
        (("unroll", "m.onnx", "--factor", "2", "--peel", "last"), USAGE, "usage"),
        (("simplify", "x*.onnx"), USAGE, "usage"),
    ],
)
def test_every_exit_writes_it(arguments: tuple[str, ...], code: int, end: str) -> None:
    assert run(*arguments, "--json", "r.json")[0] == code
    report = json.loads(Path("r.json").read_text())
    jsonschema.validate(report, schema("report-1.schema.json"))
    assert (report["schema_version"], report["exit_code"], report["end"]) == (1, code, end)
    assert bool(report["error"]) == bool(code)
    assert report["tools"]["onnx"] == onnx.__version__


def test_stdout_is_for_one_thing(folder: Path) -> None:
    code, said = run("simplify", "m.onnx", "--json", "-", *FAST)
    assert code == DONE
    assert json.loads(said)["output"][0]["path"] == "m.simplified.onnx"
    code, said = run("simplify", "m.onnx", "-o", "-", *FAST)
    assert code == DONE
    assert said == Path("m.simplified.onnx").read_bytes()
    done = called("simplify", "-", *FAST, stdin=Path("m.onnx").read_bytes())
    assert (done.returncode, done.stdout) == (DONE, said)
    assert done.stderr.startswith(b"stdin: opset 21, ")


def test_what_rewrites_tell(folder: Path) -> None:
    run("simplify", "m.onnx", "--json", "r.json", *FAST)
    report = json.loads(Path("r.json").read_text())
    (command,) = report["commands"]
    assert (command["command"], command["options"]["executor"]) == ("simplify", "reference")
    assert report["input"][0]["bytes"] == Path("m.onnx").stat().st_size
    assert report["sizes"][0]["operators"]["Exp"] == 1
    assert "Exp" not in report["sizes"][1]["operators"]
    (rewrite, *_) = report["records"]
    assert (rewrite["rule"], rewrite["path"]) == ("prune-loop", "main/loop_1")
    assert rewrite["checked"]["verdict"] == "verified"
    assert rewrite["checked"]["seconds"] > 0


@pytest.mark.parametrize("text", [FULL, example([])])
def test_files_of_builds_fit_their_schema(text: str) -> None:
    jsonschema.validate(tomllib.loads(text), schema("config.schema.json"))
    wrong = {**tomllib.loads(text), "jbos": 2}
    with pytest.raises(jsonschema.ValidationError, match="jbos"):
        jsonschema.validate(wrong, schema("config.schema.json"))
