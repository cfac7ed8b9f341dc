"""Bounds of the elements of an output, from those of the inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from passes.operators.bounds import (
    NOTHING,
    SIZE,
    Bounded,
    Interval,
    bounds_of_constant,
    bounds_of_output,
    chosen_from,
    held,
    hull,
)
from passes.types.dtypes import Array
from passes.types.value_types import Dims

INT64 = (-(1 << 63), (1 << 63) - 1)
INT32 = (-(1 << 31), (1 << 31) - 1)
SOME: Mapping[str, Interval] = {
    "i": (0, 9),
    "s": (-3, 5),
    "three": (3, 3),
    "flag": (0, 1),
    "true": (1, 1),
    "zeros": (0, 0),
    "far": (0, INT64[1]),
    "x": (-1.5, 2.5),
}
DIMS: Mapping[str, Dims] = {"s": (2, 7), "i": ("N", 4), "flag": (3, "N")}
CONSTANTS: Mapping[str, Array] = {"axis": np.array([1])}


def bounds(text: str, elem_type: int = TensorProto.INT64, position: int = 0) -> Interval | None:
    """The bounds of an output of a node that reads `SOME`."""
    node = onnx.parser.parse_node(text)
    known = [SOME.get(name) for name in node.input]
    read = Bounded(node, elem_type, known, DIMS.get, CONSTANTS.get)
    return bounds_of_output(read, position)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = Add (i, s)", (-3, 14)),
        ("y = Sum (i, s, three)", (0, 17)),
        ("y = Sub (i, s)", (-5, 12)),
        ("y = Mul (i, s)", (-27, 45)),
        ("y = Neg (s)", (-5, 3)),
        ("y = Abs (s)", (0, 5)),
        ("y = Max (i, three)", (3, 9)),
        ("y = Min (s, three, i)", (-3, 3)),
        ("y = Clip (s, zeros)", (0, 5)),
        ('y = Clip (i, "", three)', (0, 3)),
    ],
)
def test_whole_numbers_element_by_element(text: str, expected: Interval) -> None:
    assert bounds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = Div (s, three)", (-1, 1)),
        ("y = Div (i, s)", (-9, 9)),  # by 1 or -1; by 0 it fails
        ("y = Mod (i, three)", (0, 2)),
        ("y = Mod (s, three)", (0, 2)),
        ("y = Mod (zeros, three)", (0, 0)),
        ("y = Mod (i, s)", (-2, 4)),
    ],
)
def test_a_quotient_is_cut_off_and_a_remainder_has_the_sign_of_the_divisor(
    text: str, expected: Interval
) -> None:
    assert bounds(text) == expected


def test_the_least_number_has_no_opposite_in_its_type() -> None:
    """INT64_MIN / -1 and -INT64_MIN wrap, so all numbers are possible."""
    node = onnx.parser.parse_node("y = Div (a, b)")
    read = Bounded(node, TensorProto.INT64, [INT64, (-1, -1)], DIMS.get, CONSTANTS.get)
    assert bounds_of_output(read, 0) == INT64
    assert held((1, 1 << 63), TensorProto.INT64) == INT64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = Less (s, i)", (0, 1)),
        ("y = Less (zeros, three)", (1, 1)),
        ("y = Greater (zeros, i)", (0, 0)),
        ("y = Equal (zeros, three)", (0, 0)),
        ("y = Not (true)", (0, 0)),
        ("y = And (flag, true)", (0, 1)),
        ("y = Or (flag, true)", (1, 1)),
        ("y = Xor (flag, true)", (0, 1)),
        ("y = Cast <to = 9> (three)", (0, 1)),
        ("y = Cast <to = 9> (zeros)", (0, 0)),
        ("y = Cast <to = 9> (x)", (0, 1)),
    ],
)
def test_conditions(text: str, expected: Interval) -> None:
    assert bounds(text, TensorProto.BOOL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = Range (three, i, true)", (3, 8)),
        ("y = Range (i, zeros, s)", (0, 9)),  # downwards too
        ("y = Concat <axis = 0> (i, s)", (-3, 9)),
        ("y = Where (flag, i, s)", (-3, 9)),
        ("y = Where (true, i, s)", (0, 9)),
        ("y = Where (cond, i, s)", (-3, 9)),
        ("y = Expand (i, shape)", (0, 9)),
        ("y = Reshape (i, shape)", (0, 9)),
        ("y = Gather (s, k)", (-3, 5)),
        ("y = Slice (s, a, b)", (-3, 5)),
        ("y = ScatterElements (i, k, s)", (-3, 9)),
        ('y = ScatterElements <reduction = "add"> (i, k, s)', INT64),
        ("y = OneHot (k, depth, flag)", (0, 1)),
        ("y = ConstantOfShape <value = int64[1] {4}> (shape)", (4, 4)),
        ("y = SequenceInsert (i, s)", (-3, 9)),
        ("y = SequenceAt (i, k)", (0, 9)),
        ("y = SequenceConstruct (i, three, s)", (-3, 9)),
        ("y = SequenceEmpty ()", NOTHING),
    ],
)
def test_what_moves_or_fills(text: str, expected: Interval) -> None:
    assert bounds(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("y = Shape (s)", 0, (2, 7)),
        ("y = Shape (i)", 0, (0, SIZE[1])),
        ("y = Size (s)", 0, (0, 14)),
        ("y = ArgMax <axis = 1> (s)", 0, (0, 7)),
        ("y = ArgMin <axis = -1> (flag)", 0, SIZE),
        ("y = NonZero (s)", 0, (0, 14)),
        ("y = NonZero (unknown)", 0, SIZE),
        ("y, k = TopK <axis = 0> (s, three)", 0, (-3, 5)),
        ("y, k = TopK <axis = 0> (s, three)", 1, (0, 2)),
        ("y, a, b, c = Unique (s)", 3, (0, 14)),
        ("y = SequenceLength (q)", 0, SIZE),
        ("a, b = Split (s)", 1, (-3, 5)),
    ],
)
def test_sizes_and_positions(text: str, position: int, expected: Interval) -> None:
    assert bounds(text, position=position) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = ReduceSum (s, axis)", (-21, 35)),
        ("y = ReduceSum (flag)", SIZE),
        ("y = ReduceMax (s)", (-3, 5)),
        ("y = ReduceMax (i)", INT64),  # of no element it is the least number of the type
        ("y = ReduceProd (s)", INT64),
        ("y = Add (far, i)", INT64),  # it may wrap
        ("y = Add (unknown, i)", INT64),
    ],
)
def test_sums_may_wrap(text: str, expected: Interval) -> None:
    assert bounds(text) == expected


def test_floats_are_rounded_as_their_type_does() -> None:
    assert bounds("y = Cast <to = 1> (i)", TensorProto.FLOAT) == (0.0, 9.0)
    assert bounds("y = Mul (x, x)", TensorProto.FLOAT) == (-3.75, 6.25)
    assert bounds("y = Floor (x)", TensorProto.FLOAT) == (-2.0, 3.0)
    assert bounds("y = Cast <to = 7> (x)") == (-1, 2)
    assert bounds("y = Exp (x)", TensorProto.FLOAT) is None
    assert held((0, 16777217), TensorProto.FLOAT) == (0.0, 16777216.0)
    assert held((0, 1e39), TensorProto.FLOAT) is None


def test_constants() -> None:
    assert bounds_of_constant(np.array([[3, -1], [4, 1 << 62]])) == (-1, 1 << 62)
    assert bounds_of_constant(np.array([True, False])) == (0, 1)
    assert bounds_of_constant(np.array([], np.int64)) == (0, 0)
    assert bounds_of_constant(np.array([0.5, math.inf])) is None
    assert bounds_of_constant(np.zeros(1000, np.float32)) is None  # weights


def test_the_inputs_of_which_the_elements_are() -> None:
    assert chosen_from(onnx.parser.parse_node('y = Where (c, a, "")')) == [1]
    assert chosen_from(onnx.parser.parse_node("y = Max (a, b, c)")) == [0, 1, 2]
    assert not chosen_from(onnx.parser.parse_node("y = Pad (a, b)"))
    assert not chosen_from(onnx.parser.parse_node("y = Add (a, b)"))


def test_nothing_adds_nothing() -> None:
    assert hull([NOTHING, (1, 2)]) == (1, 2)
    assert hull([]) == NOTHING
    node = onnx.parser.parse_node("y = Mul (a, b)")
    read = Bounded(node, TensorProto.INT64, [NOTHING, (0, 0)], DIMS.get, CONSTANTS.get)
    assert bounds_of_output(read, 0) == NOTHING
