"""What is installed: the package with all of its parts; and the names that users may import."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

import passes
from passes.commands.rewriting import Unroll
from passes.testing import as_model

ROOT = Path(__file__).parent.parent
MODEL = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) { y = Neg (x) }
"""
#: Who changes this changes what users may rely on: CHANGELOG.md says so.
PUBLIC = [
    *("BadModel", "BrokenRule", "DEFAULT_OPSET", "Edit", "Inspection", "Mismatch", "NotProduced"),
    *("NotVerified", "NothingToDo", "PassesError", "Pipeline", "Proof", "Refused", "Report"),
    *("Result", "Site", "bisect", "cast", "check_target", "close", "compare", "convert", "expand"),
    *("hoist", "inspect", "known_operators", "lower", "lowest_opset"),
    *("optimize", "prove", "raise_", "register", "reroll", "run", "simplify", "stream", "unroll"),
    "upgrade",
]


def test_the_public_names() -> None:
    assert sorted(passes.__all__) == sorted(dir(passes)) == PUBLIC
    for name in PUBLIC:
        assert getattr(passes, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'upgrde'"):
        passes.upgrde  # noqa: B018


def test_a_model_is_a_path_bytes_a_proto_or_a_result(tmp_path: Path) -> None:
    model = as_model(MODEL)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    results = [passes.upgrade(one) for one in (model, path, str(path), path.read_bytes())]
    results.append(passes.upgrade(results[0]))
    assert all(result.model == model for result in results)
    assert results[1].save(tmp_path / "new.onnx").read_bytes() == path.read_bytes()
    assert passes.lowest_opset(results[0]).lowest == 7
    assert passes.inspect(results[0]).nodes == 1
    with pytest.raises(passes.BadModel, match="is no ONNX model"):
        passes.upgrade(b"none")


def test_results_and_options_pickle() -> None:
    result = passes.Pipeline(["simplify", Unroll(max_nodes=3)]).run(as_model(MODEL))
    assert pickle.loads(pickle.dumps(result)).report == result.report
    assert pickle.loads(pickle.dumps(passes.Pipeline([Unroll(factor=2)]))) == passes.Pipeline(
        [("unroll", {"factor": 2})]
    )


def test_a_command_imports_what_it_needs() -> None:
    """No prover, no executor, no rule of another command, no interface."""
    code = (
        "import sys, passes; passes.upgrade(sys.stdin.buffer.read(), verify=False); "
        "print(*(name for name in sys.modules if name.startswith('passes.')))"
    )
    given = as_model(MODEL).SerializeToString()
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, check=True
    )
    names = done.stdout.decode().split()
    assert len(names) <= 250
    parts = ("proving.prover", "verify.reference", "rules.unroll", "streaming", "cli", "builds")
    assert not [name for name in names for part in parts if name.startswith(f"passes.{part}")]


def test_every_package_is_installed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = ["passes", "passes.docs"]
    for folder, name in (("passes", "passes"), ("converters", "passes.converters")):
        for path in (ROOT / folder).rglob("__init__.py"):
            parts = path.relative_to(ROOT / folder).parent.parts
            found.append(".".join([name, *parts]))
    assert listed == sorted(set(found))


@pytest.mark.slow
def test_the_wheel_beside_another_package_called_converters(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*build, str(tmp_path), str(ROOT)], check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {
        "passes",
        "onnx_passes-0.1.0.dist-info",
    }
    for part in (
        "converters/opset.py",
        "builds/config.schema.json",
        "operators/types.json",
        "commands/loop_parts.md",
    ):
        assert f"passes/{part}" in names
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv/bin/python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, timeout=300)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    # what it depends on is here; of this folder's own `.pth` files, none is read from there
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    (packages / "converters").mkdir()
    (packages / "converters/__init__.py").write_text("OWNER = 'somebody else'\n")
    code = (
        "import converters, passes.converters.opset, passes; "
        "assert converters.OWNER == 'somebody else'; "
        f"assert passes.__file__.startswith({str(packages)!r}), passes.__file__; "
        "print(sorted(passes.upgrade(open('m.onnx', 'rb').read()).report.opsets))"
    )
    (tmp_path / "m.onnx").write_bytes(as_model(MODEL).SerializeToString())
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-c", code], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("[21, 21]\n", "")
