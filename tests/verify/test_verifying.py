"""What verification does with the rewrites of a session: equal ones are verified once."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import passes
from passes.choices import Verifying
from passes.engine.rewriting import Engine
from passes.ir.model import Model
from passes.rule import Edit, Rule, Site
from passes.verify.compare.verdicts import Verification
from passes.verify.requirements import Models, Requirements
from passes.verify.rewrites.verifying import verify_rounds
from passes.verify.verification import verify

#: Loops that are equal up to the names of their values and symbols, but for the third.
LOOPS = """
<ir_version: 8, opset_import: ["" : 16]>
g (int64 n, float[A] a, float[B] b, float[A] c) => (float[A] x, float[B] y, float[A] z) {
  x = Loop <body = one (int64 i, bool go, float[A] s) => (bool on, float[A] t)
    { on = Identity (go) t = Add (s, s) }> (n, "", a)
  y = Loop <body = two (int64 j, bool yes, float[B] p) => (bool more, float[B] q)
    { more = Identity (yes) q = Add (p, p) }> (n, "", b)
  z = Loop <body = three (int64 i, bool go, float[A] s) => (bool on, float[A] t)
    { on = Identity (go) t = Mul (s, s) }> (n, "", c)
}
"""


def test_equal_rewrites_are_verified_once_and_the_report_says_at_which() -> None:
    report = passes.raise_(onnx.parser.parse_model(LOOPS), executor="reference").report
    raised = [record.checked for record in report.records if record.rule == "raise-loop"]
    found = [one.same_as for one in raised if one is not None and one.verdict == "verified"]
    assert found == ["", "main/loop_0", ""]
    assert "bit-equal, at main/loop_0, which is equal" in report.to_text(verbose=True)


def test_a_verdict_speaks_only_for_what_is_compared_in_the_same_way() -> None:
    """Of two equal rewrites one claims to be exact, which it is not."""
    model = Model(
        onnx.parser.parse_model("""
            <ir_version: 8, opset_import: ["" : 16]>
            g (float[N] a, float[N] b) => (float[N] x, float[N] y)
            { x = Reciprocal (a) y = Reciprocal (b) }
        """)
    )

    def divided(site: Site) -> Edit:
        above_one = np.nextafter(np.float32(1), np.float32(2))
        above = numpy_helper.from_array(np.array(above_one), site.fresh("above"))
        node = helper.make_node("Div", [above.name, site.node.input[0]], site.node.output)
        return Edit((node,), (above,), exact=site.place.index > 0)

    rule = Rule("divided", divided, lambda node, *_: node.op_type == "Reciprocal")
    round_ = Engine([rule]).round(model)
    verifying = Verifying(executor="reference")
    verdicts = verify_rounds(model, [round_], round_.proto, verifying, lambda _: None, known={})
    assert [rewrite.verdict for rewrite in verdicts.rewrites] == ["verified", "mismatch"]


def test_nodes_that_a_step_leaves_as_they_are_take_no_run_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Conv-11 and Relu-6 are Conv-22 and Relu-14 as they stand; so the whole model runs, alone."""
    model = onnx.parser.parse_model("""
        <ir_version: 6, opset_import: ["" : 11]>
        g (float[N,1,4,4] x) => (float[N,1,3,3] z) <float[1,1,2,2] w = {1, 2, 3, 4}>
        { y = Conv (x, w) z = Relu (y) }
    """)
    runs: list[list[str]] = []

    def counting(models: Models, terms: Requirements) -> Verification:
        runs.append([node.op_type for node in models.before.graph.node])
        return verify(models, terms)

    monkeypatch.setattr("passes.verify.rewrites.verifying.verify", counting)
    result = passes.upgrade(model, opset=22, executor="reference")
    assert runs == [["Conv", "Relu"]]
    assert list(result.model.graph.node) == list(model.graph.node)
    assert result.report.checked is not None
    assert result.report.checked.verdict == "verified"
