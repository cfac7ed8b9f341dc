"""Profiles of targets: those that are shipped are well-formed, and errors name line and key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from passes.onnxruntime.releases import UnknownRelease
from passes.targets.profile import BadProfile, load, names, parsed

HEAD = 'name = "npu"\nsummary = "Some NPU"\n'


@pytest.mark.parametrize("name", names())
def test_a_shipped_profile(name: str) -> None:
    profile = load(name)
    assert profile.name == name
    assert profile.summary
    generic = not profile.operators
    assert generic or profile.sources, "each fact of a product has a source"
    assert not set(profile.refused) & set(profile.operators)


def test_the_targets_of_the_commands_have_profiles() -> None:
    assert {"no-control-flow", "loop-only", "scan-only", "static", "graph-capture"} <= {*names()}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            HEAD + "sequnces = false",
            "npu.toml:3: sequnces: there is no key 'sequnces'; the near",
        ),
        (HEAD + "sequences = 1", "npu.toml:3: sequences: is 1, not true or false"),
        ('name = "npu"', "npu.toml:1: has no 'summary'"),
        (
            HEAD + '[if]\nbranches = "equal"',
            "npu.toml:4: if.branches: is 'equal', not one of any, same rank, same shape",
        ),
        (
            HEAD + "[loop]\ntrip-count = ['never']",
            "npu.toml:4: loop.trip-count.0: is 'never', not one of constant, computed, absent",
        ),
        (
            HEAD + "[operators]\nAdd = {}\nMatMull = {}",
            "npu.toml:5: operators.MatMull: onnx has no such operator; the nearest are MatMul, ",
        ),
        (
            HEAD + "refused = ['NonZeroo']",
            "npu.toml:3: refused: 'NonZeroo': onnx has no such operator; the nearest are NonZero, ",
        ),
        (
            HEAD + "refused-types = ['flaot']",
            "npu.toml:3: refused-types: 'flaot': onnx has no such element type; the nearest are ",
        ),
        (
            HEAD + "[operators]\nAdd = {types = ['float', 'flot']}",
            "npu.toml:4: operators.Add.types: 'flot': onnx has no such element type; the nearest ",
        ),
        (
            HEAD + "[operators]\nAdd = {versions = [7]}",
            "npu.toml:4: operators.Add.versions.0: is 7, not a list",
        ),
        (HEAD + "[operators", "npu.toml: is no TOML: "),
    ],
)
def test_what_is_no_profile(text: str, sentence: str) -> None:
    with pytest.raises(BadProfile, match=f"^{re.escape(sentence)}"):
        parsed(text, "npu.toml")


def test_what_names_no_profile(tmp_path: Path) -> None:
    with pytest.raises(BadProfile, match="there is no target 'tract2'; the nearest are tract, "):
        load("tract2")
    with pytest.raises(BadProfile, match=r"none\.toml: cannot be read \(No such file"):
        load(str(tmp_path / "none.toml"))
    own = tmp_path / "npu.toml"
    own.write_text(HEAD)
    assert load(str(own)).name == "npu"


def test_a_release_of_onnxruntime() -> None:
    older, newest = load("onnxruntime==1.20"), load("onnxruntime")
    assert (older.name, older.version) == ("onnxruntime==1.20", "1.20")
    assert (older.opset.max, older.ir_version.max) == (21, 10)
    assert (newest.opset.max, newest.ir_version.max) == (28, 14)
    assert older.operators == newest.operators
    with pytest.raises(UnknownRelease, match=r"onnxruntime 1\.99 loads is unknown"):
        load("onnxruntime==1.99")
