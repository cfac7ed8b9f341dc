"""Element types that a model tells by itself: declared, or returned by a body."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from passes import scope as scoping
from passes.check.heading import Headings
from passes.check.wording import describe
from passes.model import Model
from passes.scope import Scope
from passes.value_types import Dims

#: Which output of its bodies each output of a node is: a Loop's first is its condition.
_FIRST_RETURNED = {"Loop": 1, "Scan": 0, "If": 0}


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
            producer = self.model.producer(at.owner, name)
            if producer is not None:
                return _returned(producer, name)
            if kind is not None:
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


def _returned(node: NodeProto, name: str) -> str:
    """What all bodies of a node declare the output `name` as."""
    first = _FIRST_RETURNED.get(node.op_type)
    if first is None or not scoping.is_onnx_domain(node.domain):
        return ""
    position = first + node.output[:].index(name)
    kinds = {
        describe(graph.output[position].type) if position < len(graph.output) else ""
        for _, graph in scoping.subgraphs(node)
    }
    return kinds.pop() if len(kinds) == 1 else ""
