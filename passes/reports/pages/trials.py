"""The table of a verification: rewrites down, cases across, a cell for each verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from passes.loops.alike import pattern_of
from passes.reports.pages.drawing import shortened
from passes.reports.report import Checked, Record

#: Rows that are shown; those that agree in all cases are the first to be left out.
_MOST_ROWS = 150
#: The classes of cells: how a status looks.
_LOOKS = {
    "compared": "good",
    "crossed": "good",
    "refined": "odd",
    "both failed": "idle",
    "not run": "idle",
    "mismatch": "bad",
}


@dataclass(frozen=True)
class Cell:
    """A case: its look, and its details, a line each."""

    look: str
    case: str
    status: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Strip:
    """The cases of one executor."""

    executor: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Row:
    """A verification, `count` times with one outcome, and its verdict; the cases are those of the
    first."""

    title: str
    place: str
    count: int
    verdict: str
    summary: str
    strips: Sequence[Strip]


@dataclass(frozen=True)
class Table:
    """Rows, the names of executors, and how many more rows there are, all verified."""

    executors: Sequence[str]
    rows: Sequence[Row]
    more: int


def table_of(records: Sequence[Record], whole: Checked | None) -> Table | None:
    """The table of a verification, the whole model first; None where nothing was verified."""
    equal = Counter((one.rule, one.checked.same_as) for one in records if one.checked)
    rows = [_row("whole model", "", 1, whole)] if whole is not None else []
    groups: dict[Hashable, list[Record]] = {}
    for one in records:
        if one.checked is not None and not one.checked.same_as:
            groups.setdefault((one.rule, _outline(one.checked)), []).append(one)
    own = [
        _row(
            first.rule,
            pattern_of([first.path, *(one.path for one in others)]),
            sum(1 + equal[one.rule, one.path] for one in (first, *others)),
            first.checked,
        )
        for first, *others in groups.values()
        if first.checked is not None
    ]
    own.sort(key=lambda row: row.verdict == "verified")
    rows += own[:_MOST_ROWS]
    if not rows:
        return None
    names = dict.fromkeys(strip.executor for row in rows for strip in row.strips)
    return Table(list(names), rows, len(own[_MOST_ROWS:]))


def _outline(checked: Checked) -> Hashable:
    """The same for verifications that ran alike; their inputs and worst elements may differ."""
    cases = tuple((one.executor, one.case, one.status) for one in checked.cases)
    return str(checked), cases


def _row(title: str, place: str, count: int, checked: Checked) -> Row:
    strips: dict[str, list[Cell]] = {name: [] for name in checked.compared}
    for tried in checked.cases:
        lines = [tried.sentence, tried.inputs, tried.worst and f"worst: {tried.worst}"]
        cell = Cell(_LOOKS[tried.status], tried.case, tried.status, list(filter(None, lines)))
        strips.setdefault(tried.executor, []).append(cell)
    summary = str(checked).removeprefix("verified: ")
    if checked.verdict != "verified":
        summary = checked.reason
    found = [Strip(name, cells) for name, cells in strips.items()]
    return Row(title, shortened(place, 90), count, checked.verdict, summary, found)
