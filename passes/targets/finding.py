"""One thing that is in the way of a model at a target."""

from __future__ import annotations

from dataclasses import dataclass

from passes.targets.profile import Confidence, Otherwise


@dataclass(frozen=True)
class Finding:
    """What a target does not take, at the `path` of a node, value or function: a `code` for its
    kind, a `sentence`, what becomes of it there, and how sure that is."""

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
