"""Operators as text: a table of all, or all that is known of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passes.columns import aligned
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
    versions = ", ".join(f"{step.version}" for step in one.versions)
    ways = [(f"{step.version}", {"up": step.up, "down": step.down}) for step in one.versions]
    taken = [(kind.variable, {"takes": kind.types, "lacks": kind.lacked}) for kind in one.types]
    parts: Mapping[str, Sequence[Sequence[str]]] = {
        "what it is": [[trait.column, trait.value, trait.meaning] for trait in one.traits],
        "what is done with it": [
            [each.name, answer(each.holds), ", ".join(filter(None, (each.note, each.file)))]
            for each in one.abilities
        ],
        "steps": [
            [version, way, told] for version, both in ways for way, told in both.items() if told
        ],
        "types, and those that kernels of onnxruntime lack in each release": [
            [name, what, " ".join(all_)]
            for name, both in taken
            for what, all_ in both.items()
            if all_
        ],
        "targets": [[target, refusal or answer(True)] for target, refusal in one.targets.items()],
    }
    version = f"-{one.version} of versions {versions}" if one.versions else ""
    lines = [f"{one.name}{version}{', deprecated' * one.deprecated}"]
    for title, rows in parts.items():
        lines += [title, *aligned(rows)] if rows else []
    return "\n".join(lines)
