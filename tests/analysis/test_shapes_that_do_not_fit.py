"""Nodes that are not proven to fit, since some sizes that they may have do not."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from passes.analysis.safety.shapes_fit import Known, fits

#: The dims of values; N and M may differ, and None may be any size.
DIMS = {
    "a": (2, 3),
    "b": (3, 4),
    "n": ("N", 3),
    "same": ("N", 3),
    "m": ("M", 3),
    "open": (None, 3),
    "none": (0, 3),
    "s": (),
    "v": (3,),
    "cube": (2, 2, 3),
}
CONSTANTS = {
    "zero": np.array([0]),
    "twice": np.array([0, -2]),
    "far": np.array([5]),
    "shape": np.array([2, 3]),
    "ones": np.array([1, 3]),
    "negative": np.array([-1, 3]),
    "parts": np.array([1, 2]),
    "more": np.array([1, 1, 1]),
    "last": np.array([-3]),
    "below": np.array([-4]),
}


def is_proven(text: str, *, opset: int = 21, trusted: bool = True) -> bool:
    shapes = {name: value.shape for name, value in CONSTANTS.items()}
    known = Known(opset, {**shapes, **DIMS}.get, CONSTANTS.get, trusted)
    return fits(onnx.parser.parse_node(text), known)


@pytest.mark.parametrize(
    "text",
    [
        *("y = Add (n, m)", "y = Add (open, n)", "y = Add (unknown, a)"),
        *("y = MatMul (a, a)", "y = MatMul (a, s)", "y = Gemm (a, a)", "y = Gemm (a, b, v)"),
        *("y = Gemm (cube, b)", "y = Concat <axis = 0> (a, b)", "y = Concat <axis = 1> (n, m)"),
        *("y = Concat <axis = 0> (a, v)", "y = ReduceSum (a, twice)", "y = ReduceSum (a, far)"),
        *("y = ReduceSum (a, unknown)", "y = Expand (a, negative)", "y = Expand (n, shape)"),
        *("y = Squeeze (a, zero)", "y = Squeeze (n, zero)", "y = Unsqueeze (a, far)"),
        *("y = Transpose <perm = [0, 0]> (a)", "y = Transpose <perm = [0]> (a)"),
        *("y, w = Split <axis = 1> (a)", "y, w = Split <axis = 1> (a, negative)"),
        *("y = Split <axis = 1> (a, parts)", "y, w = Split <axis = 1> (a, more)"),
        *("y, w = Split <axis = 1> (a, unknown)", "y, w = Split (none)"),
        *("y = Gather <axis = 0> (a, far)", "y = Gather <axis = 1> (a, below)"),
        *("y = Gather <axis = 2> (a, zero)", "y = Gather (n, zero)"),
        *("y = ArgMax <axis = 2> (a)", "y = TopK (a, zero)", "y = Slice (a, twice, twice, twice)"),
    ],
)
def test_what_may_not_fit_is_not_proven(text: str) -> None:
    assert not is_proven(text)


@pytest.mark.parametrize(
    "text",
    [
        *("y = Add (n, same)", "y = Add (a, v)", "y = MatMul (a, b)", "y = MatMul (v, b)"),
        *("y = Concat <axis = 0> (a, n)", "y = Gemm (a, b)", "y = ReduceSum (a, zero)"),
        *("y = ReduceSum (open)", "y = Expand (a, ones)", "y = Transpose (open)"),
        *("y, w = Split <axis = 0> (a)", "y, w = Split <axis = 1> (a, parts)"),
        *("y = Gather <axis = 1> (a, last)", "y = Unsqueeze (a, zero)", "y = ArgMax (a)"),
    ],
)
def test_what_fits_is_proven(text: str) -> None:
    assert is_proven(text)


def test_what_older_opsets_and_untrusted_symbols_leave_open() -> None:
    assert not is_proven("y = Add (n, same)", trusted=False)
    assert not is_proven("y = Gather <axis = 1> (a, last)", opset=10)
    assert not is_proven("y = Max (a, v)", opset=7)
