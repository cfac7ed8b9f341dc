"""Finds the cheapest cut of a loop's body in two, the nodes that move and those that stay, among
those that can run over all iterations at once."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onnx import NodeProto

from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import is_worth_it
from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.rule import Refused
from passes.vectorize import Vectorizer
from passes.writing.author import Author

if TYPE_CHECKING:
    import networkx as nx

#: The sides, as nodes of the flow network, and as producers or readers that cannot change sides.
FRONT, BEHIND = "front", "behind"
Part = int | str


@dataclass(frozen=True)
class Crossing:
    """A value: its producer, its readers, and the cost of passing it across the cut."""

    producer: Part
    readers: tuple[Part, ...]
    cost: int


def in_front(gains: Mapping[int, int], crossings: Iterable[Crossing]) -> set[int]:
    """Return the nodes to move before the loop; of equally good choices the smallest one.

    `gains` are the savings of each node there, which may be negative. What a node reads
    moves with it.
    """
    edges = _edges(crossings)
    for node, saved in gains.items():
        edges += [(node, FRONT, saved)] if saved > 0 else [(BEHIND, node, -saved)]
    return _minimum(gains, edges, BEHIND, FRONT)


def behind(
    gains: Mapping[int, int],
    crossings: Iterable[Crossing],
    together: Iterable[tuple[int, int]] = (),
) -> set[int]:
    """Return the nodes to move after the loop; of equally good choices the smallest one.

    The readers of a node move with it. Of `together`, a reader and a node that it reads, neither
    moves without the other.
    """
    edges = _edges(crossings)
    for reader, node in together:
        edges += [(reader, node, None), (node, reader, None)]
    for node, saved in gains.items():
        edges += [(BEHIND, node, saved)] if saved > 0 else [(node, FRONT, -saved)]
    turned = [(second, first, cost) for first, second, cost in edges]
    return _minimum(gains, turned, FRONT, BEHIND)


#: (a, b, cost): the cost where a is behind and b in front; None forbids it.
_Edge = tuple[object, object, int | None]


def _edges(crossings: Iterable[Crossing]) -> list[_Edge]:
    edges: list[_Edge] = []
    for number, crossing in enumerate(crossings):
        handed = ("value", number)  # behind where one of its readers is
        edges.append((handed, crossing.producer, crossing.cost))
        for reader in crossing.readers:
            edges.append((reader, handed, None))
            if crossing.producer != FRONT and reader != BEHIND:
                edges.append((crossing.producer, reader, None))
    return edges


def _minimum(nodes: Collection[int], edges: Sequence[_Edge], source: str, sink: str) -> set[int]:
    """Those nodes that every cheapest cut puts on the side of `sink`."""
    import networkx as nx

    network = nx.DiGraph()
    network.add_nodes_from([source, sink])
    for first, second, cost in edges:
        if first != second:
            _add(network, first, second, cost)
    _, (_, moved) = nx.minimum_cut(network, source, sink)
    return {node for node in nodes if node in moved}


def _add(network: nx.DiGraph, first: object, second: object, cost: int | None) -> None:
    """An edge; parallel ones add up, and one without a capacity is never cut."""
    known = network.get_edge_data(first, second)
    if cost is None or (known is not None and "capacity" not in known):
        network.remove_edge(first, second) if known is not None else None
        network.add_edge(first, second)
    else:
        network.add_edge(first, second, capacity=cost + (known or {"capacity": 0})["capacity"])


def with_work(body: TimeBody, nodes: Collection[int]) -> set[int]:
    """The nodes connected with some work; the others only move data."""
    import networkx as nx

    linked = nx.Graph()
    linked.add_nodes_from(nodes)
    for position in nodes:
        for name in scoping.free_names(body.nodes[position]):
            producer = body.index.positions.get(name)
            if producer in nodes:
                linked.add_edge(producer, position)
    parts = nx.connected_components(linked)
    worthy = [part for part in parts if any(is_worth_it(body.nodes[position]) for position in part)]
    return set().union(*worthy)


def with_sources(body: TimeBody, chosen: Iterable[int], among: Container[int]) -> set[int]:
    """The chosen nodes, and what they depend on among the nodes that may go along."""
    needed = set(chosen)
    pending = list(needed)
    while pending:
        for name in scoping.free_names(body.nodes[pending.pop()]):
            producer = body.index.positions.get(name)
            if producer is not None and producer not in needed and producer in among:
                needed.add(producer)
                pending.append(producer)
    return needed


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
