"""`passes init`, `passes run`, and the commands with many models."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from passes.__main__ import app
from passes.errors import DONE, FAILED, NOT_PRODUCED, USAGE
from passes.testing import as_model
from tests.builds.test_batch import NEGATED, NOTHING

#: A loop that ends by what it computes, which no Scan does.
WHILE = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float x, bool c) => (float y) {
      y = Loop ("", c, x) <body = b (int64 i, bool p, float s) => (bool q, float t) {
        limit = Constant <value_float = 9.0> ()
        t = Add (s, limit)
        q = Less (t, limit)
      }>
    }
"""
FAST = ("--executor", "reference")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, text in (("nets/loop.onnx", NEGATED), ("nets/deep/plain.onnx", NOTHING)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(as_model(text), path)
    return tmp_path


def edited(old: str, new: str) -> None:
    text = Path("passes.toml").read_text()
    assert old in text
    Path("passes.toml").write_text(text.replace(old, new))


def test_a_new_project(folder: Path) -> None:
    code, said, _ = run("init")
    assert (code, said) == (
        DONE,
        "wrote passes.toml (2 models below this folder); `passes run` builds them\n",
    )
    assert run("init")[0] == USAGE
    edited("[verify]", '[verify]\nexecutor = "reference"')
    code, said, errors = run("run")
    assert (code, errors) == (DONE, "")
    assert re.match(r"2 models, [\d.]+ s of work\n  written +\d\n", said)
    assert Path("build/loop.onnx").exists()
    assert Path("build/deep/plain.onnx").exists()
    code, said, _ = run("run", "-v")
    assert "2 models, 2 from the cache, 0.0 s of work\n" in said
    assert "(from the cache)\n" in said
    lines = Path("build/results.jsonl").read_text().splitlines()
    assert [json.loads(line)["cached"] for line in lines] == [True, True]
    assert "2 models, 0.0" not in run("run", "-j", "1", "--no-cache")[1]
    assert "1 model, 1 from the cache" in run("run", "nets/loop.onnx")[1]
    assert "1 model, 1 from the cache" in run("run", "default", "--shard", "2/2")[1]


def test_only_a_memory_limit_needs_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no wheel on some machines."""
    monkeypatch.setitem(sys.modules, "psutil", None)
    run("init")
    edited('["optimize"]', '["simplify"]')
    edited("[verify]", "[verify]\nenabled = false")
    assert run("run", "nets/loop.onnx")[0] == DONE
    sentence = "a memory limit needs psutil, which is not installed: pip install psutil\n"
    assert run("run", "--memory-limit", "99")[::2] == (USAGE, sentence)
    edited("# memory-limit", "memory-limit")
    assert run("run")[::2] == (USAGE, sentence)


def test_refusals_fail_the_build_unless_they_may_happen() -> None:
    run("init")
    onnx.save(as_model(WHILE), "nets/loop.onnx")
    edited('["optimize"]', '["raise"]')
    edited("[pipelines]", "strict = true\n[pipelines]")
    edited("[verify]", "[verify]\nenabled = false")
    code, said, errors = run("run", "nets/loop.onnx", "--github", "--markdown", "summary.md")
    assert code == NOT_PRODUCED
    assert errors.startswith("incomplete: nets/loop.onnx: main/")
    assert "  incomplete " in said
    assert "::error file=nets/loop.onnx,title=nets/loop.onnx::nets/loop.onnx: main/" in said
    assert "| nets/loop.onnx | incomplete |" in Path("summary.md").read_text()
    edited("# fail-on", "fail-on")
    assert run("run", "nets/loop.onnx", "--quiet") == (DONE, "", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("run",), "there is no passes.toml here or above; `passes init` writes one"),
        (("run", "--config", "no.toml"), "no.toml: cannot be read (No such file or directory)"),
        (("simplify", "nets"), "nets: is a folder; with --out-dir, its models are taken"),
        (("simplify", "x*.onnx"), "x*.onnx: no file matches this pattern"),
        (
            ("simplify", "nets/loop.onnx", "nets/deep/plain.onnx", "-o", "out.onnx"),
            "--output is for one model; --out-dir is for many",
        ),
        (
            ("simplify", "nets", "--out-dir", "out", "--json", "r.json"),
            "--json is for one model; --results is for many",
        ),
        (("simplify", "nets", "--out-dir", "out", "--shard", "3"), "the shard is '3', not I/N"),
        (
            ("simplify", "nets", "--out-dir", "out", "--engine", "ray"),
            "--engine is 'ray', not of the form dask://host:port",
        ),
    ],
)
def test_wrong_usage_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    code, said, errors = run(*arguments)
    assert (code, said) == (USAGE, "")
    assert errors.startswith(sentence)
    assert errors.count("\n") == 1


def test_a_name_that_is_neither_pipeline_nor_path() -> None:
    run("init")
    code, _, errors = run("run", "defualt")
    assert code == USAGE
    assert errors == "passes.toml: there is no pipeline 'defualt'; the nearest is default\n"


@pytest.mark.slow
def test_a_command_takes_many_models() -> None:
    many = ("nets", "--out-dir", "out", "--results", "rows.jsonl", *FAST)
    code, said, errors = run("simplify", *many, "-j", "2")
    assert (code, errors) == (DONE, "")
    assert "  written         1\n  unchanged       1\n" in said
    assert Path("out/loop.onnx").exists()
    assert Path("out/deep/plain.onnx").exists()
    code, _, errors = run("simplify", *many)
    assert code == FAILED
    assert "exists already (use --force to write over it)" in errors
    assert run("simplify", *many, "--force")[0] == DONE
    Path("list.txt").write_text("nets/loop.onnx\n")
    assert run("simplify", "--from-file", "list.txt", *FAST)[0] == DONE
    assert Path("nets/loop.simplified.onnx").exists()


def test_a_model_that_takes_too_long_is_a_row() -> None:
    code, said, errors = run("simplify", "nets/loop.onnx", "--time-limit", "0.001", *FAST)
    assert code == FAILED
    assert errors == "time: nets/loop.onnx: was ended after 0.001 seconds\n"
    assert "  time" in said
