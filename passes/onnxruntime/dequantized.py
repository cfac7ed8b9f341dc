"""Dequantized values that a body reads: onnxruntime moves a DequantizeLinear behind the nodes that
only move elements, and crashes where what reads those is a body (QDQPropagationTransformer)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.rule import Edit, Site
from passes.writing import spelling
from passes.writing.author import Author

_MOVING = {"MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}
"""Ops past which onnxruntime moves a DequantizeLinear."""

Producer = Callable[[str], NodeProto | None]


def with_dequantized_apart(site: Site, edit: Edit) -> Edit:
    """An Edit that has bodies read such values behind a Gather, where they did not before."""
    if not any(map(scoping.holds_graphs, edit.nodes)) or not _dequantizes(site):
        return edit
    owner = site.scope.owner
    gone = [owner.node[position] for position in {site.place.index, *edit.covered}]
    author = Author(site.target, site.names, site.node.name or op_of(site.node).lower())
    apart = _Apart(author, {name for node in gone for name in _captured(node)})
    nodes = apart.nodes(edit.nodes, lambda name: site.model.producer(owner, name))
    if not apart.written:
        return edit
    constants = [one for writer in (author, *apart.written) for one in writer.constants]
    return replace(edit, nodes=tuple(nodes), initializers=(*edit.initializers, *constants))


def _dequantizes(site: Site) -> bool:
    nodes = (place.node for place in scoping.walk_model(site.model.proto))
    return site.memory.once(
        "dequantizes", lambda: any(op_of(node) == "DequantizeLinear" for node in nodes)
    )


def _captured(node: NodeProto) -> list[str]:
    """What the bodies of a node read around them."""
    return [name for _, graph in scoping.subgraphs(node) for name in scoping.captures(graph)]


@dataclass(frozen=True)
class _Apart:
    """Rewrites lists of nodes; what bodies read already `before` stays as it is."""

    author: Author
    before: Collection[str]
    written: list[Author] = field(default_factory=list)

    def nodes(self, nodes: Sequence[NodeProto], outer: Producer) -> list[NodeProto]:
        """The nodes of one graph; `outer` knows who makes what else in this graph."""
        makers: dict[str, NodeProto] = {}
        made: list[NodeProto] = []
        for node in nodes:
            kept = node
            if scoping.holds_graphs(node):
                kept = NodeProto()
                kept.CopyFrom(node)
                made += self._apart(kept, lambda name: makers.get(name) or outer(name))
            made.append(kept)
            makers.update((name, kept) for name in kept.output)
        return made

    def _apart(self, node: NodeProto, producer: Producer) -> list[NodeProto]:
        """Let the bodies of a node read other names, and answer with the nodes that make these."""
        at, only = self.author.inside(self.author.prefix), self.author.int(0)
        renamed = {
            name: at.op("Gather", spelling.unsqueeze(at, name, 0), only, axis=0)
            for name in dict.fromkeys(_captured(node))
            if name not in self.before and _is_moved(name, producer)
        }
        if renamed:
            self.written.append(at)
        for _, graph in scoping.subgraphs(node):
            scoping.rename_captures(graph, renamed)
            inner = self.nodes(graph.node, lambda name: None)
            del graph.node[:]
            graph.node.extend(inner)
        return at.nodes


def _is_moved(name: str, producer: Producer) -> bool:
    """Whether a value is a dequantized one whose elements were moved."""
    moved = False
    node = producer(name)
    while node is not None and op_of(node) in {*_MOVING, "Identity"}:
        moved = moved or op_of(node) in _MOVING
        node = producer(node.input[0])
    return moved and node is not None and op_of(node) == "DequantizeLinear"
