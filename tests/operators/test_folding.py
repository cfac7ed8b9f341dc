"""Values of nodes whose inputs are small constants."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from passes.analysis.integers.affine import Ints, symbol_atom
from passes.operators.folding import folded, result_of


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


def test_an_absolute_value_is_known_of_numbers_and_not_of_sums() -> None:
    node = helper.make_node("Abs", ["a"], ["y"])
    result = folded(node, {"a": np.array([-3, 2])}.get)
    assert result is not None
    assert result.tolist() == [3, 2]
    assert result_of(node, [sums_of([T, 2]).array]) is None


T = symbol_atom((), "x", 0, "T")


@pytest.mark.parametrize(
    ("node", "inputs", "expected"),
    [
        ("Add (a, b)", [[T, 2], [1]], [T + 1, 3]),
        ("Sub (a, b)", [T, T], 0),
        ("Mul (a, b)", [[T, 2], [2, T]], [T.times(2), T.times(2)]),
        ("Neg (a)", [T], T.times(-1)),
        ("Max (a, b)", [[T, 0], [T - 1, T]], [T, T]),
        ("Min (a, b)", [[T, 0], [T - 1, T]], [T - 1, 0]),
        ("Div (a, b)", [[7, -7], [2]], [3, -3]),
        ("Gather (a, b)", [[T, 4], [-1, 0]], [4, T]),
        ("Gather (a, b)", [[T, 4], 0], T),
        ("Concat <axis = 0> (a, b)", [[T, 4], [-1]], [T, 4, -1]),
        ("Squeeze (a, b)", [[T], [0]], T),
        ("Squeeze <axes = [0]> (a)", [[T]], T),
        ("Unsqueeze (a, b)", [T, [0]], [T]),
        ("Reshape (a, b)", [T, [-1]], [T]),
        ("Reshape <allowzero = 1> (a, b)", [[T], []], T),
    ],
)
def test_sums_of_sizes_are_computed_as_numbers_are(
    node: str, inputs: list[object], expected: object
) -> None:
    """The sum T + 1 is an object of an array, beside constants."""
    sums = [sums_of(value).array for value in inputs]
    result = result_of(onnx.parser.parse_node(f"y = {node}"), sums)
    assert result is not None
    assert Ints.of(result, TensorProto.INT64) == sums_of(expected)


@pytest.mark.parametrize(
    ("node", "inputs"),
    [
        ("Mul (a, b)", [T, T]),
        ("Max (a, b)", [T, 3]),
        ("Div (a, b)", [T, 2]),
        ("Gather (a, b)", [[2, 4], [T]]),
        ("Gather (a, b)", [[T, 4], [2]]),
        ("Squeeze (a, b)", [[T], [T]]),
        ("Squeeze (a, b)", [[T], []]),
        ("Reshape (a, b)", [[T], [0]]),
        ("Reshape (a, b)", [[1], [T]]),
        ("Add (a, b)", [[T, 1], [1, 2, 3]]),
        ("Add <axis = 0> (a, b)", [T, T]),
    ],
)
def test_what_is_no_sum_of_sizes_is_unknown(node: str, inputs: list[object]) -> None:
    sums = [sums_of(value).array for value in inputs]
    assert result_of(onnx.parser.parse_node(f"y = {node}"), sums) is None


def sums_of(value: object) -> Ints:
    return Ints.of(np.array(value, object), TensorProto.INT64)
