"""The oldest opsets that test cases reach: a summary by operator, and a table of all cases."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from going_down import Gone

#: The oldest opset of a case that reaches none of the targets.
ITS_OWN = "its own"
_EXPANDED = "_expanded"

_HEAD = """# How far down onnx's test cases go

Made by `PYTHONPATH=.:tests/verify python tests/converters/going_down.py --page`, which takes hours
and also writes a table of all cases to `build/opset-down.csv`. If the documentation is built where
that file is, it has the table as a page that can be searched.

Every case of `onnx.backend.test.case.node` and `.model` whose results can be compared, taken from
its own opset down to {targets}: as it is, and with all inputs but the first as initializers
(*fixed*), as exporters write axes and sizes. The results were compared before and after, and once
the case was taken up again, in the reference executor and in onnxruntime, as far as their answers
for the original are those of the case. The outcomes of onnx's own `version_converter` for the same
models were compared in the same way.

| target | same here | refused here | wrong here | same by onnx | not converted | wrong |
|---|---|---|---|---|---|---|
{counts}
In the body of an If, a Loop and a function, where a Loop collects the results of two iterations:

| in | same here | refused here | wrong here |
|---|---|---|---|
{inside}
## By operator

The cases of an operator at the top of a model, by the oldest of these opsets that they reach, and
the most frequent reason why no further. *Its own*: the case reaches none of them. The {expanded}
cases of function bodies are not counted here.

All cases of these operators reach opset {oldest}: {all_the_way}.

| operator | cases by the oldest opset | what stops them |
|---|---|---|
{rows}"""


@dataclass(frozen=True)
class Row:
    """A case in one form: the oldest opset that it reaches at the top of a model, what stops it
    there, and in which bodies it goes less far."""

    case: str
    form: str
    operator: str
    reaches: str
    reason: str
    in_bodies: str


def rows_of(found: Iterable[Gone], operators: dict[str, str]) -> list[Row]:
    """The rows of what was found; `operators` has the operator of each case."""
    by_case: dict[tuple[str, str], dict[str, list[Gone]]] = {}
    for gone in found:
        by_place = by_case.setdefault((gone.case, gone.form), {})
        by_place.setdefault(gone.place, []).append(gone)
    return [
        _row(case, form, operators[case], places)
        for (case, form), places in sorted(by_case.items())
    ]


def table(rows: Iterable[Row]) -> str:
    """All rows, as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(text, [one.name for one in fields(Row)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return text.getvalue()


def page(
    found: Sequence[Gone], rows: Sequence[Row], targets: Sequence[int], places: Iterable[str]
) -> str:
    """`docs/opset-down.md`: the counts, and what there is to know of each operator."""
    counts = ""
    for target in targets:
        here = [gone for gone in found if gone.target == target and gone.place == "main"]
        peers = Counter(
            gone.peer if gone.peer in ("right", "wrong", "not run") else "stopped" for gone in here
        )
        counts += _line(target, *_counted(here), peers["right"], peers["stopped"], peers["wrong"])
    inside = ""
    for place in places:
        if place != "main":
            inside += _line(place, *_counted([gone for gone in found if gone.place == place]))
    return summary(counts, inside, rows, targets)


def summary(counts: str, inside: str, rows: Sequence[Row], targets: Sequence[int]) -> str:
    """The page, of the rows of two tables and of all cases."""
    by_operator: dict[str, list[Row]] = {}
    for row in rows:
        if _EXPANDED not in row.case:
            by_operator.setdefault(row.operator, []).append(row)
    oldest = f"{min(targets)}"
    done = {
        name for name, some in by_operator.items() if all(row.reaches == oldest for row in some)
    }
    stopped = sorted(by_operator.keys() - done)
    return _HEAD.format(
        targets=", ".join(map(str, targets)),
        counts=counts,
        inside=inside,
        expanded=sum(_EXPANDED in row.case for row in rows),
        oldest=oldest,
        all_the_way=", ".join(sorted(done)),
        rows="".join(_of_operator(name, by_operator[name]) for name in stopped),
    )


def _of_operator(name: str, rows: Sequence[Row]) -> str:
    """How many cases of an operator go how far, and why no further."""
    reached = Counter(row.reaches for row in rows)
    order = sorted(reached, key=lambda opset: 99 if opset == ITS_OWN else int(opset))
    stopped = Counter(row.reason.partition(" (and ")[0] for row in rows if row.reason)
    ((reason, count),) = stopped.most_common(1)
    more = f" ({count} of {stopped.total()})" if count < stopped.total() else ""
    return _line(name, ", ".join(f"{opset}: {reached[opset]}" for opset in order), reason + more)


def _line(*cells: object) -> str:
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |\n"


def _counted(found: Sequence[Gone]) -> tuple[int, int, int]:
    outcomes = Counter(gone.outcome for gone in found)
    return outcomes["same"], outcomes["refused"], outcomes["wrong"]


def _row(case: str, form: str, operator: str, by_place: dict[str, list[Gone]]) -> Row:
    reached, reason = _reached(by_place["main"])
    inside: dict[str, list[str]] = {}
    for place, steps in by_place.items():
        least, why = _reached(steps)
        if place != "main" and least != reached:
            inside.setdefault(f"{least}: {why}", []).append(place)
    less = "; ".join(f"{', '.join(places)} {what}" for what, places in inside.items())
    return Row(case.removeprefix("test_"), form, operator, reached, reason, less)


def _reached(steps: Sequence[Gone]) -> tuple[str, str]:
    """The oldest opset that a case reaches in one place, and what stops it there."""
    same = [gone.target for gone in steps if gone.outcome == "same"]
    stopped = next((gone for gone in steps if gone.outcome != "same"), None)
    why = "" if stopped is None else stopped.wrong or reason_of(stopped.refused)
    return f"{min(same)}" if same else ITS_OWN, " ".join(why.split())


def reason_of(refused: str) -> str:
    """A refusal without its path."""
    return refused.partition(": ")[2] or refused
