"""Reports: what was done, for people and as JSON."""

from __future__ import annotations

import json
import math

from onnx import helper

from passes.report import Checked, Record, Report
from passes.rounds import Refusal, Rewritten
from passes.rule import Edit, Refused, Rule
from passes.scope import Place, Scope
from passes.verify.compare import Errors
from passes.verify.verdicts import Tally, Verification

GRAPH = helper.make_graph([helper.make_node("Scan", ["x"], ["y"], name="cell")], "g", [], [])
PLACE = Place(GRAPH.node[0], 0, Scope("main", (0,), GRAPH))
RULE = Rule("scan-8", lambda site: Edit(()), lambda *_: True)
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
        tallies={"reference": Tally(compared=12), "onnxruntime": Tally(compared=3, crossed=6)},
        errors=Errors(1e-6, 1e-7, 2),
        notes=("one is slow",),
        cut=("large",),
    )
    checked = Checked.of(verification)
    assert checked.compared == {"reference": 12, "onnxruntime": 3}
    assert checked.crossed == {"onnxruntime": 6}
    assert (checked.max_absolute_error, checked.max_ulp_error) == (1e-6, 2.0)
    assert (checked.notes, checked.not_run) == (("one is slow",), ("large",))
    assert str(checked) == (
        "verified: 12 cases in reference, 3 cases in onnxruntime, "
        "6 in onnxruntime against the reference"
    )


def test_bit_equal_is_said() -> None:
    assert str(VERIFIED) == "verified: 12 cases in reference, 9 cases in onnxruntime, bit-equal"


def test_other_verdicts_say_why() -> None:
    assert str(Checked("not-compared", "no inputs")) == "not-compared (no inputs)"
    assert str(Checked("mismatch", "y[0] is 1 before and 2 after")) == (
        "mismatch (y[0] is 1 before and 2 after)"
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
        5,
        [rewritten(checked=VERIFIED), *steps, rewritten("opset", "Abs-6 to opset 13")],
        checked=VERIFIED,
    )
    assert report.to_text().splitlines() == [
        "a.onnx: opset 8 -> 13, 5 nodes",
        "  scan-8: main/cell (Scan), nest",
        f"          {VERIFIED}",
        "  opset: 1 x Abs-6 to opset 13",
        "  opset: 3 x Add-7 to opset 13",
        f"  whole model {VERIFIED}",
    ]


def test_text_of_a_refusal() -> None:
    report = Report("upgrade", "", (8, 9), 1, [refused()])
    assert report.refusals == report.records
    assert report.to_text().splitlines() == [
        "model: opset 8 -> 9, 1 nodes",
        "  refused main/cell (Scan): the rank of 'h' is not known",
        "          rule scan-8, code unknown-rank",
    ]


def test_text_where_there_was_nothing_to_do() -> None:
    report = Report("upgrade", "a.onnx", (9, 9), 4)
    assert report.unchanged
    assert report.to_text() == "a.onnx: nothing to do, it is at opset 9"
    assert not Report("upgrade", "a.onnx", (9, 9), 4, [rewritten()]).unchanged


def test_text_of_a_comparison_with_what_was_left_out() -> None:
    checked = Checked("verified", "", {"reference": 1}, not_run=("large",), notes=("it is slow",))
    report = Report("verify", "a.onnx", (8, 9), 4, checked=checked)
    assert report.to_text().splitlines() == [
        "a.onnx: opset 8, against opset 9",
        "  whole model verified: 1 cases in reference, bit-equal",
        "          note: it is slow",
        "          out of time for: large",
    ]


# -- as JSON ----------------------------------------------------------------------------------


def test_json_holds_everything_and_is_the_same_each_time() -> None:
    def made() -> Report:
        records = [rewritten(checked=VERIFIED), refused()]
        return Report("upgrade", "ä.onnx", (8, 9), 4, records, checked=VERIFIED)

    text = made().to_json()
    assert text == made().to_json()
    assert text.endswith("}\n")
    assert "ä.onnx" in text
    told = json.loads(text)
    assert (told["command"], told["opsets"], told["nodes"]) == ("upgrade", [8, 9], 4)
    assert told["records"][0]["checked"]["compared"] == {"reference": 12, "onnxruntime": 9}
    assert told["records"][1]["culprits"] == ["h"]
    assert told["checked"]["verdict"] == "verified"


def test_json_of_an_infinite_error_is_json() -> None:
    """The difference of two large doubles."""
    checked = Checked.of(Verification("mismatch", "", errors=Errors(math.inf, 2.0, math.inf)))

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    text = Report("verify", "", (8, 8), 0, checked=checked).to_json()
    told = json.loads(text, parse_constant=refuse)
    assert told["checked"]["max_absolute_error"] > 1e308
