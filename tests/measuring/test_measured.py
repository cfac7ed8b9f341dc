"""The text of a measurement, and what it sums up."""

from __future__ import annotations

import json

import pytest

from passes.reports.measured import Measured, Row, Timing


def row(
    length: int, *seconds: float, runtime: str = "onnxruntime", iterations: int | None = None
) -> Row:
    timings = [Timing(one, 0.02, 100, 0.003, 2_000_000) for one in seconds]
    return Row(runtime, "1.0", 1, {"B": 1, "T": length}, iterations, timings)


MEASURED = Measured(
    ["gla.onnx", "gla.optimized.onnx"],
    [7_200, 150_000],
    [row(64, 1e-3, 0.5e-3), row(256, 3.99e-3, 0.95e-3, iterations=256)],
    "T",
)


def test_the_text_compares_the_models_at_each_size() -> None:
    assert MEASURED.to_text().splitlines() == [
        "onnxruntime 1.0, 1 thread",
        "  B  T    gla.onnx      gla.optimized.onnx",
        "  1  64   1 ms +-2%     500 us +-2% (2.0x)",
        "  1  256  3.99 ms +-2%  950 us +-2% (4.2x)",
        "  gla.onnx: 15.6 us for each step more",
        "  gla.optimized.onnx: 2.34 us for each step more",
        "  an iteration takes 15.6 us -> 3.71 us",
        "  loading 3 ms -> 3 ms, memory 2.0 MB -> 2.0 MB",
        "file 7.2 kB -> 0.1 MB",
        "3.99 -> 0.95 ms in onnxruntime at B 1, T 256 (4.2x)",
    ]


def test_time_that_grows_faster_than_the_length_is_named() -> None:
    found = Measured(["m.onnx"], [1], [row(10, 1e-3), row(100, 0.1)], "T")
    assert "  1.1 ms for each step more, as T^2.0" in found.to_text().splitlines()


def test_the_gain_is_that_of_a_runtime_in_which_all_models_ran() -> None:
    failed = Row("tract", "1", 1, {"T": 9}, None, [Timing(failure="no Loop"), Timing(1e-3)])
    found = Measured(["a", "b"], [1, 1], [failed, row(8, 2e-3, 1e-3)], "T")
    assert found.gain == pytest.approx(2)
    assert "  a: failed: no Loop" in found.to_text().splitlines()
    assert Measured(["a", "b"], [1, 1], [failed], "T").line == "not measured: no Loop"


def test_it_is_data() -> None:
    told = json.loads(MEASURED.to_json())
    assert told["gain"] == pytest.approx(4.2)
    assert told["rows"][1]["timings"][1]["seconds"] == pytest.approx(0.95e-3)
    assert told["line"] == MEASURED.line
