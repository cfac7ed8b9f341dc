"""Selects the nodes that leave a loop: those connected with real work."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import is_worth_it
from passes.ir import scope as scoping


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
