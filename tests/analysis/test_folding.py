"""Values of nodes whose inputs are small constants."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from onnx import helper

from passes.analysis.integers.folding import folded


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_a_quotient_is_cut_towards_zero_up_to_the_limits(dtype: type) -> None:
    info = np.iinfo(dtype)
    numbers = [info.min, info.min + 1, -7, -2, 0, 1, 2, 7, info.max]
    node = helper.make_node("Div", ["a", "b"], ["y"])
    for number, by in itertools.product(numbers, filter(None, numbers)):
        values = {"a": np.array(number, dtype), "b": np.array(by, dtype)}
        quotient = abs(int(number)) // abs(int(by)) * (1 if (number < 0) == (by < 0) else -1)
        result = folded(node, values.get)
        assert result is not None
        assert result.dtype == dtype
        assert result.item() == quotient


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize("by", [0, -1])
def test_what_may_fail_is_not_computed(op: str, by: int) -> None:
    node = helper.make_node(op, ["a", "b"], ["y"])
    values = {"a": np.array(-(1 << 63)), "b": np.array(by)}
    assert folded(node, values.get) is None
