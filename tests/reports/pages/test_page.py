"""What a page shows, as data: lanes, cells, refusals, numbers and seconds."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from onnx import ModelProto

from passes.ir.model import Model
from passes.ir.protos import copied
from passes.ir.scope import subgraphs
from passes.reports.pages.drawing import Arrow, Box, shortened
from passes.reports.pages.lanes import lanes_of
from passes.reports.pages.page import Page, page_of
from passes.reports.pages.writing import as_html
from passes.reports.report_file import ReportFile
from passes.rule import RULES, Edit, NothingToDo, Rule, Site, nodes_of
from passes.testing import as_model
from tests.reports.pages.looking import PROJECTION, UNKNOWN_TRIPS, chain, page_after, report_of

FAST = {"executor": "reference", "verify_budget": 20}
MOVED = """<ir_version: 8, opset_import: ["" : 18]>
    rnn (float[B,3] h0, float[T,B,2] x) => (float[B,3] h, float[T,B,3] hs)
    <float[2,3] W = {1, 2, 3, -1, 0.5, 2}, float[3,3] R = {1, 0, 1, 0, 1, -1, 0.5, 0, 0}> {
        all = MatMul (x, W)
        h, hs = Scan <num_scan_inputs = 1, body = step (float[B,3] h_in, float[B,3] a)
            => (float[B,3] h_out, float[B,3] h_all) {
                b = MatMul (h_in, R)
                s = Add (a, b)
                h_out = Tanh (s)
                h_all = Identity (h_out)
            }> (h0, all)
    }"""


def model(text: str) -> Model:
    return Model(as_model(text))


class TestLanes:
    def test_what_left_the_loop_is_marked_on_both_sides(self) -> None:
        (lane,) = lanes_of(model(PROJECTION), model(MOVED), ())
        assert lane.after is not None
        assert lane.became == "becomes 1 Scan and 1 node outside; 1 node moved out of the loop"
        before = [mark for mark in lane.before.marks if mark.moved]
        after = [mark for mark in lane.after.marks if mark.moved]
        assert [(mark.label, mark.name, mark.box) for mark in before] == [("MatMul", "a", 0)]
        assert [(mark.label, mark.name, mark.box) for mark in after] == [("MatMul", "all", -1)]
        assert before[0].twin == after[0].twin >= 0

    def test_what_corresponds_has_one_number(self) -> None:
        (lane,) = lanes_of(model(PROJECTION), model(MOVED), ())
        assert lane.after is not None
        twins = [
            {mark.name: mark.twin for mark in side.marks if mark.kind == "node"}
            for side in (lane.before, lane.after)
        ]
        for name in ("b", "s", "h_out", "h_all"):
            assert twins[0][name] == twins[1][name] >= 0
        assert len(set(twins[0].values())) == 5

    def test_a_state_is_an_arrow_back(self) -> None:
        (lane,) = lanes_of(model(PROJECTION), None, ())
        drawing = lane.before
        names = [mark.name for mark in drawing.marks]
        backs = [arrow for arrow in drawing.arrows if arrow.back]
        assert backs == [Arrow(names.index("h_out"), names.index("h_in"), back=True)]
        kinds = Counter(mark.kind for mark in drawing.marks)
        assert kinds == {
            "node": 5,
            "input": 2,
            "result": 2,
            "state": 1,
            "scanned": 1,
            "collected": 1,
        }
        assert lane.facts == [
            "trip count T",
            "1 state",
            "1 scanned input",
            "1 collected output",
            "5 nodes",
        ]

    def test_one_that_stays_is_drawn_once(self) -> None:
        original = model(PROJECTION)
        (lane,) = lanes_of(original, original, ())
        assert (lane.became, lane.after) == ("stays as it is", None)

    def test_equal_loops_are_folded(self) -> None:
        (lane,) = lanes_of(Model(chain(60)), None, ())
        assert (len(lane.paths), lane.name) == (60, "main/layers.*/rnn")
        assert [len(one.paths) for one in lanes_of(Model(chain(8, kinds=4)), None, ())] == [2] * 4

    def test_a_large_body_is_cut(self) -> None:
        (lane,) = lanes_of(Model(chain(1, length=5000)), None, ())
        assert lane.before.cut == "150 of 5,002 nodes are drawn, the first in the file"
        assert len(lane.before.marks) < 160

    def test_in_a_branch(self) -> None:
        """A loop that an If may skip is drawn in its branch."""
        chosen = """<ir_version: 8, opset_import: ["" : 18]>
            rnn (bool any, float[2] h0, float[T,2] x) => (float[2] h) {
                h = If (any) <
                    then_branch = some () => (float[2] t) {
                        t = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] e) =>
                            (float[2] n) { n = Add (s, e) }> (h0, x)
                    },
                    else_branch = none () => (float[2] n) { n = Identity (h0) }>
            }"""
        plain = """<ir_version: 8, opset_import: ["" : 18]>
            rnn (bool any, float[2] h0, float[T,2] x) => (float[2] h) {
                h = Scan <num_scan_inputs = 1, body = step (float[2] s, float[2] e) =>
                    (float[2] n) { n = Add (s, e) }> (h0, x)
            }"""
        (lane,) = lanes_of(model(plain), model(chosen), ())
        assert lane.after is not None
        assert lane.after.boxes == [
            Box("If: then", loop=False),
            Box("Scan, opset 18", parent=0),
            Box("If: else", loop=False),
        ]
        assert lane.became == "becomes 1 Scan and 2 nodes outside"
        marks = lane.after.marks
        read = {
            marks[one.source].name for one in lane.after.arrows if marks[one.target].label == "If"
        }
        assert read == {"any", "n"}

    def test_one_that_is_written_out(self, tmp_path: Path) -> None:
        page = page_after(
            as_model(PROJECTION), tmp_path, ("unroll", {"dims": {"T": 2, "B": 1}, **FAST})
        )
        (lane,) = page.lanes
        assert lane.after is not None
        assert not lane.after.boxes
        assert lane.became == "becomes 14 nodes"
        assert [(step.rule, step.verdict) for step in lane.steps] == [("unroll", "verified")]

    def test_after_a_mismatch_both_sides_are_drawn(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A wrong rule exchanges an operator of the body."""

        def wrong(site: Site) -> Edit:
            """Write another body."""
            node = copied(site.node)
            ((_, body),) = subgraphs(node)
            if body.node[3].op_type != "Tanh":
                raise NothingToDo
            body.node[3].op_type = "Sigmoid"
            return Edit((node,))

        monkeypatch.setitem(RULES, "wrong-scan", Rule("wrong-scan", wrong, nodes_of("Scan")))
        page = page_after(
            as_model(PROJECTION), tmp_path, ("simplify", {"rules": ["wrong-scan"], **FAST})
        )
        assert page.banner.verdict == "Mismatch"
        assert "main/scan_0: does not agree with the original: h[" in page.banner.sentence
        assert "(reference executor, " in page.banner.sentence
        (lane,) = page.lanes
        assert lane.after is not None
        sides = [[mark.label for mark in side.marks] for side in (lane.before, lane.after)]
        assert ("Tanh" in sides[0], "Sigmoid" in sides[1]) == (True, True)
        assert [(step.rule, step.verdict) for step in lane.steps] == [("wrong-scan", "mismatch")]


