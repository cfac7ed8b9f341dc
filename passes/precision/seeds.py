"""What has to keep its element type, and why."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reason:
    """Why something keeps its type: a code, and a sentence."""

    code: str
    sentence: str


@dataclass
class Seeds:
    """The nodes and the values of a flow that keep their type, by number."""

    steps: dict[int, Reason] = field(default_factory=dict)
    values: dict[int, Reason] = field(default_factory=dict)
