"""Which of the nodes that could leave a loop do: those that hang together with real work."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable

from passes.ir import scope as scoping
from passes.rule import Refused
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.time_cost import all_bytes, is_worth_it, most_bytes


def with_work(body: TimeBody, nodes: Collection[int]) -> set[int]:
    """Those that hang together with some work; the others only move data."""
    import networkx as nx

    linked = nx.Graph()
    linked.add_nodes_from(nodes)
    for at in nodes:
        for name in scoping.free_names(body.nodes[at]):
            maker = body.producers.get(name)
            if maker in nodes:
                linked.add_edge(maker, at)
    parts = nx.connected_components(linked)
    worthy = [part for part in parts if any(is_worth_it(body.nodes[at]) for at in part)]
    return set().union(*worthy)


def with_sources(body: TimeBody, chosen: Iterable[int], among: Container[int]) -> set[int]:
    """The chosen nodes with what they are computed from, of the nodes that may go along."""
    wanted = set(chosen)
    pending = list(wanted)
    while pending:
        for name in scoping.free_names(body.nodes[pending.pop()]):
            maker = body.producers.get(name)
            if maker is not None and maker not in wanted and maker in among:
                wanted.add(maker)
                pending.append(maker)
    return wanted


def too_large(body: TimeBody, nodes: Iterable[int]) -> Refused:
    """The refusal where these nodes would take more than the budget, for all iterations."""
    names = [name for at in nodes for name in body.nodes[at].output if name]
    largest = max(names, key=lambda name: all_bytes(body, name))
    return Refused(
        "over-budget",
        f"{largest!r}, or what goes with it, would take {all_bytes(body, largest)} bytes or more "
        f"for all iterations; at most {most_bytes(body)} are allowed",
        [body.site.path, largest],
    )
