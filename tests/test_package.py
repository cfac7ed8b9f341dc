"""What is installed: the package with all of its parts; and the names that users may import."""

from __future__ import annotations

import inspect
import os
import pickle
import re
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType

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
PUBLIC = Path(__file__).with_name("public_api.txt")


def test_the_public_names_and_signatures(request: pytest.FixtureRequest) -> None:
    assert sorted(passes.__all__) == sorted(dir(passes))
    listed = "\n".join(line for name in passes.__all__ for line in described(name)) + "\n"
    if request.config.getoption("--update-golden"):
        PUBLIC.write_text(listed)
    assert listed == PUBLIC.read_text()
    with pytest.raises(AttributeError, match="has no attribute 'upgrde'"):
        passes.upgrde  # noqa: B018


def described(name: str) -> Iterator[str]:
    """The lines of the list about a public name: how it is called, and the members of a class."""
    public = getattr(passes, name)
    if not isinstance(public, type):
        yield from called(f"passes.{name}", public) if callable(public) else [f"passes.{name}"]
        return
    bases = ", ".join(base.__name__ for base in public.__bases__ if base is not object)
    yield f"class passes.{name}({bases})" if bases else f"class passes.{name}"
    own = [cls for cls in public.__mro__ if cls.__module__.startswith("passes.")]
    if any("__init__" in vars(cls) for cls in own):
        yield from called("    __init__", public)
    fields = {field for cls in own for field in inspect.get_annotations(cls)}
    for member in sorted({key for cls in own for key in vars(cls)} - fields):
        if not member.startswith("_"):
            found = inspect.getattr_static(public, member)
            is_method = isinstance(found, FunctionType | classmethod | staticmethod)
            line = f"    {member}"
            yield from called(line, getattr(public, member)) if is_method else [line]


def called(name: str, function: Callable[..., object]) -> list[str]:
    """The signature of a function on lines that fit a page, without addresses of defaults."""
    signature = re.sub(r" at 0x\w+", "", f"{inspect.signature(function)}")
    further = " " * (len(name) - len(name.lstrip()) + 8)
    return textwrap.wrap(f"{name}{signature}", 100, subsequent_indent=further)


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
    found = ["passes"]
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
