"""The folder that shows a mismatch again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper, parser

from passes.verify import reproducer
from passes.verify.executor import Feeds, Outcome
from passes.verify.given_inputs import load
from passes.verify.reference import ReferenceExecutor
from passes.verify.verification import verify


def model(body: str) -> ModelProto:
    header = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x, int64 k) => (float[N] y)'
    return parser.parse_model(f"{header} {{ {body} }}")


BEFORE, AFTER = model("y = Abs(x)"), model("y = Neg(x)")
FEEDS: Feeds = {"x": np.array([1, 2], np.float32), "k": np.array(1)}
EXPECTED = Outcome({"y": np.array([1, 2], np.float32)})


def save(folder: Path, expected: Outcome | None = EXPECTED) -> Path:
    return reproducer.save(folder, BEFORE, AFTER, FEEDS, sentence="y differs", expected=expected)


def test_the_layout_is_that_of_the_onnx_backend_tests(tmp_path: Path) -> None:
    folder = save(tmp_path / "deep" / "case")
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert files == [
        *("README.txt", "after.onnx", "before.onnx"),
        *("test_data_set_0/input_0.pb", "test_data_set_0/input_1.pb"),
        "test_data_set_0/output_0.pb",
    ]
    output = TensorProto.FromString((folder / "test_data_set_0/output_0.pb").read_bytes())
    assert output.name == "y"
    np.testing.assert_array_equal(numpy_helper.to_array(output), [1, 2])


def test_the_readme_says_what_differs_and_how_to_see_it(tmp_path: Path) -> None:
    text = (save(tmp_path / "case") / "README.txt").read_text()
    assert text.startswith("y differs\n")
    assert "python -m passes verify before.onnx after.onnx --inputs test_data_set_0" in text


def test_what_was_saved_shows_the_mismatch_again(tmp_path: Path) -> None:
    found = verify(BEFORE, AFTER, executors=[ReferenceExecutor()])
    assert found.failure is not None
    folder = reproducer.save(
        tmp_path / "case",
        BEFORE,
        AFTER,
        found.failure.case.feeds,
        sentence=found.reason,
        expected=found.failure.expected,
    )
    before, after = onnx.load(folder / "before.onnx"), onnx.load(folder / "after.onnx")
    given = load(folder / reproducer.DATA_SET, before)
    again = verify(before, after, executors=[ReferenceExecutor()], given=[given], max_cases=1)
    assert again.verdict == "mismatch"
    assert again.failure is not None
    assert again.failure.sentence == found.failure.sentence


def test_where_the_original_fails_there_are_no_outputs(tmp_path: Path) -> None:
    folder = save(tmp_path / "case", expected=None)
    assert not list(folder.rglob("output_*.pb"))
    assert "none: it fails" in (folder / "README.txt").read_text()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folders = [save(tmp_path / "case") for _ in range(3)]
    assert [folder.name for folder in folders] == ["case", "case-2", "case-3"]
    assert all((folder / "before.onnx").is_file() for folder in folders)


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    feeds = {"x": np.array([1], np.float32), "k": None}
    with pytest.raises(ValueError, match="k has no value"):
        reproducer.save(tmp_path / "case", BEFORE, AFTER, feeds, sentence="")
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
    feeds = {"x": weights}
    folder = reproducer.save(
        tmp_path / "case", by_reference, by_reference, feeds, sentence="", base_dir=source
    )
    saved = onnx.load(folder / "before.onnx")
    np.testing.assert_array_equal(numpy_helper.to_array(saved.graph.initializer[0]), weights)
    assert by_reference.graph.initializer[0].data_location == TensorProto.EXTERNAL
