"""How far down a model goes, and what stops it."""

from __future__ import annotations

import json

import pytest
from onnx import parser

import passes
from passes.rules.inline_function.chosen import UnknownFunction
from tests.written import changed

#: RegexFullMatch came with opset 20, and nothing before says what it does.
STOPPED = """<ir_version: 8, opset_import: ["" : 21, "my" : 1]>
    g (string[2] x) => (bool[2] y, bool[2] z) { y = my.f (x) [not] z = Not (y) }
    <domain: "my", opset_import: ["" : 21]>
    f (x) => (y) { [match] y = RegexFullMatch <pattern = "a+"> (x) }"""
PLAIN = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Neg (x) }'


def test_a_model_that_goes_all_the_way() -> None:
    found = passes.lowest_opset(parser.parse_model(PLAIN))
    assert (found.opset, found.lowest) == (17, 7)
    assert [step.opset for step in found.steps] == list(range(16, 6, -1))
    assert all(step.goes for step in found.steps)
    assert found.to_text().splitlines()[:2] == [
        "model: opset 17, can be written down to 7 (nothing was executed)",
        "  16: can be written",
    ]


def test_what_stops_it_is_told_at_each_step() -> None:
    found = passes.lowest_opset(parser.parse_model(STOPPED))
    assert (found.opset, found.lowest) == (21, 20)
    assert [step.goes for step in found.steps] == [True, *[False] * 13]
    (refusal,) = found.steps[1].refusals
    assert (refusal.path, refusal.op, refusal.code) == (
        "my.f/match",
        "RegexFullMatch",
        "no-equivalent",
    )
    told = found.to_text().splitlines()[2]
    assert told.startswith("  19: my.f/match (RegexFullMatch): ")
    assert told.endswith(" [no-equivalent]")


def test_the_same_as_data() -> None:
    found = passes.lowest_opset(parser.parse_model(STOPPED))
    said = json.loads(found.to_json())
    assert (said["file"], said["opset"], said["lowest"]) == ("", 21, 20)
    assert said["executed"] is False
    assert said["steps"][0] == {"opset": 20, "goes": True, "refusals": [], "failure": ""}
    assert said["steps"][1]["refusals"][0]["path"] == "my.f/match"


def test_functions_are_inlined_where_that_is_wanted() -> None:
    found = passes.lowest_opset(parser.parse_model(STOPPED), inline=["my::f"])
    assert found.steps[1].refusals[0].path.startswith("main/")
    with pytest.raises(UnknownFunction):
        passes.lowest_opset(parser.parse_model(STOPPED), inline=["no"])


def test_more_than_one_refusal_is_counted_and_shown_on_demand() -> None:
    twice = changed(STOPPED, {"[not] z = Not (y)": "[again] z = RegexFullMatch (x)"})
    step = passes.lowest_opset(parser.parse_model(twice)).steps[1]
    assert step.to_text().endswith("(and 1 more)")
    assert len(step.to_text(verbose=True).splitlines()) == 2


def test_a_model_at_the_oldest_opset_goes_nowhere() -> None:
    found = passes.lowest_opset(parser.parse_model(changed(PLAIN, {"17": "7"})))
    assert (found.lowest, found.steps) == (7, [])
    said = "model: opset 7, can be written in no older one (nothing was executed)"
    assert found.to_text() == said
