"""Errors of recurrences in float16 by the number of iterations: by default, and all in half."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import passes
from passes.verify.within.rounded import Rounding
from tests.precision.recurrences import MODELS, Feeds, feeds_of

#: All of these are far off if all is half over 4,096 iterations; the others forget, or average.
DRIFTING = (
    "sum",
    "moving average of 0.999",
    "online softmax",
    "slow decay inside",
    "slow decay computed outside",
)


def error(before: ModelProto, after: ModelProto, feeds: Feeds) -> float:
    """The largest difference over the largest element, of the worst output; every node rounds."""
    executor = Rounding().executor()
    one, other = (executor.run(model, feeds).outputs for model in (before, after))
    return max(
        float(np.abs(np.subtract(other[name], value)).max() / np.abs(value).max())
        for name, value in one.items()
        if isinstance(value, np.ndarray)
    )


def errors(scan: ModelProto, length: int, to: str = "float16") -> tuple[float, float]:
    """The errors by default, and of a model that is half altogether."""
    feeds = feeds_of(scan, length)
    outcome = passes.cast(scan, to=to, verify=False).model
    halves = passes.cast(scan, to=to, half=("*",), verify=False).model
    return error(scan, outcome, feeds), error(scan, halves, feeds)


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def scan(name: str) -> ModelProto:
    return onnx.parser.parse_model(MODELS[name])


def test_over_a_hundred_iterations_the_defaults_keep_the_error_small(scan: ModelProto) -> None:
    kept, halves = errors(scan, 100)
    assert kept < 1e-3
    assert 1.5 * kept < halves


@pytest.mark.slow
@pytest.mark.parametrize("to", ["float16", "bfloat16"])
@pytest.mark.parametrize("form", ["Scan", "Loop"])
def test_no_recurrence_drifts_over_thousands_of_iterations(
    name: str, scan: ModelProto, form: str, to: str
) -> None:
    model = scan if form == "Scan" else passes.lower(scan, verify=False).model
    assert form in [node.op_type for node in model.graph.node]
    kept, halves = errors(model, 4096, to)
    assert kept < 1e-2
    assert name not in DRIFTING or halves > 1e-2