class TestVerification:
    def test_a_cell_for_each_case(self, tmp_path: Path) -> None:
        report = report_of(as_model(PROJECTION), tmp_path, ("optimize", FAST))
        page = page_of(report)
        assert report.checked is not None
        assert page.table is not None
        whole, *_ = page.table.rows
        (cells,) = whole.strips.values()
        looks = Counter(cell.look for cell in cells)
        assert looks["good"] == report.checked.compared["reference"]
        assert (whole.title, whole.verdict, page.banner.look) == ("whole model", "verified", "good")
        first = cells[0]
        assert first.status == "compared"
        assert any(line.startswith("h0: float32[") for line in first.lines)

    def test_the_worst_element_of_what_is_near(self, tmp_path: Path) -> None:
        steps = ("optimize", {"allow_reassociation": True, **FAST})
        means = """<ir_version: 8, opset_import: ["" : 18]>
            means (float[4] h, float[64,4] x) => (float[4] y) <float part = {0.9}> {
                y = Scan <num_scan_inputs = 1, body = b (float[4] s, float[4] e) => (float[4] t) {
                    kept = Mul (s, part)
                    t = Add (kept, e)
                }> (h, x)
            }"""
        report = report_of(as_model(means), tmp_path, steps)
        worst = [case.worst for one in report.records if one.checked for case in one.checked.cases]
        assert any(" before and " in told and told.endswith("ULP)") for told in worst)

    def test_equal_rewrites_are_one_row(self, tmp_path: Path) -> None:
        page = page_after(chain(4), tmp_path, ("lower", FAST))
        assert page.table is not None
        rows = [(row.title, row.place, row.count) for row in page.table.rows[1:]]
        assert rows == [("lower-scan", "main/layers.0/rnn", 4)]


