"""What a cast reports: its verdict, what keeps its type, and the errors, for people and as data."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from passes.commands.explanation import explanation
from passes.errors import End
from passes.reports.json_values import read_as
from passes.reports.pages.errors import errors_of
from passes.reports.precision import CODES, Casting, Kept, OutputError, Within
from passes.reports.report import Checked, Report, Size
from passes.reports.summary import Row, Summary

SIZE = Size(5, 1, {"Add": 2, "Scan": 1, "Tanh": 2})
SUMS = [
    Kept("accumulator", f"'{name}' adds up", [f"main/{name}.body/add"], {"Add": 1})
    for name in ("rnn_0", "rnn_1")
]
DECIDES = Kept("decides", "decides when a loop ends", ["main/a", "main/b", "main/c"], {"Less": 3})
CAST = Casting("float32", "float16", (12, 16), (19_100_000, 9_600_000), 4, [*SUMS, DECIDES])
WITHIN = Within(
    None,
    [
        OutputError("y", 16, 4e-4, (0, 1), 0.5, 0.5002),
        OutputError("y", 128, 9e-4, (3, 17), 0.4125, 0.4121),
        OutputError("h", 16, 1e-3, (2,), 1.0, 1.001),
    ],
    grows=["y"],
)
REPORT = Report(
    "cast", "m.onnx", (17, 17), (SIZE, SIZE), checked=Checked("verified", ""), casts=[CAST]
)
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "precision.md"
BEGIN, END = "<!-- codes of casts -->\n", "<!-- end of codes of casts -->\n"


def row(within: Within) -> Row:
    report = json.loads(replace(REPORT, within=within).to_json())
    return Row("m.onnx", "new.onnx", End.WRITTEN, 0, report=report)


def test_the_first_line_tells_what_changed() -> None:
    assert REPORT.to_text().splitlines()[0] == (
        "m.onnx: 12 of 16 values in float16, weights 19.1 MB -> 9.6 MB, 4 Casts, opset 17, "
        "5 nodes, 1 loop, 3 operators"
    )


def test_stored_weights_are_no_values() -> None:
    stored = Casting("float32", "int8", weights=(8_400_000, 2_100_000))
    assert stored.summary == "weights 8.4 MB -> 2.1 MB in int8"


def test_what_keeps_its_type_is_grouped_by_its_reason() -> None:
    assert REPORT.to_text().splitlines()[1:3] == [
        "  stays float32: 3 x main/* (3 Less): decides when a loop ends [decides]",
        "  stays float32: 2 x main/rnn_*.body/add (2 Add): 'rnn_*' adds up [accumulator]",
    ]


def test_a_verbose_report_names_each_node() -> None:
    lines = REPORT.to_text(verbose=True).splitlines()
    assert lines[1] == "  stays float32: main/rnn_0.body/add (Add): 'rnn_0' adds up [accumulator]"
    assert "main/a, main/b, main/c (3 Less)" in lines[3]


def test_what_was_verified_is_all_but_the_cast() -> None:
    text = replace(REPORT, within=WITHIN).to_text()
    assert "  all but the cast verified" in text
    assert "  the error of 'h' is 1.0e-3 of the largest element at 16" in text


def test_a_cast_of_nothing_changes_nothing() -> None:
    nothing = replace(REPORT, casts=[replace(CAST, values=(0, 16), weights=(8, 8))])
    assert nothing.unchanged
    assert nothing.to_text().startswith("m.onnx: nothing to do\n  stays float32: ")


def test_the_errors_as_a_table() -> None:
    table = errors_of(WITHIN)
    assert table.lengths == ["at 16", "at 128"]
    y, h = table.rows
    assert (y.output, y.cells, y.grows) == ("y", ["4.0e-4", "9.0e-4"], True)
    assert y.worst == "[3, 17]: 0.4121, was 0.4125"
    assert (h.cells, h.grows) == (["1.0e-3", ""], False)


def test_the_report_is_read_as_it_was_written() -> None:
    written = json.loads(replace(REPORT, within=WITHIN).to_json())
    within: Within = read_as(Within, written["within"])
    assert [*within.lines(verbose=True)] == [*WITHIN.lines(verbose=True)]
    cast: Casting = read_as(Casting, written["casts"][0])
    assert (cast.summary, cast.folded) == (CAST.summary, CAST.folded)


def test_a_build_counts_casts_by_their_errors() -> None:
    summary = Summary()
    for errors in ([2e-4], [8e-4], [3e-3], []):
        summary.add(row(Within(None, [OutputError("y", None, one) for one in errors])))
    summary.add(row(Within(None, [OutputError("y", None, 0.1, overflows=2)])))
    summary.add(row(Within(None, failure="no case ran")))
    assert Within(None, [OutputError("y", None, 0.1, overflows=2)]).error == inf
    assert summary.to_text().splitlines()[-6:] == [
        "casts:",
        "  infinite           1",
        "  not executed       1",
        "  within 0           1",
        "  within 1e-2        1",
        "  within 1e-3        2",
    ]


def test_each_code_that_is_given_has_a_meaning() -> None:
    calls = (
        node
        for path in sorted((ROOT / "passes" / "precision").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    given = {
        f"{call.args[0].value}"
        for call in calls
        if call.func.id == "Reason" and isinstance(call.args[0], ast.Constant)  # type: ignore[attr-defined]
    }
    assert given <= CODES.keys()


def test_explain_knows_the_codes() -> None:
    for code, meaning in CODES.items():
        assert f"{code} (cast): {meaning}" in str(explanation(code))


def test_the_page_shows_the_codes(request: pytest.FixtureRequest) -> None:
    rows = [f"| `{code}` | {meaning} |\n" for code, meaning in CODES.items()]
    table = "".join(["| code | meaning |\n", "|---|---|\n", *rows])
    before, _, rest = PAGE.read_text().partition(BEGIN)
    shown, _, after = rest.partition(END)
    if request.config.getoption("--update-golden"):
        PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}")
        shown = table
    assert shown == table
