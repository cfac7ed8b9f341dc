"""The schedules of commands: which rules run, in which order, and on which models."""

from __future__ import annotations

import onnx
import pytest
from onnx import ModelProto

from passes.choices import RuleOptions
from passes.commands.schedules import SCHEDULES
from passes.ir.model import Model

#: (earlier, later): a schedule that holds both must have them in this order: loops are
#: recognized as they were written, work moves out of Scans without unused values and nodes,
#: and constants come last: in a body they tell more about its shapes.
_ORDER = (
    ("scan-8", "opset"),
    ("count-loop", "raise-loop"),
    ("raise-loop", "batch-inputs"),
    ("raise-loop", "flatten-scan"),
    ("prune-loop", "flatten-scan"),
    ("flatten-scan", "recognize-cell"),
    ("flatten-scan", "lower-scan"),
    ("prune-loop", "batch-inputs"),
    ("prune-loop", "recognize-cell"),
    ("raise-loop", "recognize-cell"),
    ("recognize-cell", "batch-inputs"),
    ("run-in-blocks", "batch-inputs"),
    ("recognize-cell", "regroup-sum"),
    ("regroup-sum", "batch-inputs"),
    ("regroup-sum", "hoist-invariants"),
    ("recognize-cell", "unroll"),
    ("batch-inputs", "lower-scan"),
    ("batch-inputs", "hoist-invariants"),
    ("hoist-invariants", "hoist-constants"),
    ("fold-constants", "hoist-invariants"),
    ("fold-constants", "hoist-constants"),
    ("lower-scan", "hoist-constants"),
    ("unroll", "hoist-constants"),
    ("unroll", "select-branches"),
    ("hoist-constants", "sink-weights"),
)


def test_schedules_name_rules_in_an_order_that_works() -> None:
    for schedule in SCHEDULES.values():
        later = tuple(phase for phase in schedule.phases if not phase.first)
        assert schedule.steps()[-1] == later
    ((upgrade,),) = SCHEDULES["upgrade"].steps()
    assert upgrade.rules == ("scan-8", "opset")


@pytest.mark.parametrize("name", SCHEDULES)
def test_rules_that_depend_on_each_other_are_in_the_order_that_works(name: str) -> None:
    rules = [rule for phase in SCHEDULES[name].phases for rule in phase.rules]
    wrong = [
        (earlier, later)
        for earlier, later in _ORDER
        if {earlier, later} <= set(rules) and rules.index(earlier) > rules.index(later)
    ]
    assert not wrong


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
