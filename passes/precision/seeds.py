"""What has to keep its element type, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from passes.reports.precision import CODES, Kept


@dataclass(frozen=True)
class Reason:
    """Why something keeps its type: a code, and a sentence, if that of the code does not do."""

    code: str
    sentence: str = ""


@dataclass
class Seeds:
    """The nodes and the values of a flow that keep their type, by number."""

    steps: dict[int, Reason] = field(default_factory=dict)
    values: dict[int, Reason] = field(default_factory=dict)


def grouped(stays: Iterable[tuple[Reason, str, Iterable[str]]]) -> list[Kept]:
    """What stays, by its reasons: paths, each with the operators that are counted."""
    groups: dict[Reason, tuple[list[str], Counter[str]]] = {}
    for reason, path, operators in stays:
        paths, counted = groups.setdefault(reason, ([], Counter()))
        paths.append(path)
        counted.update(operators)
    return [
        Kept(one.code, one.sentence or CODES[one.code], *group) for one, group in groups.items()
    ]
