"""Dequantized values that a body reads: onnxruntime moves a DequantizeLinear past nodes that
only move elements, and crashes where a body reads these (QDQPropagationTransformer)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.rule import Edit, Site, Slot
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.guards import Producer

#: What onnxruntime moves a DequantizeLinear past: measured.
_MOVING = {"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}


def with_dequantized_apart(site: Site, edit: Edit) -> Edit:
    """An Edit whose bodies read such values through a Gather, if they did not read them before."""
    if not any(map(scoping.holds_graphs, edit.nodes)) or not _dequantizes(site):
        return edit
    owner = site.scope.owner
    gone = [owner.node[position] for position in {site.place.index, *edit.covered}]
    author = Author.at(site)
    apart = _Apart(author, {name for node in gone for name in _captured(node)})
    nodes = apart.nodes(edit.nodes, lambda name: site.model.producer(owner, name))
    if not apart.written:
        return edit
    constants = [constant for writer in (author, *apart.written) for constant in writer.constants]
    return replace(edit, nodes=tuple(nodes), initializers=(*edit.initializers, *constants))


_DEQUANTIZES: Slot[bool] = Slot()


def _dequantizes(site: Site) -> bool:
    nodes = (place.node for place in scoping.walk_model(site.model.proto))
    return site.memory.once(
        _DEQUANTIZES, lambda: any(op_of(node) == "DequantizeLinear" for node in nodes)
    )


def _captured(node: NodeProto) -> list[str]:
    """The names that the bodies of a node capture."""
    return [name for _, graph in scoping.subgraphs(node) for name in scoping.captures(graph)]


@dataclass(frozen=True)
class _Apart:
    """Rewrites lists of nodes; what bodies already read `before` stays as it is."""

    author: Author
    before: Collection[str]
    written: list[Author] = field(default_factory=list)

    def nodes(self, nodes: Sequence[NodeProto], outer: Producer) -> list[NodeProto]:
        """The nodes of one graph; `outer` returns the producers of other values in this graph."""
        producers: dict[str, NodeProto] = {}
        rewritten: list[NodeProto] = []
        for node in nodes:
            kept = node
            if scoping.holds_graphs(node):
                kept = copied(node)
                rewritten += self._apart(kept, lambda name: producers.get(name) or outer(name))
            rewritten.append(kept)
            producers.update((name, kept) for name in kept.output)
        return rewritten

    def _apart(self, node: NodeProto, producer: Producer) -> list[NodeProto]:
        """Let the bodies of a node read other names; returns the nodes that compute these."""
        writer, only = self.author.inside(self.author.prefix), self.author.int(0)
        renamed = {
            name: writer.op("Gather", spelling.unsqueeze(writer, name, 0), only, axis=0)
            for name in dict.fromkeys(_captured(node))
            if name not in self.before and _is_moved(name, producer)
        }
        if renamed:
            self.written.append(writer)
        for _, graph in scoping.subgraphs(node):
            scoping.rename_captures(graph, renamed)
            inner = self.nodes(graph.node, lambda name: None)
            del graph.node[:]
            graph.node.extend(inner)
        return writer.nodes


def _is_moved(name: str, producer: Producer) -> bool:
    """Return whether a value is a dequantized one whose elements were moved."""
    moved = False
    node = producer(name)
    while node is not None and op_of(node) in {*_MOVING, "Identity"}:
        moved = moved or op_of(node) in _MOVING
        node = producer(node.input[0])
    return moved and node is not None and op_of(node) == "DequantizeLinear"
