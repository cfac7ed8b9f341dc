"""A Concat of one tensor is a copy, unless it fails."""

from __future__ import annotations

import pytest

import passes
from passes.testing import as_model

JOINED = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (bool c, float[2] x, float[D] free, float one) => (float y) {
      y = If (c) <then_branch = a () => (float y1) {
          joined = Concat <axis = 0> (x)
          y1 = ReduceSum <keepdims = 0> (joined)
        }, else_branch = b () => (float y2) { y2 = Identity (one) }>
    }
"""


@pytest.mark.parametrize(
    ("before", "after", "dropped"),
    [
        ("axis = 0", "axis = 0", 1),
        ("axis = 0", "axis = -1", 1),
        ("axis = 0", "axis = 1", 0),
        ("(x)", "(free)", 1),
        ("(x)", "(one)", 0),
    ],
)
def test_one_that_fails_stays(before: str, after: str, dropped: int) -> None:
    model = as_model(JOINED.replace(before, after, 1))
    report = passes.simplify(model, rules=["drop-copies"], verify=False).report
    assert len(report.rewrites) == dropped
