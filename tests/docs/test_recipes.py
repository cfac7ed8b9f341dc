"""The recipes of the page about repositories do what they say, in the tools that are installed.

So do the hook of pre-commit and the action of GitHub, which are at the top of this repository.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest

from passes.errors import DONE, NOT_PRODUCED, USAGE
from tests.called import called
from tests.docs.test_pages import BLOCK, DOCS

ROOT = DOCS.parent
PAGE = DOCS / "tasks/repository.md"
FILES = {block["title"]: block["body"] for block in BLOCK.finditer(PAGE.read_text())}
yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the page; `passes` is a command."""
    for title, body in FILES.items():
        if title:
            (tmp_path / title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / title).write_text(body)
    program = tmp_path / "installed/passes/bin/passes"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m passes "$@"\n')
    program.chmod(0o755)
    (program.parent / "python").symlink_to(sys.executable)
    # a link to the Python of an environment does not find the packages of it
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([f"{ROOT}", *sys.path]))
    monkeypatch.setenv("PATH", os.pathsep.join([f"{program.parent}", os.environ["PATH"]]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, **(env or {})}
    return subprocess.run(
        words, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )


def is_plain(path: str) -> bool:
    return "Loop" not in {node.op_type for node in onnx.load(path).graph.node}


def tool(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


@pytest.mark.slow
@tool("make")
def test_make_builds_what_is_newer(repository: Path) -> None:
    assert run("make").returncode == 0
    assert is_plain("build/sums.onnx")
    assert "Nothing to be done" in run("make").stdout
    os.utime("models/sums.onnxtxt", (2**31, 2**31))
    assert "passes optimize models/sums.onnxtxt" in run("make").stdout


@pytest.mark.slow
@tool("dvc")
@tool("git")
def test_dvc_reproduces_stages(repository: Path) -> None:
    run("git", "init", "-q")
    run("dvc", "init", "-q")
    done = run("dvc", "repro")
    assert done.returncode == 0, done.stdout
    assert is_plain("build/sums.onnx")
    assert json.loads(Path("build/sums.json").read_text())["end"] == "written"
    assert "didn't change, skipping" in run("dvc", "repro").stdout


@pytest.mark.slow
@tool("tox")
def test_tox_checks_models(repository: Path) -> None:
    """The package itself is not installed from the index, but taken from here."""
    paths = os.environ["PYTHONPATH"]
    own = [
        "env.models.deps=",
        "env.models.allowlist_externals=passes",
        f"env.models.set_env=PYTHONPATH={paths}",
    ]
    done = run("tox", *(word for one in own for word in ("-x", one)))
    assert done.returncode == 0, done.stdout
    assert "models/sums.onnxtxt: fits loop-only" in done.stdout


@pytest.mark.slow
def test_bazel_runs_a_command_that_builds(repository: Path) -> None:
    """A build file is Python as far as it is needed here; the variables are those of a genrule."""
    rules: list[dict[str, Any]] = []

    def rule(**attributes: Any) -> None:
        rules.append(attributes)

    def found(patterns: list[str]) -> list[str]:
        return [f"{path}" for pattern in patterns for path in sorted(Path().glob(pattern))]

    names: dict[str, Callable[..., Any]] = {
        "load": lambda *_: None,
        "glob": found,
        "genrule": rule,
        "py_console_script_binary": rule,
    }
    exec(compile(FILES["BUILD.bazel"], "BUILD.bazel", "exec"), dict(names))
    program, made = rules
    assert program == {"name": "passes", "pkg": "@pypi//onnx_passes"}
    assert (made["name"], made["outs"], made["tools"]) == ("sums", ["build/sums.onnx"], [":passes"])
    Path("build").mkdir()  # Bazel makes it
    command = made["cmd"].replace("$(execpath :passes)", "passes")
    command = command.replace("$<", made["srcs"][0]).replace("$@", made["outs"][0])
    assert run("sh", "-c", command).returncode == 0
    assert is_plain("build/sums.onnx")


def test_the_hook_of_pre_commit(repository: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    (named,) = yaml.safe_load(FILES[".pre-commit-config.yaml"])["repos"][0]["hooks"]
    assert named["id"] == hook["id"]
    taken = [
        name
        for name in ("a.onnx", "deep/b.onnxtxt", "a.onnx.data", "a.py")
        if re.search(hook["files"], name)
    ]
    assert taken == ["a.onnx", "deep/b.onnxtxt"]
    program, *words = hook["entry"].split()
    assert program == "passes"
    assert called(*words, *hook["args"], "models/sums.onnxtxt").returncode == DONE
    assert called(*words, *named["args"], "models/sums.onnxtxt").returncode == NOT_PRODUCED


def action(step: str = "passes", **inputs: str) -> tuple[int, str, str]:
    """What the last step of the action does: its exit code, what it prints, and the summary."""
    made = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {name: one["default"] for name, one in made["inputs"].items()}
    assert set(inputs) <= set(given)
    (running,) = [one for one in made["runs"]["steps"] if one.get("id") == step]
    files = {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output.txt"}
    for file in files.values():
        Path(file).write_text("")
    env = {
        name: re.sub(r"\$\{\{ inputs\.(\S+) \}\}", lambda one: {**given, **inputs}[one[1]], text)
        for name, text in running["env"].items()
    }
    # as the runner calls `shell: bash`
    Path("step.sh").write_text(running["run"])
    bash = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "step.sh")
    done = run(*bash, env={**env, **files, "RUNNER_TEMP": f"{Path.cwd() / 'installed'}"})
    assert Path("output.txt").read_text() in (f"exit-code={done.returncode}\n", "")
    return done.returncode, done.stdout, Path("summary.md").read_text()


@tool("bash")
def test_the_action_annotates_and_sums_up(repository: Path) -> None:
    shutil.copy("models/sums.onnxtxt", "models/two words $(touch x).onnxtxt")
    code, said, summary = action(
        models="models\n", target="no-control-flow", options="--max-trips '5'"
    )
    assert code == NOT_PRODUCED
    assert "::error file=models/sums.onnxtxt,title=models/sums.onnxtxt::" in said
    assert "| does not fit | 2 |" in summary
    assert not Path("x").exists()


@pytest.mark.slow
@tool("bash")
def test_the_action_runs_other_commands(repository: Path) -> None:
    fits = action(models="models/*.onnxtxt\n\n", target="loop-only")
    assert (fits[0], "| fits | 1 |" in fits[2]) == (DONE, True)
    assert action(models="models", target="; touch x")[0] == USAGE
    code, said, _ = action(models="models", options="'")
    assert (code, "No closing quotation" in said) == (1, True)
    Path("passes.toml").write_text('models = ["models"]\n[pipelines]\ndefault = ["simplify"]\n')
    code, _, summary = action(command="run", options="--no-cache")
    assert (code, "| outcome | models |" in summary) == (DONE, True)
    assert not Path("x").exists()


def test_the_inputs_of_the_action_are_documented() -> None:
    made = yaml.safe_load((ROOT / "action.yml").read_text())
    table = re.findall(r"^\| `([\w-]+)` \|.*\| (?:`(.+)`)?.*\|$", PAGE.read_text(), re.MULTILINE)
    defaults = {name: one["default"] for name, one in made["inputs"].items()}
    assert [name for name, _ in table] == [*defaults]
    assert all(default == (defaults[name] or default) for name, default in table)
    workflow = yaml.safe_load(FILES[".github/workflows/models.yml"])
    (used,) = [one for one in workflow["jobs"]["check"]["steps"] if "passes" in one["uses"]]
    assert set(used["with"]) <= set(defaults)
    assert not [one for one in made["runs"]["steps"] if "${{" in one.get("run", "")]