class TestPage:
    def test_refusals_by_code_with_what_may_clear_them(self, tmp_path: Path) -> None:
        options = {**FAST, "max_nodes": 50}
        page = page_after(as_model(UNKNOWN_TRIPS), tmp_path, ("unroll", options), strict=True)
        (line,) = page.lines
        assert line.startswith("passes unroll ")
        assert "--executor reference" in line
        assert "--max-nodes 50" in line
        assert " --strict --force --output " in line
        assert (page.banner.look, page.banner.verdict) == ("refused", "Incomplete")
        (group,) = page.refusals
        assert (group.code, group.count) == ("trip-count-not-static", 1)
        assert group.meaning
        assert [way.key for way in group.ways] == ["dim", "set", "max-trips"]
        assert [(one.path, one.first.rule) for one in group.shown] == [("main/loop_0", "unroll")]
        assert [one.code for one in page.lanes[0].refusals] == ["trip-count-not-static"]

    def test_numbers_before_and_after(self, tmp_path: Path) -> None:
        page = page_after(as_model(PROJECTION), tmp_path, ("upgrade", {"opset": 21, **FAST}))
        numbers = {one.name: (one.before, one.after) for one in page.numbers}
        assert numbers["opset"] == ("18", "21")
        assert numbers["IR version"] == ("8", "10")
        assert numbers["nodes"] == ("6", "6")
        assert page.bars[0].title == "phases"

    def test_nothing_to_do(self, tmp_path: Path) -> None:
        page = page_after(chain(1), tmp_path, ("raise", FAST))
        assert (page.banner.look, page.banner.verdict) == ("idle", "Nothing to do")

    def test_one_that_is_no_model(self, tmp_path: Path) -> None:
        page = page_after(ModelProto(), tmp_path, ("raise", FAST))
        assert (page.banner.look, page.banner.verdict) == ("bad", "Failed")
        assert not page.lanes
        assert "empty" in as_html(page)

    def test_a_report_that_was_stored_is_read_again(self, tmp_path: Path) -> None:
        report = report_of(as_model(PROJECTION), tmp_path, ("optimize", FAST))
        again = ReportFile.read(json.loads(report.to_json()))
        assert again.to_json() == report.to_json()
        assert as_html(page_of(again)) == as_html(page_of(report))


class Seen(HTMLParser):
    """The tags of a page, and its attributes that scripts could be in."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.scripts += [name for name, _ in attrs if name.startswith("on") or name == "src"]


HOSTILE = [
    "</script><script>alert({})</script>",
    "\"><img src=x onerror='alert(1)'>{}",
    "{{{{ 7 * 7 }}}}{}&amp;<!--",
    "ünïcödé \N{RIGHT-TO-LEFT OVERRIDE}\N{SNOWMAN}{}",
    "x" * 10_000 + "{}",
]


@pytest.mark.parametrize("name", HOSTILE, ids=["script", "quote", "template", "unicode", "long"])
def test_names_are_text(name: str, tmp_path: Path) -> None:
    """The page has the same elements; a bar of no time is not drawn, so they stay out of it."""
    plain, page = (
        replace(page_after(chain(2, name=one), tmp_path, ("lower", FAST)), bars=())
        for one in ("{}", name)
    )
    tags = []
    for one in (plain, page):
        seen = Seen()
        seen.feed(as_html(one))
        assert not seen.scripts
        tags.append(seen.tags)
    assert tags[0] == tags[1]
    assert len(as_html(page)) < len(as_html(plain)) + 100_000


def test_long_names_are_shortened_in_the_middle() -> None:
    assert shortened("a" * 100 + "/end", 20) == "aaaaaaaaa…aaaaa/end"
    assert shortened("short") == "short"


def test_a_page_is_one_file(tmp_path: Path) -> None:
    page: Page = page_after(chain(1), tmp_path, ("lower", FAST))
    text = as_html(page)
    for outside in ("http://", "https://", "@import", "url("):
        found = text.count(outside)
        assert found == (text.count("http://www.w3.org/") if outside == "http://" else 0), outside
