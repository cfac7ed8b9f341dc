"""Finds out which nodes of a body can run over all iterations at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx import NodeProto

from passes.bodies.time_body import TimeBody
from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.rule import Refused
from passes.vectorize import Vectorizer
from passes.writing.author import Author


@dataclass(frozen=True)
class VectorizeProbe:
    """Vectorizes nodes one after the other, and discards what is written."""

    body: TimeBody
    vectorizer: Vectorizer

    @classmethod
    def of(cls, body: TimeBody, carrying: Iterable[str]) -> VectorizeProbe:
        """Start with these values, which have a time axis."""
        names = Names(scoping.all_names([body.rows.graph]))
        author = Author(body.site.target, names, "probe")
        return cls(body, body.vectorizer(author, names.fresh("size"), set(carrying)))

    def accepts(self, node: NodeProto) -> bool:
        """Return whether a node can run over all iterations at once; if so, `carries` knows its
        outputs."""
        try:
            self.vectorizer.nodes([node])
        except Refused:
            return False
        return True

    def carries(self, name: str) -> bool:
        """Return whether a value has a time axis."""
        return self.vectorizer.carries(name)
