"""NaN and infinity at one iteration reach no iteration before it, though a block runs at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import passes

GOLDEN = Path(__file__).parents[3] / "golden_models" / "run-in-blocks"
PLACE = 20  # in the middle of a block


@pytest.mark.parametrize("odd", [np.nan, np.inf])
@pytest.mark.parametrize(
    "name",
    [
        "decay_of_rows",
        "log_decay",
        "gated_delta_rule",
        "read_before_the_update",
        "normalized",
        "stabilized",
        "moving_average",
        "running_maximum",
        "running_log_sum",
        "running_log_sum_as_it_is",
    ],
)
def test_what_is_not_finite_stays_behind(name: str, odd: float) -> None:
    before = onnx.load(GOLDEN / f"{name}.before.onnxtxt")
    after = onnx.load(GOLDEN / f"{name}.after.onnxtxt")
    scanned = [one.name for one in before.graph.input if _shape(one)[0] in (48, 70)]
    for changed in scanned:
        inputs = _drawn(before)
        expected = _run(before, inputs)
        inputs[changed][PLACE].flat[0] = odd
        for found, right, usual in zip(
            _run(after, inputs), _run(before, inputs), expected, strict=True
        ):
            assert (np.isnan(found) == np.isnan(right)).all()
            if len(found) in (48, 70):
                np.testing.assert_allclose(found[:PLACE], usual[:PLACE], rtol=1e-4, atol=1e-5)


def test_a_decay_that_is_too_strong_runs_one_by_one() -> None:
    """In the first 16 iterations rows are decayed by 1e-30 each: products would overflow."""
    before = onnx.load(GOLDEN / "decay_of_rows.before.onnxtxt")
    after = onnx.load(GOLDEN / "decay_of_rows.after.onnxtxt")
    inputs = _drawn(before)
    inputs["a"][:16] = 1e-30
    for found, right in zip(_run(after, inputs), _run(before, inputs), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5)


@pytest.mark.parametrize("name", ["running_log_sum", "running_log_sum_as_it_is"])
@pytest.mark.parametrize("value", [-np.inf, -1e30, -200, 85, 95, 1e30, np.inf])
def test_a_log_of_a_sum_overflows_where_that_of_the_loop_does(name: str, value: float) -> None:
    """Of exps as they are, that of 95 is infinite, and the log of that of -200 is, too."""
    before = onnx.load(GOLDEN / f"{name}.before.onnxtxt")
    after = onnx.load(GOLDEN / f"{name}.after.onnxtxt")
    inputs = _drawn(before)
    inputs["h0"][0] = value
    inputs["x"][PLACE, 1] = inputs["x"][:, 2] = value
    for found, right in zip(_run(after, inputs), _run(before, inputs), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)


def test_the_outcome_is_part_of_optimize_unless_the_order_is_kept() -> None:
    before = onnx.load(GOLDEN / "decay_of_rows.before.onnxtxt")
    kept = passes.optimize(before, keep_order=True, verify=False)
    assert "reassociation" in {record.code for record in kept.report.records}
    changed = passes.optimize(before, verify=False)
    assert "run-in-blocks" in {record.rule for record in changed.report.records}


def _shape(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


def _drawn(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Small numbers; decays and rates between 0 and 1, keys of length 1."""
    draw = np.random.default_rng(0)
    inputs = {}
    for value in model.graph.input:
        drawn = draw.standard_normal(_shape(value)).astype(np.float32)
        if value.name in ("a", "b"):
            drawn = 1 / (1 + np.exp(-drawn))
        if value.name == "g":
            drawn = -np.abs(drawn)
        if value.name == "k":
            drawn /= np.linalg.norm(drawn, axis=-1, keepdims=True)
        inputs[value.name] = drawn
    return inputs


def _run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, inputs))
