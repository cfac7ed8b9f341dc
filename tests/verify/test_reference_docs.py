"""The table of operators in the documentation is the one in the code."""

from __future__ import annotations

import re
from pathlib import Path

from passes.verify.reference import ops  # noqa: F401 (the kernels register themselves)
from passes.verify.reference.registry import LATEST, overridden

PAGE = Path(__file__).parents[2] / "docs" / "reference-executor.md"


def documented() -> set[tuple[str, int, int]]:
    """Operator, first and last opset of every row."""
    found = set()
    text = PAGE.read_text().split("## Operators")[1].split("## Left")[0]
    for names, versions in re.findall(r"^\| ([A-Zc][\w.:, ]+) \| (all|[\d-]+) \|", text, re.M):
        since, until = (1, LATEST) if versions == "all" else spelled(versions)
        found |= {(name, since, until) for name in names.split(", ")}
    return found


def spelled(versions: str) -> tuple[int, int]:
    first, _, last = versions.partition("-")
    return int(first), int(last) if last else LATEST


def test_every_override_is_documented_and_nothing_else() -> None:
    table = {
        (operator, since, until)
        for operator, entries in overridden().items()
        for since, until, _ in entries
    }
    assert documented() == table
    assert len(overridden()) > 50
