"""Tries which nodes of a body run over all iterations at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.rule import Refused
from passes.rules.time_axis.time_body import TimeBody
from passes.vectorize import Vectorizer
from passes.writing.author import Author


@dataclass(frozen=True)
class Attempt:
    """Tries which nodes have a rule for time, one after the other, and throws away the text."""

    body: TimeBody
    at: Vectorizer

    @classmethod
    def of(cls, body: TimeBody, carrying: Iterable[str]) -> Attempt:
        """Start with these values of each iteration."""
        names = Names(scoping.all_names([body.rows.graph]))
        author = Author(body.site.target, names, "attempt")
        return cls(body, body.vectorizer(author, names.fresh("size"), set(carrying)))

    def takes(self, node: NodeProto) -> bool:
        """Whether a node runs over all iterations at once; if so, `carries` knows its outputs."""
        try:
            self.at.nodes([node])
        except Refused:
            return False
        return True

    def carries(self, name: str) -> bool:
        """Whether a value is one of each iteration."""
        return self.at.carries(name)
