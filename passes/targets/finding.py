"""One thing that is in the way of a model at a target, and lines for people on several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Confidence = Literal["measured", "stated", "source", "inferred"]
#: What becomes of a node that a target does not take as it is.
Otherwise = Literal["refuses", "answers wrongly"]


@dataclass(frozen=True)
class Finding:
    """Something that a target does not accept, at the `path` of a node, value or function: a `code`
    for its kind, a `sentence`, the consequence there, and how certain that is."""

    code: str
    path: str
    op: str
    sentence: str
    confidence: Confidence = "stated"
    otherwise: Otherwise = "refuses"

    @property
    def kind(self) -> tuple[str, ...]:
        """The same for findings that differ in their places only."""
        return (self.code, self.op, self.sentence)

    @property
    def folder(self) -> str:
        """The path without its last part."""
        return self.path.rpartition("/")[0]


def verdict(count: int, target: str) -> str:
    """Return whether a model fits a target, where so many things are in the way."""
    if not count:
        return f"fits {target}"
    return f"{count} problem{'s' * (count != 1)} on {target}"


def described(findings: Iterable[Finding]) -> list[str]:
    """A line for findings that differ in their places only: where they are, what is wrong, and how
    sure that is."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.kind, []).append(finding)
    return [_described(group[0], group) for group in groups.values()]


def _described(first: Finding, group: Sequence[Finding]) -> str:
    sure = first.confidence + (", answers wrongly" if first.otherwise != "refuses" else "")
    op = f" ({first.op})" if first.op else ""
    text = f"{first.sentence} [{first.code}, {sure}]"
    if len(group) == 1:
        return f"{first.path}{op}: {text}"
    folders = {finding.folder for finding in group}
    places = f"under {folders.pop()}" if len(folders) == 1 else f"as {first.path}"
    return f"{len(group)} x {first.op or first.code}, {places}: {text}"
