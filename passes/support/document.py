"""`python -m passes.support.document docs/operators.md`: writes it from the tables of the tool."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from passes.support.operators import answer, cells_of
from passes.support.reading import known_operators, meanings

_HEAD = """# Operators

Made by `python -m passes.support.document docs/operators.md` from the tables of this tool.
`python -m passes operators NAME` shows all that is known of one operator. To add one:
[a new operator](../CONTRIBUTING.md#a-new-operator).

The columns are about the newest version of an operator, or the last one that is not deprecated:
"""
_TARGETS = """- *targets*: how many [targets](targets.md) take some of its nodes. A
  [table](#targets) tells which targets, and `passes check --target NAME` which nodes of a model."""


def document() -> str:
    """All operators, and the targets that take them, as Markdown."""
    known = known_operators().operators
    legend = [f"- *{column}*: {meaning}" for column, meaning in meanings().items()]
    cells = [cells_of(one) for one in known]
    taken = (
        [one.name, *(answer(not refusal) for refusal in one.targets.values())] for one in known
    )
    parts = [
        _HEAD,
        "\n".join([*legend, _TARGETS]),
        _table(cells[0], (row.values() for row in cells)),
        "## Targets",
        _table(["operator", *known[0].targets], taken),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = [*head]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.parse_args().page.write_text(document(), encoding="utf-8")
