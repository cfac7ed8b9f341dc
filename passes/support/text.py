"""Operators as text: a table of all, or all that is known of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passes.reports.columns import aligned
from passes.support.operators import KnownOperator


def cells_of(one: KnownOperator) -> Mapping[str, str]:
    """The cells of an operator by column: its version, what can be done with it, and the number of
    targets that take it."""
    held = {ability.name: answer(ability.holds) for ability in one.abilities}
    taken = f"{sum(not refusal for refusal in one.targets.values())}/{len(one.targets)}"
    return {"operator": one.name, "version": f"{one.version or '-'}", **held, "targets": taken}


def answer(holds: bool) -> str:
    """The cell of a column that is true or not."""
    return "yes" if holds else "-"


def table_of(operators: Sequence[KnownOperator]) -> str:
    """A line for each operator, below the columns."""
    rows = [cells_of(one) for one in operators]
    return "\n".join(aligned([[*rows[0]], *([*row.values()] for row in rows)], indent=""))


def text_of(one: KnownOperator) -> str:
    """All that is known of an operator, in parts."""
    versions = f"-{one.version} of versions {', '.join(map(str, one.versions))}"
    lines = [one.name + versions * bool(one.version) + ", deprecated" * one.deprecated]
    parts: Mapping[str, Sequence[Sequence[str]]] = {
        "what it is": [[trait.column, trait.value, trait.meaning] for trait in one.traits],
        "what is done with it": [
            [each.name, answer(each.holds), each.note, each.file] for each in one.abilities
        ],
        "steps": [[f"{step.version}", step.way, step.text] for step in one.steps],
        "types, and those that kernels of onnxruntime lack in each release": [
            [each.variable, each.what, " ".join(each.types)] for each in one.types
        ],
        "targets": [[target, refusal or answer(True)] for target, refusal in one.targets.items()],
    }
    for title, rows in parts.items():
        lines += [title, *aligned(rows)] if rows else []
    return "\n".join(lines)
