"""The names of values that have left the body that computed them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from onnx import NodeProto

from passes.analysis.bodies.nested_graphs import remember
from passes.ir import scope as scoping
from passes.ir.scope import Owner
from passes.rule import Site, Slot
from passes.rules.hoist.invariants import Candidate

_DEFINING_GRAPHS: Slot[Counter[str]] = Slot()


class HoistedNames:
    """Names for the outputs of candidates, by number and old name.

    `inside` is the name of a value where it is computed, `outside` the one for readers that stay.
    They differ only for guarded values, which come out of an If. A name stays where no
    other graph of the model has it, and where the body does not return the value under it.
    """

    def __init__(self, site: Site, node: NodeProto) -> None:
        self.inside: dict[tuple[int, str], str] = {}
        self.outside: dict[tuple[int, str], str] = {}
        self._site = site
        graphs = [graph for _, graph in scoping.subgraphs(node)]
        self._now = _count(inner for graph in graphs for inner in scoping.graphs_below(graph))

    def give(self, number: int, candidate: Candidate, read: Collection[str]) -> None:
        """Name the outputs of a candidate; `read` are those with readers that stay."""
        for name in candidate.outputs:
            stays = self._is_unique(name) and name not in candidate.level.returned
            inside = name if stays else self._site.fresh(name)
            self.inside[number, name] = inside
            if name in read:
                outside = self._site.fresh(name) if candidate.guarded else inside
                self.outside[number, name] = outside
                remember(self._site, outside, candidate.level.type_of(name))

    def _is_unique(self, name: str) -> bool:
        owners = (owner for _, owner in scoping.owners(self._site.model.proto))
        below = (inner for owner in owners for inner in scoping.graphs_below(owner))
        as_read = self._site.memory.once(_DEFINING_GRAPHS, lambda: _count(below))
        return self._now[name] < 2 and as_read[name] < 2


def _count(owners: Iterable[Owner]) -> Counter[str]:
    """In how many of these graphs a name is defined or declared."""
    found: Counter[str] = Counter()
    for owner in owners:
        found.update(scoping.defined(owner).union(value.name for value in owner.value_info))
    return found
