"""recognize-cell: rows that end, by lengths or a mask, also where the mask is no prefix."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from in_both_executors import run_both, tensors

from passes.testing import assert_rewrite
from passes.verify.reference import ReferenceExecutor

GOLDEN = Path(__file__).parents[3] / "golden_models" / "recognize-cell"
STEPS = 3


@cache
def both(name: str, *, backwards: bool = False) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A golden model and its outcome, perhaps with all directions reversed."""
    before = onnx.load(GOLDEN / f"{name}.before.onnxtxt")
    if backwards:
        for key, directions in (("input", [1, 1]), ("output", [1])):
            attribute = onnx.helper.make_attribute(f"scan_{key}_directions", directions)
            before.graph.node[0].attribute.append(attribute)
    after = assert_rewrite(before, pipeline="recognize-cell").model
    return before, after


def drawn(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Random states and elements."""
    draw = np.random.default_rng(3)
    shapes = {"x": (STEPS, 2, 3), "h0": (2, 2), "c0": (2, 2), "y0": (2, 2)}
    names = [value.name for value in model.graph.input if value.name in shapes]
    return {name: draw.standard_normal(shapes[name]).astype(np.float32) for name in names}


def assert_same(
    models: tuple[onnx.ModelProto, onnx.ModelProto], feeds: dict[str, np.ndarray]
) -> None:
    for one, other in zip(*(run_both(model, feeds) for model in models), strict=True):
        for name in one:
            np.testing.assert_allclose(one[name], other[name], rtol=1e-4, atol=1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lengths", [[3, 2], [0, 1], [-1, 7], [0, 0]])
def test_lengths_may_be_too_small_or_too_large(lengths: list[int]) -> None:
    models = both("lengths")
    assert_same(models, drawn(models[0]) | {"lengths": np.array(lengths, np.int32)})


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(
    "rows",
    [
        ([1, 1, 1], [1, 1, 0]),
        ([0, 0, 0], [1, 0, 0]),
        ([0, 1, 1], [1, 1, 1]),  # begins late: the loop runs
        ([1, 0, 1], [1, 1, 1]),
    ],
)
def test_a_mask_may_be_any(rows: tuple[list[int], list[int]], backwards: bool) -> None:
    models = both("masked", backwards=backwards)
    mask = np.array(rows, np.bool_).T[:, :, np.newaxis]
    assert_same(models, drawn(models[0]) | {"mask": mask})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_beyond_the_end_counts(value: float) -> None:
    """0 times it is NaN: the loop runs."""
    before, after = both("masked")
    feeds = drawn(before) | {"mask": np.ones((STEPS, 2, 1), np.bool_)}
    feeds["mask"][-1] = False
    feeds["x"][-1, 0, 0] = value
    expected, found = (tensors(ReferenceExecutor(), one, feeds) for one in (before, after))
    for name in expected:
        np.testing.assert_array_equal(expected[name], found[name])
