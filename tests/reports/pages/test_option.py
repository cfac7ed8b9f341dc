"""The option `--html` of each command that writes a report, and the key `html` of a build."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from passes.errors import DONE, FAILED, MISMATCH, NOT_PRODUCED, USAGE
from passes.testing import as_model
from tests.called import called
from tests.reports.pages.looking import PROJECTION, UNKNOWN_TRIPS, chain

FAST = ("--executor", "reference")
BUILD = """
models = ["m.onnx", "n.onnx"]
output = "out/{name}"
html = "site/index.html"
results = "site/r.jsonl"
[pipelines]
default = ["lower"]
[verify]
executor = "reference"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    onnx.save(chain(2), "m.onnx")
    onnx.save(as_model(UNKNOWN_TRIPS), "n.onnx")
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    done = called(*arguments)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def heading(path: str = "r.html") -> str:
    text = Path(path).read_text(encoding="utf-8")
    return text[text.index("<h1>") + 4 : text.index("</h1>")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("lower", "m.onnx", *FAST), DONE, "Written and verified"),
        (("lower", "m.onnx", "--no-verify"), DONE, "Written, not verified"),
        (("raise", "m.onnx", *FAST), DONE, "Nothing to do"),
        (("unroll", "n.onnx", "--strict", *FAST), NOT_PRODUCED, "Incomplete"),
        (("lower", "m.onnx", "--opset", "9"), NOT_PRODUCED, "Refused"),
        (("lower", "none.onnx"), FAILED, "Failed"),
        (("lower", "m.onnx", "--opset", "99"), USAGE, "Failed"),
        (("verify", "m.onnx", "m.onnx", *FAST), DONE, "Agree"),
        (("check", "m.onnx", "--target", "loop-only"), NOT_PRODUCED, "In the way"),
        (("check", "m.onnx", "--target", "scan-only"), DONE, "Fits"),
        (
            ("check", "m.onnx", "--target", "loop-only", "--fix", *FAST),
            DONE,
            "Written and verified",
        ),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, tuple) else None,
)
def test_each_command(arguments: tuple[str, ...], code: int, said: str) -> None:
    assert run(*arguments, "--html", "r.html")[0] == code
    assert heading() == said


def test_models_that_do_not_agree() -> None:
    other = chain(2)
    del other.graph.node[1].attribute[0].g.node[1:2]
    other.graph.node[1].attribute[0].g.node[1].input[0] = "s"
    other.graph.node[1].attribute[0].g.output[0].name = "s"
    onnx.save(other, "other.onnx")
    code, _, _ = run("verify", "m.onnx", "other.onnx", "--html", "r.html", *FAST)
    assert (code, heading()) == (MISMATCH, "Mismatch")


def test_a_place_that_it_cannot_be_written_to() -> None:
    for place, code in (("m.onnx", USAGE), ("m.lowered.onnx", USAGE), ("no/r.html", FAILED)):
        found, _, error = run("lower", "m.onnx", *FAST, "--html", place)
        assert found == code
        assert error.count("\n") == 1
        assert error.startswith(place)
    found, _, error = run("lower", "m.onnx", *FAST, "--html", "r", "--json", "r")
    assert (found, error) == (USAGE, "r: is a file of this command, not a place for its report\n")
    assert sorted(os.listdir()) == ["m.onnx", "n.onnx", "r"]  # why, as JSON


def test_to_stdout() -> None:
    code, said, error = run("lower", "m.onnx", *FAST, "--html", "-")
    assert code == DONE
    assert said.startswith("<!doctype html>")
    assert "wrote m.lowered.onnx" in error


def test_a_build_and_its_second_run() -> None:
    Path("passes.toml").write_text(BUILD)
    assert run("run")[0] == DONE
    assert heading("site/index.html") == "Every model succeeded"
    pages = sorted(Path("site/index.pages").iterdir())
    assert [page.name.split(".")[0] for page in pages] == ["m", "n"]
    first = pages[0].read_text(encoding="utf-8")
    pages[0].unlink()
    assert run("run", "--html", "site/index.html")[0] == DONE
    assert pages[0].read_text(encoding="utf-8") == first  # from the cache
    assert '"cases": [{' not in Path("site/r.jsonl").read_text(encoding="utf-8")
    assert "2 from the cache" in Path("site/index.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_many_models_of_a_command() -> None:
    onnx.save(as_model(PROJECTION), "p.onnx")
    code, _, _ = run("lower", "m.onnx", "p.onnx", "--out-dir", "out", "--html", "all.html", *FAST)
    assert (code, heading("all.html")) == (DONE, "Every model succeeded")
    assert len(list(Path("all.pages").iterdir())) == 2
    code, _, error = run("lower", "m.onnx", "p.onnx", "--out-dir", "out", "--html", "p.onnx", *FAST)
    assert code == USAGE
    assert error == "p.onnx: is a model or an outcome, not a place for results\n"
