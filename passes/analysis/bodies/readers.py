"""Who reads a value, and who makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passes.ir import scope as scoping
from passes.ir.scope import Owner
from passes.rule import Site

#: Stands for the outputs of a graph among the positions of readers.
OUTPUT = -1
Readers = Mapping[str, Sequence[int]]

Makers = Mapping[str, int]


def readers_in(owner: Owner) -> dict[str, list[int]]:
    """For each value, the positions of the nodes that read it, in bodies too, or OUTPUT."""
    found: dict[str, list[int]] = {}
    for position, node in enumerate(owner.node):
        for name in scoping.free_names(node):
            found.setdefault(name, []).append(position)
    for name in scoping.output_names(owner):
        found.setdefault(name, []).append(OUTPUT)
    return found


def makers_in(owner: Owner) -> dict[str, int]:
    """For each value that a node of this very graph computes, the position of the node."""
    return {name: at for at, node in enumerate(owner.node) for name in node.output if name}


def readers_around(site: Site) -> Readers:
    """Who reads what in the graph that the site's node stands in, as it was read."""
    return _around(site)[1]


def makers_around(site: Site) -> Makers:
    """Who makes what in the graph that the site's node stands in, as it was read."""
    return _around(site)[2]


def _around(site: Site) -> tuple[Owner, Readers, Makers]:
    known: dict[int, tuple[Owner, Readers, Makers]] = site.memory.once("readers", dict)
    owner = site.scope.owner  # kept alive, so its id is its own
    if id(owner) not in known:
        known[id(owner)] = (owner, readers_in(owner), makers_in(owner))
    return known[id(owner)]
