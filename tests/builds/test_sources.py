"""Finding the models of a build, and where their outcomes are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from passes.builds.sources import (
    NoModels,
    SameOutput,
    found,
    listed,
    output_of,
    refuse_equal,
    shard,
)
from passes.errors import WrongUsage


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.onnx", "nets/b.onnx", "nets/deep/c.onnxtxt", "nets/notes.txt", "nets/[d].onnx"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "empty").mkdir()


def test_files_folders_and_patterns_each_once() -> None:
    assert found(["a.onnx", "nets", "*.onnx"]) == [
        *("a.onnx", "nets/[d].onnx", "nets/b.onnx", "nets/deep/c.onnxtxt")
    ]
    assert found(["**/*.onnxtxt"]) == ["nets/deep/c.onnxtxt"]
    assert found(["nets/[d].onnx"]) == ["nets/[d].onnx"], "it is a name before it is a pattern"
    assert found(["b.onnx"], Path("nets")) == ["nets/b.onnx"]
    assert found(["none.onnx"]) == ["none.onnx"], "reading it says what is wrong"


@pytest.mark.parametrize(
    ("patterns", "sentence"),
    [
        (["x*.onnx"], "x*.onnx: no file matches this pattern"),
        (["empty"], "empty: the folder holds no .onnx or .onnxtxt file"),
        (["a.onnx", "none.onnx"], "none.onnx: there is no such file"),
    ],
)
def test_what_names_nothing(patterns: list[str], sentence: str) -> None:
    with pytest.raises(NoModels, match=f"^{re.escape(sentence)}$"):
        found(patterns)


def test_a_list_in_a_file() -> None:
    Path("list.txt").write_text("# models\na.onnx\n\n  nets/b.onnx \n")
    assert listed(Path("list.txt")) == ["a.onnx", "nets/b.onnx"]
    Path("list.txt").write_text("# none\n")
    with pytest.raises(NoModels, match=r"list\.txt: names no model"):
        listed(Path("list.txt"))
    with pytest.raises(NoModels, match=r"no\.txt: cannot be read"):
        listed(Path("no.txt"))


def test_shards_are_disjoint_and_complete() -> None:
    models = [f"{number}.onnx" for number in range(10)]
    parts = [shard(models, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(model for part in parts for model in part) == models
    assert [len(part) for part in parts] == [4, 3, 3]
    for wrong in ("0/3", "4/3", "3", "a/b", "-1/3"):
        with pytest.raises(WrongUsage, match="not I/N with I from 1 to N"):
            shard(models, wrong)


def test_outputs_by_template() -> None:
    folder = str(Path("nets").resolve())
    output = output_of("out/{folder}/{stem}.opset{opset}{suffix}", "nets/deep/c.onnxtxt", folder)
    assert output == "out/deep/c.opset{opset}.onnxtxt"
    assert output_of("out/{folder}/{name}", "nets/b.onnx", folder) == "out/b.onnx"
    with pytest.raises(WrongUsage, match=re.escape("'{stme}' has another field than {stem}, ")):
        output_of("{stme}", "a.onnx", folder)


def test_two_models_with_one_output() -> None:
    sentence = "a.onnx and nets/b.onnx would both be written to ./o.onnx"
    with pytest.raises(SameOutput, match=f"^{re.escape(sentence)}$"):
        refuse_equal([("a.onnx", "o.onnx"), ("nets/b.onnx", "./o.onnx")])
