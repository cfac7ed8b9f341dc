"""Runs that round after every node."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import onnx
import pytest

from passes.ir.places import Key
from passes.verify.within.rounded import Rounding, Seen
from tests.onnxruntime_at_hand import at_hand
from tests.written import changed

SPAN = """<ir_version: 10, opset_import: ["" : 21]>
g (float16 x, float16 y) => (float16 z) { a = Add (x, y)  z = Sub (a, y) }"""
DOT = """<ir_version: 10, opset_import: ["" : 21]>
g (float16[1,K] x, float16[K,1] y) => (float16[1,1] z) { z = MatMul (x, y) }"""


def ran(text: str, **feeds: object) -> tuple[dict[str, Any], dict[Key, Seen]]:
    """The outputs of a model, and what was noted of its nodes."""
    rounding = Rounding()
    fed = {name: np.asarray(value) for name, value in feeds.items()}
    outputs = rounding.executor().run(onnx.parser.parse_model(text), fed).outputs
    return outputs, rounding.seen


def halves(*values: float) -> npt.NDArray[np.float16]:
    return np.array(values, np.float16)


def test_what_a_node_computes_is_rounded_before_the_next_one() -> None:
    fed = {"x": np.float16(0.3), "y": np.float16(2048)}
    assert ran(SPAN, **fed)[0]["z"] == 0


def test_onnxruntime_does_not_round_between_nodes() -> None:
    fed = {"x": np.array(0.3, np.float16), "y": np.array(2048, np.float16)}
    (z,) = at_hand().run(onnx.parser.parse_model(SPAN), fed).outputs.values()
    assert z == np.float16(0.3)


def test_bfloat16_has_fewer_digits() -> None:
    model = changed(SPAN, {"float16": "bfloat16"})
    x, y = np.array(0.3, ml_dtypes.bfloat16), np.array(64, ml_dtypes.bfloat16)
    z = ran(model, x=x, y=y)[0]["z"]
    assert z.dtype == ml_dtypes.bfloat16
    assert z == 0.5


def test_products_are_summed_in_float32() -> None:
    ones = np.ones(4099, np.float16)
    z = ran(DOT, x=ones[None], y=ones[:, None])[0]["z"]
    assert (z.dtype, z.item()) == (np.float16, 4100)  # a sum in float16 ends at 2048


def test_a_function_of_several_operators_is_rounded_once() -> None:
    softmax = """<ir_version: 10, opset_import: ["" : 21]>
    g (float16[3] x) => (float16[3] y) { y = Softmax (x) }"""
    x = halves(1, 2, 3)
    exact = np.exp(x.astype(np.float32)) / np.exp(x.astype(np.float32)).sum()
    assert np.array_equal(ran(softmax, x=x)[0]["y"], exact.astype(np.float16))


def test_an_output_of_another_type_than_the_inputs_is_as_it_was() -> None:
    casts = """<ir_version: 10, opset_import: ["" : 21]>
    g (float16[2] x, int8[2] n) => (float[2] a, bfloat16[2] b, float16[2] c, bool[2] d, int64 e) {
        a = Cast <to = 1> (x)  b = Cast <to = 16> (x)  c = CastLike (n, x)  d = Less (x, c)
        e = ArgMax <keepdims = 0> (x)
    }"""
    found = ran(casts, x=halves(0.3, 7), n=np.array([1, 2], np.int8))[0]
    kinds = ["float32", "bfloat16", "float16", "bool", "int64"]
    assert [value.dtype.name for value in found.values()] == kinds
    assert found["a"][0] == np.float16(0.3)


def test_what_overflows_and_what_becomes_0_is_counted_before_it_is_rounded() -> None:
    square = """<ir_version: 10, opset_import: ["" : 21]>
    g (float16[4] x) => (float16[4] y) { y = Mul (x, x) }"""
    y, seen = ran(square, x=halves(300, 1e-4, 2, np.inf))
    assert np.array_equal(y["y"], halves(np.inf, 0, 4, np.inf))
    (noted,) = seen.values()
    assert (noted.overflows, noted.underflows) == (1, 1)
    assert noted.largest == 90000
    assert noted.smallest == pytest.approx(1e-8, rel=1e-3)


def test_a_cast_overflows_too() -> None:
    cast = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float16[2] y) { y = Cast <to = 10> (x) }"""
    (noted,) = ran(cast, x=np.array([70000, 1], np.float32))[1].values()
    assert (noted.largest, noted.overflows) == (70000, 1)


def test_how_much_of_the_operands_of_a_sum_cancels() -> None:
    seen = ran(SPAN, x=np.float16(4), y=np.float16(1020))[1]
    assert [noted.cancelled for noted in seen.values()] == [pytest.approx(1020 / 1024), 256]


def test_nodes_in_bodies_and_functions_are_noted_and_those_that_move_are_not() -> None:
    nested = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
    g (float16[T,2] x, bool c) => (float16[T,2] y) {
        y = Scan <num_scan_inputs = 1, body = step (float16[2] row) => (float16[2] out) {
            moved = Identity (row)
            out = If (c) <
                then_branch = t () => (float16[2] p) { p = own.twice (moved) },
                else_branch = e () => (float16[2] q) { q = Neg (moved) }>
        }> (x)
    }
    <domain: "own", opset_import: ["" : 21]>
    twice (v) => (w) { w = Add (v, v) }"""
    outputs, seen = ran(nested, x=halves(1, 2, 3, 4).reshape(2, 2), c=True)
    assert np.array_equal(outputs["y"], halves(2, 4, 6, 8).reshape(2, 2))
    assert list(seen) == [(1, 0)]
    assert seen[1, 0].largest == 8
