"""The schedules of commands: which rules run, in which order, and on which models."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto

from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES, check_order
from passes.ir.model import Model


def test_schedules_name_rules_in_an_order_that_works() -> None:
    for schedule in SCHEDULES.values():
        later = tuple(phase for phase in schedule.phases if not phase.first)
        assert schedule.steps()[-1] == later
    ((upgrade,),) = SCHEDULES["upgrade"].steps()
    assert upgrade.rules == ("scan-8", "opset")


def test_the_wrong_order_is_refused() -> None:
    check_order(["scan-8", "other", "opset"])
    check_order(["opset"])
    with pytest.raises(ValueError, match="the rule 'scan-8' must run before 'opset'"):
        check_order(["opset", "scan-8"])


def test_the_upgrade_in_front_is_for_models_that_hold_a_scan_8() -> None:
    ((upgrade,), _) = SCHEDULES["lower"].steps()

    def started(model: ModelProto, asked: int | None = None) -> bool:
        assert upgrade.start is not None
        return upgrade.start(Model(model), asked, RuleOptions()) is not None

    text = """
        <ir_version: 3, opset_import: ["" : 8]>
        g (bool c, float[1,T] x) => (float[1,T] y) {
          y = If (c) <then_branch = a () => (float[1,T] p) {
            p = Scan <num_scan_inputs = 1, body = b (float e) => (float o) { o = Neg (e) }> ("", x)
          }, else_branch = n () => (float[1,T] p) { p = Neg (x) }>
        }
    """
    model = onnx.parser.parse_model(text)
    assert started(model)
    model.graph.node[0].attribute[0].g.node[0].domain = "other"
    assert not started(model)
    model.graph.node[0].attribute[0].g.node[0].domain = ""
    model.opset_import[0].version = 9
    assert not started(model), "there, a Scan is of the later form"
    assert started(model, 18), "the user named an opset"
