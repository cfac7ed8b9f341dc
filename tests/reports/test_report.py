"""Reports: what was done, for people and as JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import onnx
from onnx import helper

from passes.engine.rounds import Refusal, Rewritten
from passes.ir.model import Model
from passes.ir.places import loop_of, walk_model
from passes.ir.purposes import Extra
from passes.ir.scope import Place, Scope
from passes.reports.report import Checked, Record, Report, Size
from passes.rule import Edit, Refused, Rule
from passes.verify.compare.compare import Alike, Errors
from passes.verify.compare.verdicts import Verification

NESTED = """
<ir_version: 10, opset_import: ["" : 21]>
g (int64 n, bool c, float[2] h) => (float[2] y) {
   x = Neg (h)
   [outer] y = Loop <body = b (int64 i, bool go, float[2] s) => (bool on, float[2] t) {
      on = Identity (go)
      t = If (c) <then_branch = yes () => (float[2] p) {
         p = Loop <body = d (int64 j, bool more, float[2] q) => (bool also, float[2] r) {
            also = Identity (more) r = Neg (q) }> (n, "", s) },
         else_branch = no () => (float[2] e) { e = Identity (s) }>
   }> (n, "", x)
}
"""
GRAPH = helper.make_graph([helper.make_node("Scan", ["x"], ["y"], name="cell")], "g", [], [])
PLACE = Place(GRAPH.node[0], 0, Scope("main", (0,), GRAPH))
RULE = Rule("scan-8", lambda site: Edit(()), lambda *_: True)
SIZE = Size(5, 1, {"Add": 2, "Scan": 1, "Tanh": 2})
GROWN = Size(8, 1, {"Add": 2, "Identity": 3, "Scan": 1, "Tanh": 2})
VERIFIED = Checked("verified", "", {"reference": 12, "onnxruntime": 9})


def rewritten(rule: str = "scan-8", note: str = "nest", checked: Checked | None = None) -> Record:
    made = Rewritten(
        Rule(rule, RULE.rewrite, RULE.considers), PLACE.scope, PLACE.index, Edit((), note=note)
    )
    return Record.rewritten(made, checked)


def refused() -> Record:
    reason = Refused("unknown-rank", "the rank of 'h' is not known", ["h"])
    return Record.refused(Refusal(RULE, PLACE, reason))


# -- verdicts ---------------------------------------------------------------------------------


def test_a_verdict_in_short() -> None:
    verification = Verification(
        "verified",
        "",
        tallies={"reference": Counter(compared=12), "onnxruntime": Counter(compared=3, crossed=6)},
        errors=Errors(1e-6, 1e-7, 2, Alike.NEAR),
        notes=("one is slow",),
        cut=("large",),
    )
    checked = verification.short
    assert checked.compared == {"reference": 12, "onnxruntime": 3}
    assert checked.crossed == {"onnxruntime": 6}
    assert (checked.max_absolute_error, checked.max_ulp_error) == (1e-6, 2.0)
    assert (checked.notes, checked.not_run) == (("one is slow",), ("large",))
    assert str(checked) == (
        "verified: 12 cases in reference, 3 cases in onnxruntime, "
        "6 with the new model in onnxruntime, the original in reference"
    )


def test_bit_equal_is_said() -> None:
    assert str(VERIFIED) == "verified: 12 cases in reference, 9 cases in onnxruntime, bit-equal"


def test_and_where_signs_of_zero_differ_that() -> None:
    zeros = replace(VERIFIED, alike="values")
    assert str(zeros).endswith("9 cases in onnxruntime, equal but for signs of zero")


def test_other_verdicts_say_why() -> None:
    assert str(Checked("not-compared", "no inputs")) == "not-compared (no inputs)"
    assert str(Checked("mismatch", "y[0] is 1 before and 2 after")) == (
        "differs: y[0] is 1 before and 2 after"
    )


# -- records ----------------------------------------------------------------------------------


def test_a_record_of_a_rewrite() -> None:
    record = rewritten(checked=VERIFIED)
    assert (record.rule, record.path, record.op) == ("scan-8", "main/cell", "Scan")
    assert (record.outcome, record.note, record.checked) == ("rewritten", "nest", VERIFIED)


def test_a_record_of_a_refusal() -> None:
    record = refused()
    assert (record.outcome, record.code, record.culprits) == ("refused", "unknown-rank", ("h",))
    assert record.sentence == "the rank of 'h' is not known"
    assert not record.optional


# -- for people -------------------------------------------------------------------------------


def test_text_of_an_upgrade() -> None:
    steps = [rewritten("opset", "Add-7 to opset 13") for _ in range(3)]
    report = Report(
        "upgrade",
        "a.onnx",
        (8, 13),
        (SIZE, GROWN),
        [rewritten(checked=VERIFIED), *steps, rewritten("opset", "Abs-6 to opset 13")],
        checked=VERIFIED,
    )
    behind = [
        "  opset: 1 x Abs-6 to opset 13",
        "  opset: 3 x Add-7 to opset 13",
        f"  whole model {VERIFIED}",
    ]
    assert report.to_text().splitlines() == [
        "a.onnx: opset 8 -> 13, 5 -> 8 nodes, 1 loop, 3 -> 4 operators",
        "  scan-8: main/cell (Scan), nest; verified",
        *behind,
    ]
    assert report.to_text(verbose=True).splitlines() == [
        "a.onnx: opset 8 -> 13, 5 -> 8 nodes, 1 loop, 3 -> 4 operators",
        "  scan-8: main/cell (Scan), nest",
        f"          {VERIFIED}",
        *behind,
    ]


def test_text_has_a_line_a_rule_and_loop() -> None:
    unknown = Checked("not-compared", "no inputs")
    outside = replace(rewritten("fold-constants", checked=VERIFIED), path="main/a_1", loop="main")
    inside = replace(rewritten("fold-constants", checked=VERIFIED), path="main/cell.body/b_2")
    again = rewritten("prune-loop", checked=VERIFIED)
    other = replace(inside, checked=unknown)
    records = [inside, outside, again, inside, outside, again, other]
    report = Report("optimize", "a.onnx", (13, 13), (SIZE, SIZE), records)
    assert report.to_text().splitlines()[1:] == [
        "  fold-constants: main/cell, 3 nodes; 2 verified, 1 not-compared",
        "  fold-constants: main, 2 nodes; verified",
        "  prune-loop: main/cell (Scan), 2 times; verified",
    ]
    assert len(report.to_text(verbose=True).splitlines()) == 1 + 2 * len(records)


def test_text_says_what_extra_nodes_are_for() -> None:
    guards = (Extra(9, "guard the lengths", "--assume valid-inputs"), Extra(2, "count the rows"))
    first = replace(rewritten(), extras=guards)
    second = replace(first, path="main/other", loop="main/other", extras=guards[:1])
    report = Report("upgrade", "a.onnx", (8, 9), (SIZE, GROWN), [first, second])
    assert report.to_text().splitlines()[1:] == [
        "  scan-8: 2 x main/* (Scan), nest",
        "  18 nodes guard the lengths; --assume valid-inputs leaves them out",
        "  2 nodes count the rows",
    ]
    assert report.to_text(verbose=True).splitlines()[1:4] == [
        "  scan-8: main/cell (Scan), nest",
        "          9 nodes guard the lengths; --assume valid-inputs leaves them out",
        "          2 nodes count the rows",
    ]
    told = json.loads(report.to_json())["records"][1]["extras"]
    option = "--assume valid-inputs"
    assert told == [{"nodes": 9, "purpose": "guard the lengths", "option": option}]


def test_the_loop_of_a_record() -> None:
    model = onnx.parser.parse_model(NESTED)
    loops = {place.path: loop_of(place)[0] for place in walk_model(model)}
    assert loops == {
        "main/neg_0": "main",
        "main/outer": "main/outer",
        "main/outer.body/identity_0": "main/outer",
        "main/outer.body/if_1": "main/outer",
        "main/outer.body/if_1.then_branch/loop_0": "main/outer.body/if_1.then_branch/loop_0",
        "main/outer.body/if_1.then_branch/loop_0.body/identity_0": (
            "main/outer.body/if_1.then_branch/loop_0"
        ),
        "main/outer.body/if_1.then_branch/loop_0.body/neg_1": (
            "main/outer.body/if_1.then_branch/loop_0"
        ),
        "main/outer.body/if_1.else_branch/identity_0": "main/outer",
    }
    assert Size.of(Model(model)) == Size(8, 2, {"Identity": 3, "If": 1, "Loop": 2, "Neg": 2})


def test_text_of_a_refusal() -> None:
    report = Report("upgrade", "", (8, 9), (SIZE, GROWN), [refused()])
    assert report.refusals == report.records
    assert report.to_text().splitlines() == [
        "model: opset 8 -> 9, 5 -> 8 nodes, 1 loop, 3 -> 4 operators",
        "  refused main/cell (Scan): the rank of 'h' is not known [rule scan-8, code unknown-rank]",
    ]
    twice = replace(report, records=[refused(), refused()])
    assert "is not known (and 1 more) [rule" in twice.to_text()
    assert twice.to_text(verbose=True).splitlines()[1:] == report.to_text().splitlines()[1:] * 2


def test_text_where_there_was_nothing_to_do() -> None:
    report = Report("upgrade", "a.onnx", (9, 9), (SIZE, SIZE))
    assert report.unchanged
    assert report.to_text() == "a.onnx: nothing to do, it is at opset 9"
    assert not Report("upgrade", "a.onnx", (9, 9), (SIZE, GROWN), [rewritten()]).unchanged


def test_text_of_a_comparison_with_what_was_left_out() -> None:
    checked = Checked("verified", "", {"reference": 1}, not_run=("large",), notes=("it is slow",))
    report = Report("verify", "a.onnx", (8, 9), (SIZE, GROWN), checked=checked)
    assert report.to_text().splitlines() == [
        "a.onnx: opset 8, against opset 9",
        "  whole model verified: 1 case in reference, bit-equal",
        "          note: it is slow",
        "          out of time for: large",
    ]


# -- as JSON ----------------------------------------------------------------------------------


def test_json_holds_everything_and_is_the_same_each_time() -> None:
    def made() -> Report:
        records = [rewritten(checked=VERIFIED), refused()]
        return Report("upgrade", "ä.onnx", (8, 9), (SIZE, GROWN), records, checked=VERIFIED)

    text = made().to_json()
    assert text == made().to_json()
    assert text.endswith("}\n")
    assert "ä.onnx" in text
    told = json.loads(text)
    assert (told["command"], told["opsets"]) == ("upgrade", [8, 9])
    assert [(size["nodes"], size["loops"]) for size in told["sizes"]] == [(5, 1), (8, 1)]
    assert told["sizes"][1]["operators"]["Identity"] == 3
    assert told["records"][0]["checked"]["compared"] == {"reference": 12, "onnxruntime": 9}
    assert told["records"][1]["culprits"] == ["h"]
    assert told["checked"]["verdict"] == "verified"


def test_json_of_an_infinite_error_is_json() -> None:
    """The difference of two large doubles."""
    checked = Verification("mismatch", "", errors=Errors(math.inf, 2.0, math.inf)).short

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = Report("verify", "", (8, 8), (SIZE, GROWN), checked=checked).to_json()
    told = json.loads(text, parse_constant=refuse)
    assert told["checked"]["max_absolute_error"] > 1e308
