"""Refusals of one code together: what it means, and what would clear it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from passes.commands.declaring import options_of
from passes.commands.delivery import Delivery
from passes.commands.registry import load_commands
from passes.loops.alike import pattern_of
from passes.reports.report import Record

#: Places that are shown of a code.
_MOST_SHOWN = 20


@dataclass(frozen=True)
class Way:
    """An option that may clear a refusal, with its help."""

    flag: str
    help: str


@dataclass(frozen=True)
class Places:
    """The places at which a rule refuses with one sentence: `count` nodes, by a pattern of their
    paths."""

    path: str
    count: int
    op: str
    rule: str
    sentence: str


@dataclass(frozen=True)
class Refusals:
    """The refusals of one code: its meaning, what would clear them, and where the first of them
    are; `count` there are. `optional`: the result does not depend on any of them."""

    code: str
    meaning: str
    ways: Sequence[Way]
    shown: Sequence[Places]
    more: int
    count: int
    optional: bool


def grouped(records: Sequence[Record], meanings: Mapping[str, str]) -> list[Refusals]:
    """Refusals by their codes: first those that keep the result from being produced, then by
    number."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        if record.outcome == "refused":
            groups.setdefault(record.code, []).append(record)
    helps = _helps()
    found = [
        Refusals(
            code,
            meanings.get(code, ""),
            _ways(group[0], helps),
            (places := _places(group))[:_MOST_SHOWN],
            sum(place.count for place in places[_MOST_SHOWN:]),
            len(group),
            all(record.optional for record in group),
        )
        for code, group in groups.items()
    ]
    return sorted(found, key=lambda one: (one.optional, -one.count))


def _places(records: Sequence[Record]) -> list[Places]:
    groups: dict[tuple[str, str, str], list[str]] = {}
    for one in records:
        groups.setdefault((one.op, one.rule, one.sentence), []).append(one.path)
    return [Places(pattern_of(paths), len(paths), *how) for how, paths in groups.items()]


def _ways(record: Record, helps: Mapping[str, Way]) -> list[Way]:
    names = [name for lift in record.lifted_by for name in lift]
    return [helps[name] for name in dict.fromkeys(names) if name in helps]


def _helps() -> dict[str, Way]:
    """The help of each option of a command that rewrites."""
    declared = [*(command.options for command in load_commands().values()), Delivery]
    return {
        option.name: Way(f"--{option.key}", option.help.text)
        for options in declared
        for option in options_of(options).values()
        if "cli" in option.help.shown
    }
