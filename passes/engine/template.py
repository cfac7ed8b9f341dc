"""The templates of a round: nodes that differ only in their names are rewritten by one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from passes.ir.graph_index import GraphIndex
from passes.rule import Site, Template


def likeness(graph: GraphIndex, index: int, opset: int) -> Hashable:
    """A key that is equal for nodes without bodies, which call no function, that differ only in
    names."""
    reads, writes = graph.reads[index], graph.writes[index]
    attributes = [attribute.SerializeToString() for attribute in graph.nodes[index].attribute[:]]
    arity: tuple[Hashable, Hashable] = len(reads), len(writes)
    if "" in reads or "" in writes:
        arity = tuple(map(bool, reads)), tuple(map(bool, writes))
    return opset, graph.ops[index], arity, *attributes


@dataclass
class Templates:
    """The templates of one round, by what nodes have in common and the constants they read."""

    known: dict[Hashable, Template] = field(default_factory=dict)
    fixed: dict[Hashable, tuple[int, ...]] = field(default_factory=dict)
    contents: dict[Hashable, Hashable] = field(default_factory=dict)

    def key(self, likes: Hashable, site: Callable[[], Site]) -> Hashable:
        """Return the key that a node shares with all those for which the same template holds, given
        its `likeness`."""
        fixed = self.fixed.get(likes)
        return (likes, *(self._content(site(), position) for position in fixed)) if fixed else likes

    def add(self, likes: Hashable, site: Site, template: Template) -> None:
        """Keep the template of a node, unless it depends on more constants than that of the first
        node of its kind, by which they are distinguished."""
        fixed = self.fixed.setdefault(likes, template.fixed)
        if set(template.fixed) <= set(fixed):
            self.known[self.key(likes, lambda: site)] = template

    def _content(self, site: Site, position: int) -> Hashable:
        name = site.node.input[position]
        place = site.scope.key, name
        if place not in self.contents:
            value = site.constant(name)
            content = None if value is None else (value.dtype.str, value.shape, value.tobytes())
            self.contents[place] = content
        return self.contents[place]
