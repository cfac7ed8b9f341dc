"""`measure`: models in the runtimes, side by side; no test depends on how long anything takes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from passes.errors import DONE, NOT_PRODUCED, USAGE
from passes.verify.runtimes.worker import _timed
from tests.cli.test_checking import run
from tests.written import changed

SUM = """<ir_version: 10, opset_import: ["" : 21]>
g (float[B,2] h, float[T,B,2] x) => (float[B,2] y) {
    y = Scan <num_scan_inputs = 1, body = b (float[B,2] s, float[B,2] e) => (float[B,2] t) {
        t = Add (s, e) }> (h, x) }"""
FEW = ("--budget", "0.05", "--runtime", "onnxruntime")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(onnx.parser.parse_model(SUM), "sum.onnx")


def test_models_are_measured_at_the_given_sizes() -> None:
    pytest.importorskip("onnxruntime")
    arguments = ("--dim", "T=3,5", "--json", "m.json", "--html", "m.html")
    code, said, errors = run("measure", "sum.onnx", "sum.onnx", *FEW, *arguments)
    assert (code, errors) == (DONE, "")
    assert said.splitlines()[-1].endswith("x)")
    rows = json.loads(Path("m.json").read_text())["rows"]
    assert [row["sizes"] for row in rows] == [{"B": 1, "T": 3}, {"B": 1, "T": 5}]
    assert [row["iterations"] for row in rows] == [3, 5]
    assert all(one["calls"] and not one["failure"] for row in rows for one in row["timings"])
    assert "<polyline" in Path("m.html").read_text()


def test_the_trip_count_of_a_loop_is_measured_at_several_lengths() -> None:
    pytest.importorskip("onnxruntime")
    assert run("measure", "sum.onnx", *FEW, "--json", "m.json")[0] == DONE
    sizes = [row["sizes"] for row in json.loads(Path("m.json").read_text())["rows"]]
    assert [size["T"] for size in sizes] == [16, 64, 256, 1024]
    assert {size["B"] for size in sizes} == {1}


def test_a_trip_count_that_is_unknown_is_not_taken_for_the_batch() -> None:
    pytest.importorskip("onnxruntime")
    cut = changed(SUM, {"T,B,2": "B,T,2", "y = Scan": "r = Relu (x) m = Reshape (r, s)  y = Scan"})
    cut = changed(
        cut, {"(h, x) }": "(h, m) }", "float[B,2] y)": "float[B,2] y) <int64[3] s = {-1, 1, 2}>"}
    )
    onnx.save(onnx.parser.parse_model(cut), "cut.onnx")
    assert run("measure", "cut.onnx", *FEW, "--json", "m.json")[0] == DONE
    sizes = [row["sizes"] for row in json.loads(Path("m.json").read_text())["rows"]]
    assert {size["B"] for size in sizes} == {1}
    assert len({size["T"] for size in sizes}) > 1


def test_given_inputs_are_used() -> None:
    pytest.importorskip("onnxruntime")
    np.savez("x.npz", h=np.zeros((1, 2), np.float32), x=np.zeros((4, 1, 2), np.float32))
    assert run("measure", "sum.onnx", *FEW, "--inputs", "x.npz", "--json", "m.json")[0] == DONE
    (row,) = json.loads(Path("m.json").read_text())["rows"]
    assert (row["sizes"], row["iterations"]) == ({}, None)


def test_a_gain_may_be_required() -> None:
    pytest.importorskip("onnxruntime")
    two = ("sum.onnx", "sum.onnx", *FEW, "--dim", "T=2", "--require-gain")
    assert run("measure", *two, "0.001")[0] == DONE
    code, _, errors = run("measure", *two, "1000")
    assert code == NOT_PRODUCED
    assert errors.startswith("sum.onnx: the gain is ")
    assert errors.endswith("--require-gain asks for 1000x\n")


@pytest.mark.slow
def test_a_rewrite_is_measured() -> None:
    pytest.importorskip("onnxruntime")
    given = ("optimize", "sum.onnx", "-o", "new.onnx", "--dim", "T=2", "--dim", "B=1")
    code, said, errors = run(*given, "--json", "m.json", "--require-gain", "0.001")
    assert (code, errors) == (DONE, "")
    measured = json.loads(Path("m.json").read_text())["measured"]
    assert measured["files"] == ["sum.onnx", "sum.onnx"]
    assert " in onnxruntime (" in said
    others = (*given[:2], "-o", "other.onnx", *given[4:], "--no-verify")
    code, _, errors = run(*others, "--require-gain", "1000")
    assert code == NOT_PRODUCED
    assert not Path("other.onnx").exists()
    assert "--require-gain asks for 1000x" in errors


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--dim", "S=3"), "the model has no free dim 'S'; those that it has: B, T"),
        (("--dim", "T=4,0"), "is 'T=4,0', a size must be 1 or more"),
        (("--dim", "T"), "is 'T', not of the form NAME=SIZE,SIZE,..."),
        (("--runtime", "tensorrt"), "tensorrt is no runtime that is installed"),
        (("--threads", "2"), "is '2', not one of 1, all, 1,all"),
    ],
)
def test_what_cannot_be_measured(arguments: tuple[str, ...], sentence: str) -> None:
    code, _, errors = run("measure", "sum.onnx", *arguments)
    assert code == USAGE
    assert sentence in errors


def test_without_time_each_model_is_called_all_the_same() -> None:
    pytest.importorskip("onnxruntime")
    none = ("--budget", "0", "--runtime", "onnxruntime", "--dim", "T=2", "--json", "m.json")
    assert run("measure", "sum.onnx", *none)[0] == DONE
    (row,) = json.loads(Path("m.json").read_text())["rows"]
    assert row["timings"][0]["calls"] == 1


def test_an_outcome_that_cannot_be_measured_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr("passes.verify.inputs.lengths.ATTEMPTS", ())
    given = ("optimize", "sum.onnx", "--dim", "T=2", "-o", "new.onnx", "--no-verify")
    code, said, _ = run(*given, "--measure")
    assert code == DONE
    assert "not measured: no inputs are found that the model takes" in said
    assert run(*given, "--force", "--require-gain", "1")[0] == NOT_PRODUCED


def test_one_call_does_not_count() -> None:
    calls: list[int] = []
    assert len(_timed(lambda: calls.append(1), 0.0)) == 1
    assert len(calls) == 2
