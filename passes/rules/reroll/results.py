"""The values that a graph reads of the copies of a subgraph, as outputs of a loop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from onnx import NodeProto

from passes.ir import scope as scoping
from passes.ir.graph_index import OUTPUT, GraphIndex
from passes.ir.operators import op_of
from passes.rules.reroll.chain import Chain
from passes.rules.reroll.copies import Port
from passes.rules.reroll.flow import Value


@dataclass(frozen=True)
class Joined:
    """Inputs of a Concat, from `start` on, which are what all copies give at a port; `backwards`
    from the last one on."""

    concat: int
    start: int
    port: Port
    backwards: bool


@dataclass(frozen=True)
class Results:
    """The readers of a chain outside of it, in the graph of an index.

    `positions` are those of the nodes of the chain.
    """

    chain: Chain
    index: GraphIndex

    @cached_property
    def positions(self) -> frozenset[int]:
        flow, count = self.chain.flow, len(self.index.owner.node)
        ranks = (rank for copy in self.chain.copies for rank in copy)
        return frozenset(place for rank in ranks if (place := flow.positions[rank]) < count)

    @cached_property
    def joined(self) -> list[Joined]:
        """The values of all copies that are the inputs of a Concat, in order."""
        found = list[Joined]()
        for position in sorted(self._concats):
            homes = [self._home(name) for name in self.index.owner.node[position].input]
            start = 0
            while start < len(homes):
                one = self._joined(position, homes, start)
                found += [one] if one else []
                start += len(self.chain.copies) if one else 1
        return found

    @cached_property
    def gone(self) -> frozenset[int]:
        """The positions of the chain, and of Identities that only it reads."""
        return self.positions.union(self._copies_inside)

    @property
    def anchor(self) -> int:
        """The position of the last node that is to be rewritten."""
        return max(max(self.positions), *(one.concat for one in self.joined), 0)

    def singles(self, joined: Sequence[Joined]) -> dict[Port, list[int]]:
        """The copies whose values are read by other nodes than these Concats, in those places."""
        nodes, flow = self.index.owner.node, self.chain.flow
        loose: dict[int, list[str]] = {}
        for one in reversed(joined):
            names = loose.setdefault(one.concat, list(nodes[one.concat].input))
            del names[one.start : one.start + len(self.chain.copies)]
        others = {concat: set(names) for concat, names in loose.items()}
        found: defaultdict[Port, list[int]] = defaultdict(list)
        for copy, ranks in enumerate(self.chain.copies):
            for place, rank in enumerate(ranks):
                for out, name in enumerate(flow.node(rank).output):
                    readers = self._outside(name)
                    if any(one not in others or name in others[one] for one in readers):
                        found[place, out].append(copy)
        return found

    @cached_property
    def _homes(self) -> dict[int, tuple[int, int]]:
        return self.chain.homes()

    def _home(self, name: str) -> tuple[int, Port] | None:
        """The copy and the port of a value."""
        value: Value = self.chain.flow.value(name)
        home = self._homes.get(value[0])
        return None if home is None else (home[0], (home[1], value[1]))

    def _joined(
        self, concat: int, homes: Sequence[tuple[int, Port] | None], start: int
    ) -> Joined | None:
        count, first = len(self.chain.copies), homes[start]
        if first is None:
            return None
        port = first[1]
        for copies in (range(count), range(count - 1, -1, -1)):
            if list(homes[start : start + count]) == [(copy, port) for copy in copies]:
                return Joined(concat, start, port, copies[0] > 0)
        return None

    @cached_property
    def _concats(self) -> set[int]:
        nodes, flow = self.index.owner.node, self.chain.flow
        first = (name for rank in self.chain.copies[0] for name in flow.node(rank).output)
        readers = {reader for name in first for reader in self._outside(name)} - {OUTPUT}
        return {reader for reader in readers if op_of(nodes[reader]) == "Concat"}

    def _outside(self, name: str) -> Iterator[int]:
        """The readers of a value that are neither in the chain nor only read by it."""
        for reader in self.index.readers.get(name, ()) if name else ():
            if reader == OUTPUT or (
                reader not in self.positions and reader not in self._copies_inside
            ):
                yield reader

    @cached_property
    def _copies_inside(self) -> set[int]:
        """The Identities of values of the chain that nothing outside of it reads."""
        nodes, found = self.index.owner.node, set[int]()
        for name, position in reversed(self.index.positions.items()):
            if op_of(nodes[position]) == "Identity" and self._home(name) is not None:
                readers = self.index.readers.get(name, ())
                if all(one in self.positions or one in found for one in readers):
                    found.add(position)
        return found


def moved(nodes: Sequence[NodeProto], gone: Collection[int], here: int) -> list[int]:
    """The positions of the nodes that have to run after what replaces those that are `gone` and the
    one at `here`, which is the last; that one is among them unless it is gone."""
    found, depend = list[int](), set[str]()
    for position in range(min(gone), here + 1):
        node = nodes[position]
        if position in gone:
            depend.update(node.output)
        elif position == here or not depend.isdisjoint(scoping.free_names(node)):
            found.append(position)
            depend.update(node.output)
    return found
