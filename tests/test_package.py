"""What is installed: the package with all of its parts; and the names that users may import."""

from __future__ import annotations

import inspect
import os
import pickle
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
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
#: An environment in which this folder is not found.
CLEAN = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


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
    found = ["passes", "passes.docs"]
    for folder, name in (("passes", "passes"), ("converters", "passes.converters")):
        for path in (ROOT / folder).rglob("__init__.py"):
            parts = path.relative_to(ROOT / folder).parent.parts
            found.append(".".join([name, *parts]))
    assert listed == sorted(set(found))


def test_the_metadata_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited = dict(
        line.split(": ", 1)
        for line in (ROOT / "CITATION.cff").read_text().splitlines()
        if line.count(": ") and not line.startswith(" ")
    )
    assert cited["version"] == project["version"] == passes.__version__
    assert cited["license"] == project["license"]
    assert cited["url"] == project["urls"]["Homepage"]
    assert cited["repository-code"] == project["urls"]["Source"]
    pythons = [f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)]
    assert set(pythons) <= set(project["classifiers"])


@pytest.mark.slow
def test_a_wheel_of_the_source_distribution_beside_a_package_called_converters(
    tmp_path: Path,
) -> None:
    """All that a user does works without the repository, in another folder."""
    python, sources = installed(tmp_path)
    (packages,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (packages / "converters").mkdir()
    (packages / "converters/__init__.py").write_text("OWNER = 'somebody else'\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "m.onnx").write_bytes((sources / "golden_models/binary/gru.onnx").read_bytes())
    clean = {**CLEAN, "XDG_CACHE_HOME": f"{tmp_path / 'cache'}"}

    def run(*words: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            [python, *words], cwd=folder, env=clean, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    where = "import converters, passes; print(converters.OWNER, passes.__file__)"
    assert run("-c", where) == f"somebody else {packages / 'passes/__init__.py'}\n"
    quick = ("--executor", "reference", "--verify-budget", "5")
    command = ("-m", "passes")
    run(*command, "upgrade", "m.onnx", "-o", "up.onnx", *quick)
    run(*command, "optimize", "up.onnx", "-o", "fast.onnx", "--html", "page.html", *quick)
    run(*command, "cast", "up.onnx", "--to", "float16", "-o", "half.onnx", *quick)
    run(*command, "check", "m.onnx", "--target", "tract", code=3)
    run(*command, "check", "up.onnx", "fast.onnx", "--target", "onnxruntime")
    run(*command, "init")
    assert "  written " in run(*command, "run")
    rules = wheel_of(sources / "docs/examples/loop-rules", tmp_path / "rules")
    run("-m", "pip", "install", "--quiet", "--no-deps", rules)
    assert "fuse-scans" in run(*command, "list")


def installed(folder: Path) -> tuple[Path, Path]:
    """A new environment's Python with the wheel of the source distribution, and that, unpacked."""
    build = "from setuptools.build_meta import build_sdist; import sys; build_sdist(sys.argv[1])"
    shutil.copytree(ROOT, folder / "tree", ignore=shutil.ignore_patterns(".*", "site", "build"))
    subprocess.run(
        [sys.executable, "-c", build, folder], cwd=folder / "tree", env=CLEAN, check=True
    )
    shutil.rmtree(folder / "tree")
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    sources = folder / archive.name.removesuffix(".tar.gz")
    for name in ("CITATION.cff", "LICENSE", "tests/test_package.py", "docs/index.md"):
        assert (sources / name).exists()
    wheel = wheel_of(sources, folder / "wheel")
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"passes", f"onnx_passes-{passes.__version__}.dist-info"}
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", wheel]
    subprocess.run(install, cwd=folder, env=CLEAN, check=True)
    (packages,) = (folder / "venv").glob("lib/python*/site-packages")
    # what it depends on is here; of this folder's own `.pth` files, none is read from there
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return python, sources


def wheel_of(sources: Path, folder: Path) -> Path:
    """The wheel of a distribution, built by what is installed here."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", folder, sources], cwd=sources, env=CLEAN, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
