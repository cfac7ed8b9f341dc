"""The file that describes a build: what it sets, and what is wrong with it, by line and key."""

from __future__ import annotations

import json
import os
import re
from importlib import resources
from pathlib import Path

import pytest

from passes.builds import config
from passes.builds.config import BadConfig
from passes.builds.pool import Limits
from passes.commands.building import example
from passes.commands.rewriting import Optimize, Simplify, Upgrade
from passes.errors import End

FULL = """\
models = ["models/**/*.onnx"]
output = "build/{folder}/{stem}.opset{opset}.onnx"
pipeline = "fast"
jobs = 3
fail-on = ["mismatch", "died"]
results = "build/results.jsonl"
dims = {batch = 4}
assume = ["non-empty"]
time-limit = 90
memory-limit = 2048

[pipelines]
fast = ["upgrade", {command = "optimize", target = "loop-only", max-nodes = 5000}]
small = ["simplify"]

[verify]
budget = 20
seed = 7
inputs = "inputs.npz"
require-proof = "all"
prove-budget = 5

[[overrides]]
models = ["models/large/*"]
pipeline = "small"
dims = {T = 16}
time-limit = 900
verify = {enabled = false}

[[overrides]]
models = ["models/large/broken.onnx"]
skip = true
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "passes.toml") -> Path:
    Path(name).write_text(text)
    return Path(name)


def test_all_that_a_build_says(folder: Path) -> None:
    file = config.load(write(FULL))
    assert file.build.jobs == 3
    assert file.failing == (End.MISMATCH, End.DIED)
    made = file.task("models/a/m.onnx", f"{folder}/models", None)
    assert made is not None
    task, limits = made
    assert limits == Limits(90, 2048 << 20)
    assert task.output == os.path.normpath("build/a/m.opset{opset}.onnx")
    assert task.pipeline.dims == {"batch": 4}
    said = {
        "verify_budget": 20.0,
        "seed": 7,
        "inputs": "inputs.npz",
        "assume": ("non-empty",),
        "require_proof": "all",
        "prove_budget": 5.0,
    }
    assert task.pipeline.commands == (
        Upgrade(**said),
        Optimize(target="loop-only", max_nodes=5000, **said),
    )


def test_a_profile_is_found_beside_the_file(folder: Path) -> None:
    (folder / "ci").mkdir()
    profile = write('name = "npu"\nsummary = "Some NPU"\n', "ci/npu.toml")
    text = '[pipelines]\nnpu = [{command = "optimize", target = "npu.toml"}]\n'
    file = config.load(write(text, "ci/passes.toml"))
    made = file.task("m.onnx", f"{folder}", None)
    assert made is not None
    assert made[0].pipeline.commands == (Optimize(target=str(profile)),)


def test_overrides_of_some_models(folder: Path) -> None:
    file = config.load(write(FULL))
    made = file.task("models/large/m.onnx", f"{folder}/models", None)
    assert made is not None
    task, limits = made
    assert limits == Limits(900, 2048 << 20)
    assert task.pipeline.dims == {"batch": 4, "T": 16}
    (command,) = task.pipeline.commands
    assert isinstance(command, Simplify)
    assert not command.verify
    assert file.task("models/large/broken.onnx", f"{folder}/models", None) is None
    named = file.task("models/a/m.onnx", f"{folder}/models", "small")
    assert named is not None
    assert len(named[0].pipeline.commands) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("jbos = 2", "passes.toml:1: jbos: there is no option 'jbos'; the nearest are jobs, "),
        ("\njobs = '2'", "passes.toml:2: jobs is '2', not a whole number"),
        ("jobs = 0", "passes.toml:1: jobs is 0, it must be 1 or more"),
        ("fail-on = ['lost']", "passes.toml:1: fail-on is ['lost'], not among written, unchanged"),
        ("models = 'm.onnx'", "passes.toml:1: models is 'm.onnx', not a list of strings"),
        (
            "[pipelines]\na = ['upgrade', \n  # max-nodse\n  {command = 'unroll', max-nodse = 3}]",
            "passes.toml:4: pipelines.a.1.max-nodse: there is no option 'max-nodse'; the near",
        ),
        (
            "[pipelines]\nfast = ['upgrde']",
            "passes.toml:2: pipelines.fast.0: there is no command 'upgrde'; the nearest are upgr",
        ),
        ("[pipelines]\nfast = []", "passes.toml:2: pipelines.fast: is no list of commands"),
        ("[pipelines]\na = [{opset = 9}]", "passes.toml:2: pipelines.a.0: names no command"),
        (
            "[pipelines]\na = [{command = 'unroll', factor = 2, peel = 'last'}]",
            "passes.toml:2: pipelines.a.0: factor and peel do not go together",
        ),
        (
            "[verify]\nbudget = 3\nexecutor = 'tarct'",
            "passes.toml:3: verify.executor is 'tarct', not an executor; the nearest are tract, ",
        ),
        (
            "pipeline = 'fsat'\n[pipelines]\nfast = ['upgrade']",
            "passes.toml:1: pipeline: there is no pipeline 'fsat'; the nearest is fast",
        ),
        (
            "[[overrides]]\nmodels = ['a']\n[[overrides]]\nmodels = ['b']\nskp = true",
            "passes.toml:5: overrides.1.skp: there is no option 'skp'; the nearest are skip, ",
        ),
        ("[[overrides]]\nskip = true", "passes.toml:1: overrides.0: names no models"),
        ("overrides = 3", "passes.toml:1: overrides: is no list of tables"),
        ("pipelines = 3", "passes.toml:1: pipelines: is no table of pipelines"),
        ("verify = 3", "passes.toml:1: verify: is no table"),
        ("jobs = ", "passes.toml: is no TOML: "),
    ],
)
def test_what_is_wrong_is_named_by_line_and_key(folder: Path, text: str, sentence: str) -> None:
    with pytest.raises(BadConfig, match=f"^{re.escape(sentence)}"):
        config.load(write(text))


def test_a_file_that_is_not_there(folder: Path) -> None:
    with pytest.raises(BadConfig, match=r"^no\.toml: cannot be read \(No such file or directory\)"):
        config.load(Path("no.toml"))


def test_the_table_of_a_project(folder: Path) -> None:
    write("[project]\nname = 'x'\n[tool.passes]\njobs = 2\njbos = 3\n", "pyproject.toml")
    assert config.find(folder) == Path("pyproject.toml")
    with pytest.raises(BadConfig, match=r"^pyproject\.toml:5: jbos: there is no option 'jbos'"):
        config.load(Path("pyproject.toml"))
    write("", "passes.toml")
    assert config.find(folder) == Path("passes.toml")
    (folder / "below").mkdir()
    assert config.find(folder / "below") == Path("../passes.toml")


def test_several_pipelines_of_which_none_is_named(folder: Path) -> None:
    file = config.load(write("[pipelines]\na = ['upgrade']\nb = ['lower']"))
    with pytest.raises(BadConfig, match="pipelines: the key `pipeline` names none of a, b"):
        file.task("m.onnx", str(folder), None)
    with pytest.raises(BadConfig, match="there is no pipeline 'c'; the nearest are "):
        file.task("m.onnx", str(folder), "c")


def test_the_example_is_a_build(folder: Path) -> None:
    file = config.load(write(example([Path("nets/a/x.onnx"), Path("y.onnx")])))
    assert file.build.models == ("*.onnx", "nets/**/*.onnx")
    assert list(file.pipelines) == ["default"]
    uncommented = re.sub(r"(?m)^# (?=[a-z-]+ = |\[\[|  \{|\])", "", example([]))
    config.load(write(uncommented))


def test_the_example_names_any_folder_but_those_of_mismatches(folder: Path) -> None:
    names = ['my "nets"', "nets [1]", "m.onnx.reproducer", "m.onnx.reproducer-2"]
    file = config.load(write(example([Path(name, "x.onnx") for name in names])))
    assert file.build.models == ('my "nets"/**/*.onnx', "nets [[]1]/**/*.onnx")


def test_the_schema_is_shipped_and_up_to_date() -> None:
    """Made anew by `python -m passes.builds.schemas`."""
    from passes.builds.schemas import schemas

    for name, made in schemas().items():
        shipped = (resources.files("passes.builds") / name).read_text()
        assert json.loads(shipped) == made, name
