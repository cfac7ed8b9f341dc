"""Finds the cheapest cut of a loop's body in two: the nodes that move, and those that stay."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
