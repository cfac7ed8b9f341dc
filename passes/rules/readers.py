"""Who reads a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

from passes import scope as scoping
from passes.names import Names
from passes.rule import Site
from passes.scope import Owner

#: Stands for the outputs of a graph among the positions of readers.
OUTPUT = -1
Readers = Mapping[str, Sequence[int]]

#: What was looked up, by the supply of names of the round and the graph, which is kept alive.
_KNOWN: WeakKeyDictionary[Names, dict[int, tuple[Owner, Readers]]] = WeakKeyDictionary()


def readers_in(owner: Owner) -> dict[str, list[int]]:
    """For each value, the positions of the nodes that read it, in bodies too, or OUTPUT."""
    found: dict[str, list[int]] = {}
    for position, node in enumerate(owner.node):
        for name in scoping.free_names(node):
            found.setdefault(name, []).append(position)
    for name in scoping.output_names(owner):
        found.setdefault(name, []).append(OUTPUT)
    return found


def readers_around(site: Site) -> Readers:
    """Who reads what in the graph that the site's node stands in, as it was read."""
    known = _KNOWN.setdefault(site.names, {})
    owner = site.scope.owner
    if id(owner) not in known:
        known[id(owner)] = (owner, readers_in(owner))
    return known[id(owner)][1]
