"""`passes.check_target`: findings, remedies, and the pipeline that runs them."""

from __future__ import annotations

import passes
from passes.testing import as_model

LOOP = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (int64 n, float[2] x) => (float[2] y) {
      y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
        on = Identity (go)
        t = Neg (s)
      }> (n, "", x)
    }
"""


def test_a_model_that_fits() -> None:
    checked = passes.check_target(as_model(LOOP), "loop-only")
    assert checked.fits
    assert (checked.findings, checked.remedies, f"{checked}") == ([], [], "fits loop-only")


def test_a_known_input_clears_what_nothing_else_does() -> None:
    unknown = passes.check_target(as_model(LOOP), "no-control-flow")
    assert not unknown.fits
    assert [finding.op for finding in unknown.left] == ["Loop"]
    known = passes.check_target(as_model(LOOP), "no-control-flow", values={"n": 3})
    assert [remedy.command for remedy in known.remedies] == ["optimize"]
    assert known.left == []
    result = known.fix.run(as_model(LOOP))
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
    assert [node.op_type for node in result.model.graph.node] == ["Neg"] * 3


def test_a_promise_of_the_most_iterations() -> None:
    checked = passes.check_target(as_model(LOOP), "no-control-flow", max_trips=2)
    assert [f"{remedy.kind}" for remedy in checked.remedies] == ["needs a promise of yours"]
    assert checked.fix.commands[0].max_trips == 2
