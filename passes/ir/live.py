"""Finds the nodes that values depend on, and those that nothing reads any more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from onnx import GraphProto, NodeProto

from passes.ir import scope as scoping
from passes.ir.graph_index import GraphIndex
from passes.ir.protos import replace_all


class Writing(Protocol):
    """Something that has outputs: a node, or a draft of one."""

    @property
    def output(self) -> Sequence[str]: ...


_N = TypeVar("_N", bound=Writing)


def live(
    nodes: Sequence[_N],
    wanted: Iterable[str],
    reads: Callable[[_N], Iterable[str]],
    stays: Callable[[_N], bool] = lambda node: False,
) -> tuple[list[_N], set[str]]:
    """The nodes that `wanted` values depend on, and those that stay in any case, with what these
    depend on. Also returns the wanted values and all that these nodes read.

    `stays` is called only for unread nodes.
    """
    needed, kept = set(wanted), []
    for node in reversed(nodes):
        if not needed.isdisjoint(node.output) or stays(node):
            needed.update(reads(node))
            kept.append(node)
    return kept[::-1], needed


def dependents(nodes: Iterable[NodeProto], names: Iterable[str]) -> frozenset[str]:
    """Return the values that depend on `names`, these included; the nodes are in order."""
    found = set(names)
    for node in nodes:
        if not found.isdisjoint(scoping.free_names(node)):
            found.update(node.output)
    return frozenset(found)


class Walk:
    """Walks from values of a body back to all that they depend on, in earlier iterations, too.

    `feeds` maps inputs of the body to the outputs that the next iteration gets there; `stop` are
    values of which it does not matter what they depend on. `nodes` and `names` are the positions
    of the nodes that were visited, and the values.
    """

    def __init__(
        self,
        nodes: Sequence[NodeProto],
        feeds: Mapping[str, str],
        stop: Collection[str] = (),
    ) -> None:
        self.nodes: set[int] = set()
        self.names: set[str] = set()
        self._nodes, self._feeds, self._stop = nodes, feeds, stop
        self._producers = {
            name: position for position, node in enumerate(nodes) for name in node.output if name
        }

    def reach(self, names: Iterable[str], nodes: Iterable[int]) -> None:
        """Visit these nodes, the producers of these names, and all that they depend on."""
        pending = [*names]
        for position in nodes:
            pending += self._take(position)
        while pending:
            name = pending.pop()
            if name in self.names:
                continue
            self.names.add(name)
            if name in self._stop:
                continue
            if name in self._producers:
                pending += self._take(self._producers[name])
            if name in self._feeds:
                pending.append(self._feeds[name])

    def _take(self, position: int) -> list[str]:
        if position in self.nodes:
            return []
        self.nodes.add(position)
        return scoping.free_names(self._nodes[position])


def orphaned(
    index: GraphIndex,
    values: Iterable[str],
    gone: Iterable[int] = (),
    may_go: Callable[[NodeProto], bool] = lambda node: True,
) -> set[int]:
    """The positions of the nodes that are `gone`, and of those that only computed the values for
    these, or for nothing, and may go."""
    found, pending, nodes = set(gone), list(values), index.owner.node
    while pending:
        position = index.positions.get(pending.pop())
        if position is None or position in found:
            continue
        readers = (index.readers.get(name, ()) for name in nodes[position].output if name)
        if all(map(found.issuperset, readers)) and may_go(nodes[position]):
            found.add(position)
            pending += scoping.free_names(nodes[position])
    return found


def keep_nodes(graph: scoping.Owner, nodes: Iterable[NodeProto]) -> None:
    """Drop all other nodes, with the types and annotations of their values."""
    had = scoping.defined(graph)
    replace_all(graph.node, nodes)
    known = scoping.defined(graph)
    replace_all(graph.value_info, [value for value in graph.value_info if value.name in known])
    if isinstance(graph, GraphProto):
        annotations, gone = graph.quantization_annotation, had - known
        replace_all(annotations, [one for one in annotations if one.tensor_name not in gone])


def drop_unread(graph: GraphProto, names: set[str], listed: bool) -> None:
    """Drop those of the named initializers, which no node reads, that nothing else reads and no
    caller can feed.

    `listed`: the graph is of IR 3, where initializers are inputs too, but constant.
    """
    unread = names - set(scoping.output_names(graph))
    if not listed:
        unread.difference_update(scoping.input_names(graph))
    annotations = graph.quantization_annotation
    for declared in annotations:
        if declared.tensor_name not in unread:
            unread.difference_update(scoping.parameters_of([declared]))
    if unread:
        scoping.drop_constants(graph, unread)
        replace_all(annotations, [one for one in annotations if one.tensor_name not in unread])
