"""The table of a verification: rewrites down, cases across, a cell for each verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from passes.loops.alike import pattern_of
from passes.reports.pages.drawing import shortened
from passes.reports.report import Checked, Record
from passes.reports.words import grouped

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
class Row:
    """A verification, `count` times with one outcome, and its verdict; the cases are those of the
    first, by executor."""

    title: str
    place: str
    count: int
    verdict: str
    summary: str
    strips: Mapping[str, Sequence[Cell]]


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
    own = [
        _row(
            group[0][0].rule,
            pattern_of([one.path for one, _ in group]),
            sum(1 + equal[one.rule, one.path] for one, _ in group),
            group[0][1],
        )
        for group in grouped(
            ((one, one.checked) for one in records if one.checked and not one.checked.same_as),
            lambda pair: (pair[0].rule, _outline(pair[1])),
        )
    ]
    own.sort(key=lambda row: row.verdict == "verified")
    rows += own[:_MOST_ROWS]
    if not rows:
        return None
    names = dict.fromkeys(name for row in rows for name in row.strips)
    return Table(list(names), rows, len(own[_MOST_ROWS:]))


def _outline(checked: Checked) -> Hashable:
    """The same for verifications that ran alike; their inputs and worst elements may differ."""
    return str(checked), tuple((one.executor, one.case, one.status) for one in checked.cases)


def _row(title: str, place: str, count: int, checked: Checked) -> Row:
    strips: dict[str, list[Cell]] = {name: [] for name in checked.compared}
    for tried in checked.cases:
        lines = [tried.sentence, tried.inputs, tried.worst and f"worst: {tried.worst}"]
        cell = Cell(_LOOKS[tried.status], tried.case, tried.status, list(filter(None, lines)))
        strips.setdefault(tried.executor, []).append(cell)
    return Row(title, shortened(place, 90), count, checked.verdict, checked.summary, strips)
