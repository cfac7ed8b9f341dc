"""Element types that a model tells by itself: declared, or returned by a body."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import GraphProto

from passes.check.heading import Headings
from passes.ir.model import Model
from passes.ir.scope import Scope
from passes.types.value_types import Dims


@dataclass(frozen=True)
class Told:
    """What the graphs of a model say of their values.

    To ask this first is worth it: where all loops are declared, as exporters do, the model need
    not be inferred to be checked.
    """

    model: Model
    headings: Headings

    def kind(self, scope: Scope, name: str) -> str:
        """The type of a value in words, without the shape; empty where it is not told."""
        at: Scope | None = scope
        while at is not None and isinstance(at.owner, GraphProto):  # a function declares nothing
            kind = self.headings[at.key].kinds.get(name)
            if kind:
                return kind
            if kind is not None or self.model.producer(at.owner, name) is not None:
                return ""
            at = at.outer
        return ""

    def dims(self, scope: Scope, name: str) -> Dims | None:
        """The shape that a value is declared with, where all its sizes are static; else None."""
        for at in scope.chain():
            heading = self.headings[at.key]
            if name in heading.kinds:
                return heading.dims(name)
            if self.model.producer(at.owner, name) is not None:
                return None
        return None
