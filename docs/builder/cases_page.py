"""The page of all cases that were taken to older opsets, where a run of them left its table."""

from __future__ import annotations

import csv
from pathlib import Path

TABLE = Path(__file__).parents[2] / "build" / "opset-down.csv"
NAME = "opset-down-cases.md"

_HEAD = """# Every test case on its way down

Each case with the oldest opset that it reaches at the top of a model, what stops it there, and in
which bodies it goes less far. *Fixed*: all inputs but the first are initializers.
[The summary](opset-down.md) explains how that was found.
"""


def page() -> str:
    """The page in Markdown; empty where there is no table."""
    if not TABLE.exists():
        return ""
    by_operator: dict[str, list[dict[str, str]]] = {}
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            by_operator.setdefault(row["operator"], []).append(row)
    lines = [_HEAD]
    for operator, rows in sorted(by_operator.items()):
        lines += [f"## {operator}", "", "| case | reaches | why no further | in bodies |"]
        lines += ["|---|---|---|---|", *map(_line, rows), ""]
    return "\n".join(lines)


def _line(row: dict[str, str]) -> str:
    name = row["case"] + (" (fixed)" if row["form"] == "fixed" else "")
    cells = [name, row["reaches"], row["reason"], row["in_bodies"]]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
