"""`--prove` on rewrites: the verdict in the report, and the draws that it adds to verification."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import onnx.parser
import pytest
from onnx import ModelProto, helper

import passes
from passes.choices import Proving, Verifying
from passes.commands.rewriting import Lower
from passes.commands.schedules import SCHEDULES
from passes.engine.outcome import Outcome, Pass
from passes.ir.protos import copied, replace_all
from passes.session import Session
from tests.proving.test_clues import HEAD, wrong

SUM = """(float[T,2] x, float[2] h) => (float[2] y) {
    y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] r) => (float[2] t) {
        t = Add (s, r) }> (h, x) }"""


def parsed(graph: str) -> ModelProto:
    return onnx.parser.parse_model(HEAD + graph)


class Wrong(Pass):
    """A command with an outcome that is wrong at rare sizes."""

    def outcome(self, *arguments: Any) -> Outcome:
        made = super().outcome(*arguments)
        _, after = wrong("a failure of a body that need not run")
        return replace(made, proto=parsed(after))


def test_what_a_proof_leaves_open_is_drawn_when_a_rewrite_is_verified() -> None:
    before, _ = wrong("a failure of a body that need not run")
    session = Session([Wrong(SCHEDULES["simplify"])], Verifying("reference"))
    checked = session.run(parsed(before)).report.checked
    assert checked is not None
    assert checked.verdict == "verified"
    with pytest.raises(passes.Mismatch, match="sought by the proof") as raised:
        replace(session, proving=[Proving()]).run(parsed(before))
    assert raised.value.report.proof is not None
    assert raised.value.report.proof.code == "fails"


def test_the_report_has_the_proof_where_it_is_asked_for() -> None:
    plain = passes.lower(parsed(SUM), verify=False)
    assert plain.report.proof is None
    proven = passes.lower(parsed(SUM), verify=False, prove=True)
    assert proven.report.proof is not None
    assert proven.report.proof.is_proven


def test_each_row_of_an_unrolled_loop_is_compared() -> None:
    rows = """(float[24] x, float[N] y) => (float[24,N] z) {
        z = Scan <num_scan_inputs = 1, body = b (float row) => (float[N] out) {
            out = Sub (y, row) }> (x) }"""
    found = passes.unroll(parsed(rows), verify=False, prove=True).report.proof
    assert found is not None
    assert found.sentence() == "proven for all sizes"


def test_a_rewrite_in_a_deep_model_is_proven() -> None:
    model = parsed(SUM)
    names = ["x", *map("x{}".format, range(600))]
    deep = [helper.make_node("Tanh", [one], [other]) for one, other in pairwise(names)]
    loop = copied(model.graph.node[0])
    loop.input[1] = names[-1]
    replace_all(model.graph.node, [*deep, loop])
    found = passes.lower(model, verify=False, prove=True).report.proof
    assert found is not None
    assert found.sentence() == "proven for all sizes"


def test_without_time_for_a_proof_nothing_is_written_if_one_is_required() -> None:
    with pytest.raises(passes.NotProduced, match=r"not proven: budget: more than 0 s"):
        passes.lower(parsed(SUM), verify=False, require_proof="all", prove_budget=0)


def test_what_is_required_is_proven() -> None:
    assert Lower().proving() is None
    assert Lower(prove=True, prove_budget=3).proving() == Proving(3.0)
    assert Lower(require_proof="all").proving() == Proving(required="all")


def test_a_command_of_a_pipeline_may_require_a_proof() -> None:
    pipeline = passes.Pipeline(["simplify", ("lower", {"require_proof": "all", "prove_budget": 0})])
    with pytest.raises(passes.NotProduced, match="not proven: budget"):
        pipeline.run(parsed(SUM))


def test_the_function_prove() -> None:
    lowered = passes.lower(parsed(SUM))
    assert passes.prove(parsed(SUM), lowered).is_proven
    before, after = wrong("T > 121")
    found = passes.prove(parsed(before), parsed(after), executor="reference")
    assert isinstance(found, passes.Proof)
    assert (found.verdict, found.inputs) == ("disproven", ("x: float32[122]",))
