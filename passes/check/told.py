"""Element types that a model tells by itself: declared, or returned by a body."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TypeProto

from passes import scope as scoping
from passes.check.wording import describe, element
from passes.model import Model
from passes.scope import Key, Scope
from passes.type_tables import Table

#: Which output of its bodies each output of a node is: a Loop's first is its condition.
_FIRST_RETURNED = {"Loop": 1, "Scan": 0, "If": 0}


@dataclass(frozen=True)
class Told:
    """What the graphs of a model say of their values.

    To ask this first is worth it: where all loops are declared, as exporters do, the model need
    not be inferred to be checked.
    """

    model: Model
    _tables: dict[Key, Table] = field(default_factory=dict)
    _kinds: dict[Key, dict[str, str]] = field(default_factory=dict)

    def type(self, scope: Scope, name: str) -> TypeProto | None:
        """What a value is declared as, None where it is not."""
        for at in scope.chain():
            table = self._table(at)
            if table is None or table.defines(name):
                return None if table is None else table.find(name)
        return None

    def kind(self, scope: Scope, name: str) -> str:
        """The type of a value in words, without the shape; empty where it is not told."""
        at: Scope | None = scope
        while at is not None and isinstance(at.owner, GraphProto):  # a function declares nothing
            kinds = self._kinds.get(at.key)
            if kinds is None:
                kinds = self._kinds[at.key] = _kinds(at.owner)
            if kinds.get(name):
                return kinds[name]
            producer = self.model.producer(at.owner, name)
            if producer is not None:
                return _returned(producer, name)
            if name in kinds:
                return ""
            at = at.outer
        return ""

    def _table(self, scope: Scope) -> Table | None:
        table = self._tables.get(scope.key)
        if table is None and isinstance(scope.owner, GraphProto):
            table = self._tables[scope.key] = Table(scope.owner)
        return table


def _kinds(graph: GraphProto) -> dict[str, str]:
    """What a graph defines or declares, as what it is declared."""
    found: dict[str, str] = {}
    for values in (graph.value_info, graph.output, graph.input):  # the last one counts
        for value in values:
            kind = describe(value.type)
            if kind or value.name not in found:
                found[value.name] = kind
    for tensor in graph.initializer:
        found[tensor.name] = element(tensor.data_type)
    for sparse in graph.sparse_initializer:
        found[sparse.values.name] = element(sparse.values.data_type)
    return found


def _returned(node: NodeProto, name: str) -> str:
    """What all bodies of a node declare the output `name` as."""
    first = _FIRST_RETURNED.get(node.op_type)
    if first is None or not scoping.is_onnx_domain(node.domain):
        return ""
    position = first + list(node.output).index(name)
    kinds = {
        describe(graph.output[position].type) if position < len(graph.output) else ""
        for _, graph in scoping.subgraphs(node)
    }
    return kinds.pop() if len(kinds) == 1 else ""
