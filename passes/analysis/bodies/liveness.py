"""What of a body feeds what somebody reads, and what only might fail."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.bodies.readers import makers_in
from passes.analysis.safety.speculation import is_pure
from passes.ir import scope as scoping
from passes.ir.repeated import replace_all


@dataclass(frozen=True)
class Live:
    """The positions of the nodes of a body that stay, and the names that these or others read.

    `blockers` are the positions of nodes that feed nothing, but may fail, and so stay.
    """

    nodes: frozenset[int]
    names: frozenset[str]
    blockers: tuple[int, ...]

    @classmethod
    def of(cls, level: NestedGraph, wanted: Iterable[str], feeds: Mapping[str, str]) -> Live:
        """What feeds the `wanted` names; `feeds` leads from inputs of the body to the outputs that
        the next iteration gets there.

        Random nodes and those of unknown operators stay. What might fail, and does where the
        original does, stays too, unless inputs are taken for valid.
        """
        walk = _Walk(level.graph, feeds)
        impure = [at for at, node in enumerate(level.graph.node) if not is_pure(node)]
        walk.reach(wanted, impure)
        blockers: list[int] = []
        if not level.site.assumes("valid-inputs"):
            rest = enumerate(level.graph.node)
            dead = [(at, node) for at, node in rest if at not in walk.nodes]
            blockers = [at for at, node in dead if not level.may_go(node)]
            walk.reach((), blockers)
        return cls(frozenset(walk.nodes), frozenset(walk.names), tuple(blockers))


class _Walk:
    def __init__(self, graph: GraphProto, feeds: Mapping[str, str]) -> None:
        self.nodes: set[int] = set()
        self.names: set[str] = set()
        self._graph, self._feeds = graph, feeds
        self._makers = makers_in(graph)

    def reach(self, names: Iterable[str], nodes: Iterable[int]) -> None:
        """Take these nodes, what makes these names, and all that they are made of."""
        pending = [*names]
        for at in nodes:
            pending += self._take(at)
        while pending:
            name = pending.pop()
            if name in self.names:
                continue
            self.names.add(name)
            if name in self._makers:
                pending += self._take(self._makers[name])
            if name in self._feeds:
                pending.append(self._feeds[name])

    def _take(self, at: int) -> list[str]:
        if at in self.nodes:
            return []
        self.nodes.add(at)
        return scoping.free_names(self._graph.node[at])


def keep_nodes(graph: GraphProto, positions: Collection[int]) -> None:
    """Drop all other nodes, what is said of their values, and the constants that they read."""
    had = scoping.defined(graph)
    replace_all(graph.node, [node for at, node in enumerate(graph.node) if at in positions])
    read = {name for node in graph.node for name in scoping.free_names(node)}
    read.update(scoping.output_names(graph))
    for annotation in graph.quantization_annotation:
        read.update(entry.value for entry in annotation.quant_parameter_tensor_names)
    constants = scoping.initializer_names(graph)
    replace_all(graph.input, [one for one in graph.input if one.name not in constants - read])
    replace_all(graph.initializer, [one for one in graph.initializer if one.name in read])
    sparse = [one for one in graph.sparse_initializer if one.values.name in read]
    replace_all(graph.sparse_initializer, sparse)
    known = scoping.defined(graph)
    replace_all(graph.value_info, [one for one in graph.value_info if one.name in known])
    gone = had - known
    annotations = [one for one in graph.quantization_annotation if one.tensor_name not in gone]
    replace_all(graph.quantization_annotation, annotations)


def told(graph: GraphProto, positions: Iterable[int]) -> list[str]:
    """What the nodes at these positions write, for culprits."""
    nodes: list[NodeProto] = [graph.node[at] for at in positions]
    return [name for node in nodes for name in node.output if name]
