"""Operators as text: a table of all, or all that is known of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passes.support.operators import KnownOperator


def cells_of(one: KnownOperator) -> Mapping[str, str]:
    """The cells of an operator by column: its version, what can be done with it, and the number of
    targets that take it."""
    taken = sum(not at.refusal for at in one.targets)
    held = {ability.name: answer(ability.holds) for ability in one.abilities}
    return {"version": f"{one.version or '-'}", **held, "targets": f"{taken}/{len(one.targets)}"}


def answer(holds: bool) -> str:
    """The cell of a column that is true or not."""
    return "yes" if holds else "-"


def table_of(operators: Sequence[KnownOperator]) -> str:
    """A line for each operator, below the columns."""
    rows = [{"operator": one.name, **cells_of(one)} for one in operators]
    return "\n".join(_aligned([[*rows[0]], *([*row.values()] for row in rows)]))


def text_of(one: KnownOperator) -> str:
    """All that is known of an operator, in parts."""
    version = f"-{one.version}" if one.version else ""
    lines = [f"{one.name}{version}{', deprecated' * one.deprecated}"]
    for title, rows in _parts(one).items():
        lines += [title, *(f"  {line}" for line in _aligned(rows))] if rows else []
    return "\n".join(lines)


def _parts(one: KnownOperator) -> Mapping[str, Sequence[Sequence[str]]]:
    done = [
        [each.name, answer(each.holds), ", ".join(filter(None, (each.note, each.file)))]
        for each in one.abilities
    ]
    steps = [
        [f"{step.version}", way, told]
        for step in one.versions
        for way, told in (("up", step.up), ("down", step.down))
        if told
    ]
    types = [
        [kind.variable, taken, " ".join(names)]
        for kind in one.types
        for taken, names in (("takes", kind.types), ("no kernel", kind.lacked))
        if names
    ]
    return {
        "what it is": [[trait.column, trait.value, trait.meaning] for trait in one.traits],
        "what is done with it": done,
        f"steps of versions {', '.join(f'{step.version}' for step in one.versions)}": steps,
        "types, and those for which no release of onnxruntime has a kernel": types,
        "targets": [[at.target, at.refusal or answer(True)] for at in one.targets],
    }


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, in columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
