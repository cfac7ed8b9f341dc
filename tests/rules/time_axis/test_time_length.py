"""Lengths of scanned inputs that must agree: where that follows from the nodes that make them,
nothing guards it."""

from __future__ import annotations

import pytest
from moved_work import HEAD

from passes.testing import assert_rewrite

GUARD = "Where"


def dissolved(made: str, inputs: str = "") -> list[str]:
    """The ops of a map over `x` and `other`, which `made` tells."""
    model = f"""{HEAD} g (float[T,3] x{inputs}) => (float[T,3] y)
        <int64 nought = {{0}}, int64 one = {{1}}, int64 two = {{2}}, int64[1] axes = {{0}}> {{
            sizes = Shape (x) rows = Gather (sizes, nought) {made}
            y = Scan <num_scan_inputs = 2, body = b (float[3] x_t, int64 k) => (float[3] y_t)
                {{ w = Cast <to = 1> (k) y_t = Mul (x_t, w) }}> (x, other) }}"""
    result = assert_rewrite(model, pipeline="dissolve-map")
    return [node.op_type for node in result.model.graph.node]


@pytest.mark.parametrize(
    "made",
    [
        "other = Range (nought, rows, one)",
        "more = Add (rows, one) other = Range (one, more, one)",
        "last = Sub (rows, one) end = Add (last, one) other = Range (nought, end, one)",
        "counted = Range (nought, rows, one) other = Neg (counted)",
        "all = Unsqueeze (rows, axes) other = ConstantOfShape <value = int64[1] {5}> (all)",
    ],
)
def test_a_length_that_is_counted_is_proven(made: str) -> None:
    assert GUARD not in dissolved(made)


@pytest.mark.parametrize(
    ("made", "inputs"),
    [
        ("other = Identity (k)", ", int64[S] k"),
        ("other = Range (nought, n, one)", ", int64 n"),
        ("end = Add (rows, rows) other = Range (nought, end, two)", ""),
        ("other = Range (rows, n, one)", ", int64 n"),
        ("zs = Shape (z) n = Gather (zs, nought) other = Range (nought, n, one)", ", float[S,3] z"),
    ],
)
def test_any_other_is_guarded(made: str, inputs: str) -> None:
    assert GUARD in dissolved(made, inputs)
