"""Bounds of the values of a model, through loops and branches."""

from __future__ import annotations

import onnx
import pytest

from passes.ir.model import Model
from passes.operators.bounds import SIZE, Interval
from passes.precision.flow import Flow
from passes.precision.ranges import Ranges
from tests.written import changed

INT64 = (-(1 << 63), (1 << 63) - 1)
INT32 = (-(1 << 31), (1 << 31) - 1)


def bounds(text: str, inputs: Interval = INT64) -> dict[str, Interval | None]:
    """The bounds of all values of a valid model, by name."""
    model = onnx.parser.parse_model(text)
    onnx.checker.check_model(model, full_check=True)
    flow = Flow.of(Model(model))
    found = Ranges(flow, inputs).bounds
    return {one.name: found[one.number] for one in flow.values}


COUNTER = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (int64 n, int64 x) => (int64 count, int64[T] all)
    <int64 first = {5}, int64 step = {2}, int64 trips = {10}, int64 far = {9223372036854775807}> {
      count, all = Loop (trips, "", first) <body = step (int64 i, bool go, int64 c)
          => (bool go_out, int64 d, int64 row) {
        go_out = Identity (go)
        d = Add (c, step)
        row = Add (i, c)
      }>
    }
"""


def test_a_counter_is_bounded_by_the_trip_count() -> None:
    found = bounds(COUNTER)
    assert found["i"] == (0, 9)
    assert found["c"] == (5, 25)
    assert found["d"] == (7, 27)
    assert found["count"] == (5, 27)
    assert found["all"] == (5, 34)


def test_no_loop_is_longer_than_an_axis() -> None:
    found = bounds(changed(COUNTER, {"Loop (trips": "Loop (n", "step = {2}": "step = {1}"}))
    assert found["i"] == (0, SIZE[1] - 1)
    assert found["c"] == (5, SIZE[1] + 5)
    found = bounds(changed(COUNTER, {"Loop (trips": "Loop (far", "step = {2}": "step = {-1}"}))
    assert found["c"] == (5 - SIZE[1], 5)


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("d = Sub (c, step)", (-15, 5)),
        ("d = Identity (c)", (5, 5)),
        ("e = Add (step, c) d = Sub (e, first)", (-25, 5)),
        ("d = Add (c, i)", (5, 95)),
        ("e = Add (c, far) d = Sub (e, far)", (5, 5)),  # 64 bits wrap there and back
        ("e = Add (c, step) d = Mod (e, trips)", (0, 9)),
        ("e = Mul (c, step) d = Min (e, trips)", (5, 10)),
        ("d = Mul (c, step)", INT64),
        ("d = Add (c, x)", INT64),
        ("d = Add (c, c)", INT64),
    ],
)
def test_carried_values(returned: str, expected: Interval) -> None:
    assert bounds(changed(COUNTER, {"d = Add (c, step)": returned}))["c"] == expected


ROWS = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[T,8] x, int64[T] ids) => (int64 last, int64[T] best, seq(int64[1]) made)
    <int64 start = {1}> {
      empty = SequenceEmpty <dtype = 7> ()
      last, best = Scan <num_scan_inputs = 2, body = step (int64 token, float[8] row, int64 id)
          => (int64 next, int64 out) {
        next = ArgMax <axis = 0, keepdims = 0> (row)
        out = Max (token, next)
      }> (start, x, ids)
      shape = Shape (x)
      size = Gather (shape, start)
      axes = Constant <value_ints = [0]> ()
      sizes = Unsqueeze (size, axes)
      made = SequenceInsert (empty, sizes)
    }
"""


def test_indices_sizes_and_sequences() -> None:
    found = bounds(ROWS)
    assert found["next"] == (0, 8)
    assert found["token"] == (0, 8)
    assert found["id"] == INT64
    assert found["shape"] == (0, SIZE[1])
    assert found["made"] == (0, SIZE[1])


def test_inputs_may_be_promised_to_fit() -> None:
    assert bounds(ROWS, INT32)["id"] == INT32


def test_an_initializer_that_is_an_input_may_be_anything() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (int64 x, int64 y = {3}) => (int64 z) <int64 one = {1}> { z = Mul (y, one) }
    """
    found = bounds(text)
    assert found["y"] == INT64
    assert found["one"] == (1, 1)
