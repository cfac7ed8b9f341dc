"""Finds work that both branches of an If do on the same values."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import NodeProto

from passes.analysis.bodies.nested_graphs import NestedGraph, typed
from passes.analysis.bodies.value_numbers import Numbering, is_identity
from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.rule import Edit, NothingToDo, Site
from passes.rules.hoist.hoist_choice import Choice
from passes.rules.hoist.hoisting import HoistedNames, Hoisting, Twin
from passes.rules.hoist.invariants import Candidate, is_cheap

_NO_LIMIT = 1 << 62  # it is computed and kept in any case


def hoist_common_work(site: Site) -> Edit:
    """Move work that both branches of an If do before the If, to run once.

    Raises:
        NothingToDo: there is no such work.
    """
    node = copied(site.node)
    levels = [NestedGraph.of(site, graph, part) for part, graph in scoping.subgraphs(node)]
    numbers = Numbering(levels[0].graph)
    common = _Common(levels[0], numbers, Numbering(levels[1].graph, beside=numbers))
    common.find(levels[1])
    choice = Choice(common.candidates, common.read(), _NO_LIMIT)
    if not choice.moving:
        raise NothingToDo
    names = HoistedNames(site, node)
    moving = {number: common.candidates[number] for number in choice.chosen}
    for number, candidate in moving.items():
        names.give(number, candidate, candidate.outputs)
    twins = [twin for level in levels for twin in common.twins(level, choice.moving)]
    hoisting = Hoisting(site, moving, names, twins)
    hoisting.run(*levels)
    plain = hoisting.plain
    count = sum(candidate.node is not None for candidate in moving.values())
    return Edit(
        (*plain.nodes, node),
        tuple(hoisting.initializers),
        tuple(plain.value_info) if typed(site) else (),
        note=f"{count} node{'s' * (count != 1)} of both branches",
        annotations=tuple(plain.annotations),
    )


@dataclass
class _Common:
    """Candidates of the first branch whose values the second one computes, too."""

    then: NestedGraph
    numbers: Numbering
    others: Numbering
    candidates: list[Candidate] = field(default_factory=list)
    _producers: dict[str, int] = field(default_factory=dict)
    _first: dict[int, int] = field(default_factory=dict)  # the candidate that makes a number

    def find(self, other: NestedGraph) -> None:
        """Collect the candidates."""
        own = scoping.defined(self.then.graph)
        shared = {self.others.of(name) for name in sorted(scoping.defined(other.graph))}
        for tensor in self.then.graph.initializer:
            if self.numbers.of(tensor.name) in shared:
                self._add(Candidate(self.then, -1, None, (tensor.name,), cheap=True))
        for position, node in enumerate(self.then.graph.node):
            outputs = tuple(filter(None, node.output))
            local = own.intersection(scoping.free_names(node))
            if outputs and self._is_new(node, shared) and local.issubset(self._producers):
                reads = tuple((self._producers[name], name) for name in sorted(local))
                self._add(
                    Candidate(self.then, position, node, outputs, reads, cheap=is_cheap(node))
                )

    def _is_new(self, node: NodeProto, shared: set[int]) -> bool:
        """Return whether the other branch computes a node's outputs, and no candidate does yet."""
        if is_identity(node):
            return True
        numbers = {self.numbers.of(name) for name in node.output if name}
        return numbers <= shared and numbers.isdisjoint(self._first)

    def _add(self, candidate: Candidate) -> None:
        number = len(self.candidates)
        self._producers.update(dict.fromkeys(candidate.outputs, number))
        self.candidates.append(candidate)
        if candidate.node is None or not is_identity(candidate.node):
            self._first.setdefault(self.numbers.of(candidate.outputs[0]), number)

    def read(self) -> set[tuple[int, str]]:
        """The outputs that something other than a candidate may read: here, all of them."""
        return {(number, name) for name, number in self._producers.items()}

    def twins(self, level: NestedGraph, moving: set[int]) -> list[Twin]:
        """Return the nodes that a branch no longer needs because a moving candidate computes the
        same."""
        numbers = self.numbers if level is self.then else self.others
        found: list[tuple[int, tuple[str, ...]]]
        found = [(-1, (tensor.name,)) for tensor in level.graph.initializer]
        found += [
            (position, tuple(filter(None, node.output)))
            for position, node in enumerate(level.graph.node)
            if any(node.output) and not is_identity(node)
        ]
        producers = {name: self._first.get(numbers.of(name), -1) for _, (name, *_) in found}
        kept = self._producers if level is self.then else {}
        return [
            Twin(level, position, outputs, producers[outputs[0]])
            for position, outputs in found
            if producers[outputs[0]] in moving and outputs[0] not in kept
        ]
