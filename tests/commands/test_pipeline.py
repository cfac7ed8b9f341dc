"""Commands one after the other, verified once."""

from __future__ import annotations

import re
from typing import Any

import pytest

import passes
from passes.commands.registry import UnknownCommand
from passes.commands.rewriting import Lower, Unroll
from passes.engine.outcome import Outcome, Pass
from passes.errors import Mismatch, NotProduced
from passes.ir.scope import walk_model
from passes.testing import as_model
from tests.written import changed

#: A running sum over three steps.
SUM = """
    <ir_version: 3, opset_import: ["" : 8]>
    g (float[1,3,2] x, float[1,2] s0) => (float[1,2] s) {
      s = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] e) => (float[2] c) {
        c = Add (a, e)
      }> ("", s0, x)
    }
"""


def test_one_report_and_one_verification_of_all_commands() -> None:
    result = passes.Pipeline(["upgrade", Lower(), ("unroll", {"max_nodes": 100})]).run(
        as_model(SUM)
    )
    assert not {"Scan", "Loop"} & {place.node.op_type for place in walk_model(result.model)}
    report = result.report
    assert report.command == "upgrade, lower, unroll"
    assert report.opsets == (8, 21)
    assert [size.loops for size in report.sizes] == [1, 0]
    rules = [record.rule for record in report.records if record.outcome == "rewritten"]
    assert rules == ["scan-8", "lower-scan", "unroll"]
    assert {record.checked.verdict for record in report.records if record.checked} == {"verified"}
    assert report.checked is not None
    assert report.checked.verdict == "verified"


def test_it_does_what_the_commands_do_one_by_one() -> None:
    together = passes.Pipeline(["upgrade", "lower"]).run(as_model(SUM)).model
    upgraded = passes.upgrade(as_model(SUM)).model
    assert passes.lower(upgraded).model == together


def test_dims_are_fixed_for_all_commands() -> None:
    text = changed(SUM, {"float[1,3,2] x": "float[1,T,2] x"})
    result = passes.Pipeline(["upgrade", Unroll(dims={"T": 2})]).run(as_model(text))
    assert result.report.sizes[1].loops == 0
    with pytest.raises(ValueError, match="the dim 'T' is fixed to 2 and to 3"):
        passes.Pipeline([Unroll(dims={"T": 2}), Unroll(dims={"T": 3})]).run(as_model(text))


def test_a_command_that_refuses_stops_the_pipeline() -> None:
    with pytest.raises(NotProduced, match="opset 9 was asked for") as raised:
        passes.Pipeline(["upgrade", Lower(opset=9)]).run(as_model(SUM))
    assert raised.value.report.command == "lower"


def test_a_wrong_rewrite_of_a_later_command_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Pass.outcome

    def wrong(self: Pass, *arguments: Any) -> Outcome:
        made = right(self, *arguments)
        if self.schedule.name == "lower":
            for place in walk_model(made.proto):
                if place.node.op_type == "Add" and place.scope.outer is not None:
                    place.node.op_type = "Sub"
        return made

    monkeypatch.setattr(Pass, "outcome", wrong)
    with pytest.raises(Mismatch):
        passes.Pipeline(["upgrade", "lower"]).run(as_model(SUM))


@pytest.mark.parametrize(
    ("steps", "kind", "sentence"),
    [
        ([], ValueError, "a pipeline has at least one command"),
        ("upgrade", TypeError, "steps is 'upgrade', not a list of commands"),
        ([{"command": "lower"}], TypeError, "a step is {'command': 'lower'}, not a name or a pair"),
        (["upgrde"], UnknownCommand, "there is no command 'upgrde'; the nearest are upgrade"),
        ([("unroll", {"max_nodse": 3})], TypeError, "unroll() got an unexpected keyword argument"),
    ],
)
def test_what_is_no_pipeline(
    steps: list[passes.Pipeline], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=re.escape(sentence)):
        passes.Pipeline(steps)  # type: ignore[arg-type]  # which is what is tested
