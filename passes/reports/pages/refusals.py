"""Refusals of one code together: what it means, and what would clear it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from passes.commands.declaring import Option, options_of
from passes.commands.registry import rewriting_commands
from passes.loops.alike import pattern_of
from passes.reports.report import Record
from passes.reports.words import grouped

#: Places that are shown of a code.
_MOST_SHOWN = 20


@dataclass(frozen=True)
class Places:
    """The places at which a rule refuses with one sentence: `count` nodes, by a pattern of their
    paths, and the `first` of them."""

    path: str
    count: int
    first: Record


@dataclass(frozen=True)
class Refusals:
    """The refusals of one code: its meaning, the options that may clear them, and where the first
    of them are; `count` there are. `optional`: the result does not depend on any of them."""

    code: str
    meaning: str
    ways: Sequence[Option]
    shown: Sequence[Places]
    more: int
    count: int
    optional: bool


def refusals_of(records: Sequence[Record], meanings: Mapping[str, str]) -> list[Refusals]:
    """Refusals by their codes: first those that keep the result from being produced, then by
    number."""
    refused = [one for one in records if one.outcome == "refused"]
    known = _options()
    found = [
        Refusals(
            group[0].code,
            meanings.get(group[0].code, ""),
            _ways(group[0], known),
            (places := _places(group))[:_MOST_SHOWN],
            sum(place.count for place in places[_MOST_SHOWN:]),
            len(group),
            all(record.optional for record in group),
        )
        for group in grouped(refused, lambda one: one.code)
    ]
    return sorted(found, key=lambda one: (one.optional, -one.count))


def _places(records: Sequence[Record]) -> list[Places]:
    alike = grouped(records, lambda one: (one.op, one.rule, one.sentence))
    return [Places(pattern_of([one.path for one in own]), len(own), own[0]) for own in alike]


def _ways(record: Record, known: Mapping[str, Option]) -> list[Option]:
    names = [name for lift in record.lifted_by for name in lift]
    return [known[name] for name in dict.fromkeys(names) if name in known]


def _options() -> dict[str, Option]:
    """The options of all commands that rewrite, by name."""
    declared = (command.options for command in rewriting_commands().values())
    return {name: one for own in declared for name, one in options_of(own, "cli").items()}
