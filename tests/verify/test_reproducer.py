"""The folder that shows a mismatch again."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper, parser
from typer.testing import CliRunner

from passes.__main__ import app
from passes.errors import MISMATCH
from passes.verify import reproducer
from passes.verify.compare.verdicts import Failure
from passes.verify.executor import Feeds, Outcome
from passes.verify.inputs.drawer import Case
from passes.verify.inputs.given import load
from passes.verify.reference import ReferenceExecutor
from passes.verify.reproducer import Circumstances
from tests.verification import verify


def model(body: str) -> ModelProto:
    header = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x, int64 k) => (float[N] y)'
    return parser.parse_model(f"{header} {{ {body} }}")


BEFORE, AFTER = model("y = Abs(x)"), model("y = Neg(x)")
FEEDS: Feeds = {"x": np.array([1, 2], np.float32), "k": np.array(1)}
EXPECTED = Outcome({"y": np.array([1, 2], np.float32)})


SEEN = Circumstances("python -m passes raise 'a b.onnx'", "main/loop_0", ["raise-loop"], True)
ACTUAL = Outcome({"y": np.array([-1, -2], np.float32)})


def failed(feeds: Feeds = FEEDS, expected: Outcome | None = EXPECTED) -> Failure:
    case = Case(feeds, "ordinary", True, "exact values")
    return Failure("reference", case, "y differs", expected, ACTUAL)


def save(folder: Path, expected: Outcome | None = EXPECTED) -> Path:
    failure = failed(expected=expected)
    return reproducer.save(folder, BEFORE, AFTER, failure, sentence="y differs", seen=SEEN)


def test_the_layout_is_that_of_the_onnx_backend_tests(tmp_path: Path) -> None:
    folder = save(tmp_path / "deep" / "case")
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == [
        *("README.txt", "after.onnx", "before.onnx"),
        "test_data_set_0/after_0.pb",
        *("test_data_set_0/input_0.pb", "test_data_set_0/input_1.pb"),
        "test_data_set_0/output_0.pb",
    ]
    output = TensorProto.FromString((folder / "test_data_set_0/output_0.pb").read_bytes())
    assert output.name == "y"
    np.testing.assert_array_equal(numpy_helper.to_array(output), [1, 2])


def test_the_readme_says_what_differs_and_how_to_see_it(tmp_path: Path) -> None:
    text = (save(tmp_path / "case") / "README.txt").read_text()
    assert text.startswith("y differs\n")
    again = "python -m passes verify before.onnx after.onnx --inputs test_data_set_0"
    assert f"{again} --executor reference --exact" in text
    for line in (
        "command    python -m passes raise 'a b.onnx'",
        f"in         {Path.cwd()}",
        "node       main/loop_0",
        "rule       raise-loop",
        "executor   reference",
        "case       exact values",
        f"versions   Python {platform.python_version()}, onnx {onnx.__version__}, onnxruntime ",
    ):
        assert f"\n{line}" in text


ZERO = "z = Constant <value_float = 0.0> ()"


@pytest.mark.parametrize(
    ("exact", "before", "after"),
    [(False, "y = Abs(x)", "y = Neg(x)"), (True, "y = Sub(x, x)", f"{ZERO} y = Mul(x, z)")],
)
def test_the_command_that_it_names_shows_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool, before: str, after: str
) -> None:
    """-0.0 for 0.0 is a mismatch where floats are to be equal bit for bit."""
    monkeypatch.chdir(tmp_path)
    sides = ("a.onnx", "b.onnx")
    for name, body in zip(sides, (before, after), strict=True):
        onnx.save(model(body), name)
    if exact:
        assert CliRunner().invoke(app, ["verify", *sides, "--executor", "reference"]).exit_code == 0
    options = ["--exact"] if exact else []
    first = CliRunner().invoke(app, ["verify", *sides, "--executor", "reference", *options])
    assert first.exit_code == MISMATCH, first.output
    folder = tmp_path / "b.onnx.reproducer"
    command = (folder / "README.txt").read_text().splitlines()[-1].split()
    assert ("--exact" in command) == exact
    monkeypatch.chdir(folder)
    again = CliRunner().invoke(app, command[3:])
    assert again.exit_code == MISMATCH, again.output
    assert "given inputs 0" in again.output


def test_what_was_saved_shows_the_mismatch_again(tmp_path: Path) -> None:
    found = verify(BEFORE, AFTER, executors=[ReferenceExecutor()])
    assert found.failure is not None
    folder = reproducer.save(
        tmp_path / "case", BEFORE, AFTER, found.failure, sentence=found.reason, seen=SEEN
    )
    before, after = onnx.load(folder / "before.onnx"), onnx.load(folder / "after.onnx")
    given = load(folder / reproducer.DATA_SET, before)
    again = verify(before, after, executors=[ReferenceExecutor()], given=[given], most=1)
    assert again.verdict == "mismatch"
    assert again.failure is not None
    assert again.failure.sentence == found.failure.sentence


def test_where_the_original_fails_there_are_no_outputs(tmp_path: Path) -> None:
    folder = save(tmp_path / "case", expected=None)
    assert not list(folder.rglob("output_*.pb"))
    assert "none: it does not answer" in (folder / "README.txt").read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folders = [save(tmp_path / "case") for _ in range(3)]
    assert [folder.name for folder in folders] == ["case", "case-2", "case-3"]
    assert all((folder / "before.onnx").is_file() for folder in folders)


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    feeds = {"x": np.array([1], np.float32), "k": None}
    with pytest.raises(ValueError, match="k has no value"):
        reproducer.save(tmp_path / "case", BEFORE, AFTER, failed(feeds), sentence="", seen=SEEN)
    assert list(tmp_path.iterdir()) == []


def test_external_data_is_taken_along(tmp_path: Path) -> None:
    text = "g (float[64] x) => (float[64] y) { y = Add(x, w) }"
    weighted = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    weights = np.arange(64, dtype=np.float32)
    weighted.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    source = tmp_path / "source"
    source.mkdir()
    path = source / "m.onnx"
    onnx.save(weighted, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    by_reference = onnx.load(path, load_external_data=False)
    folder = reproducer.save(
        tmp_path / "case",
        by_reference,
        by_reference,
        failed({"x": weights}, None),
        sentence="",
        seen=SEEN,
        base_dir=source,
    )
    saved = onnx.load(folder / "before.onnx")
    np.testing.assert_array_equal(numpy_helper.to_array(saved.graph.initializer[0]), weights)
    assert by_reference.graph.initializer[0].data_location == TensorProto.EXTERNAL
