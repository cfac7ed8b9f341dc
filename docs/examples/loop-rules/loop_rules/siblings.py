"""Finds Scans of a graph that are independent of each other, and the nodes that must run after
them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from onnx import NodeProto

from passes.analysis.integers.integers import Integers
from passes.analysis.safety.randomness import first_random, is_pure
from passes.bodies.time_body import UNKNOWN_DIM
from passes.errors import BadModel, ChosenByCaller
from passes.ir import scope as scoping
from passes.ir.draft import runs_in_blocks
from passes.ir.operators import called_key, op_of
from passes.ir.scope import Place
from passes.ir.selection import is_meant
from passes.loops.form import LoopForm
from passes.rule import NothingToDo, Refused, Site, Slot
from passes.types.value_types import dims_of

#: How many elements one iteration may read and write: with more, its start takes no time worth
#: saving (measured: 1.2x at 256 elements, 1.08x at 8192, 1.03x at 32768).
_MOST_ELEMENTS = 1 << 14
#: How many nodes the way to a condition is followed back.
_DEEPEST = 6


@dataclass(frozen=True)
class Member:
    """A Scan, by its place, or an If that holds one.

    Members are alike if one of their `keys` is the same: the lengths of what a Scan scans, which
    are equal where it runs; of an If, what computes its condition.
    """

    site: Site
    keys: tuple[Hashable, ...]
    form: LoopForm | None = None
    context: tuple[int, ...] = ()

    @property
    def position(self) -> int:
        return self.site.place.index

    @property
    def elements(self) -> int:
        """The approximate number of elements that an iteration reads and writes."""
        form = self.form
        if form is None:
            return 0
        names = [carried.body_input for carried in form.carried]
        names += [scanned.body_input for scanned in form.scanned]
        names += [collected.body_output for collected in form.collected]
        kinds = (self.site.body_type_of("body", name) for name in names)
        return sum(
            prod(dim if isinstance(dim, int) else UNKNOWN_DIM for dim in dims_of(kind) or (None,))
            for kind in kinds
        )


@dataclass(frozen=True)
class Siblings:
    """Scans, or Ifs, that become one, at the position of the last of them.

    `behind` are the positions of the nodes before that one which read results of the others.
    """

    members: tuple[Member, ...]
    behind: tuple[int, ...]

    @property
    def positions(self) -> frozenset[int]:
        """The positions of all these nodes."""
        return frozenset(self.behind).union(member.position for member in self.members)

    @classmethod
    def of(cls, site: Site) -> Siblings:
        """The Scans that become one at this site, which is the last of them.

        Raises:
            NothingToDo: there are none, it is another of them, or its turn is in a later round.
            Refused: there are Scans beside it, but none that may become one with it.
        """
        owner = site.scope.owner
        found = site.memory.once(_PLANS, lambda: _Planning(site).answers(), of=owner)
        answer = found.get(site.place.index)
        if answer is None:
            raise NothingToDo
        if isinstance(answer, Refused):
            raise answer
        return answer


_PLANS: Slot[Mapping[int, Siblings | Refused]] = Slot()


class _Planning:
    """Finds the siblings in the graph of a site, in time linear in its nodes.

    The `level` of a node is the most members on a way to it. Members of one level do not depend on
    each other, and what reads their results feeds none of them.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.nodes = list(site.scope.owner.node)
        self.members = {member.position: member for member in self._members()}

    def answers(self) -> dict[int, Siblings | Refused]:
        """The result for each site that has one."""
        levels = self._levels()
        first = {level: position for position, level in reversed(levels.items())}
        found: dict[int, Siblings | Refused] = {}
        taken: set[int] = set()
        for bucket in self._buckets(levels):
            for group in _packed(bucket):
                last = group[-1]
                answer = self._together(group)
                if (
                    answer is None
                    and last.form is not None
                    and first[levels[last.position]] < last.position
                ):
                    answer = _refused_alone(last, bucket)
                if isinstance(answer, Siblings):
                    if not taken.isdisjoint(answer.positions):
                        continue  # in the next round
                    taken |= answer.positions
                if answer is not None:
                    found[last.position] = answer
        return found

    def _together(self, group: Sequence[Member]) -> Siblings | Refused | None:
        """Return the result for a few Scans; None if there is only one."""
        if len(group) == 1:
            return None
        behind = self._behind(group)
        if not any(map(self._may_not_move, behind)):
            return Siblings(tuple(group), behind)
        return _refused(
            group[-1],
            "fixed-order",
            "what reads the results of a Scan beside it draws random numbers, or holds Scans, and "
            "so may not move behind it",
        )

    def _members(self) -> Iterator[Member]:
        """The Scans that may become one with others, and Ifs whose Scans may."""
        for position, node in enumerate(self.nodes):
            if op_of(node) not in ("Scan", "If") or runs_in_blocks(node) or not is_meant(node):
                continue
            if first_random(self.site.model, [node]) is not None:
                continue
            site = replace(self.site, place=Place(node, position, self.site.scope))
            if op_of(node) == "If":
                if _loops_and_ifs(node) == ["Scan"]:
                    context: set[int] = set()
                    yield Member(
                        site,
                        (self._computed(node.input[0], context, _DEEPEST),),
                        context=tuple(sorted(context)),
                    )
            elif not _holds_scan(node):
                try:
                    form = LoopForm.from_node(node, site.opset)
                except (BadModel, ChosenByCaller):  # the site of that node says so
                    continue
                integers = Integers(site)
                sizes = (integers.size(scanned.tensor, scanned.axis) for scanned in form.scanned)
                yield Member(site, tuple(size for size in sizes if size is not None), form)

    def _computed(self, name: str, context: set[int], depth: int) -> Hashable:
        """Return a key for how a value is computed: values with equal keys are equal.

        The positions of the nodes that compute it are added to `context`.
        """
        value = self.site.constant(name) if name else None
        if value is not None and value.dtype != object:
            return (value.dtype.str, value.shape, value.tobytes())
        node = self.site.graph.producers.get(name)
        if node is None or not depth or scoping.holds_graphs(node) or not is_pure(node):
            return name
        context.add(self.site.graph.positions[name])
        attributes = sorted(one.SerializeToString(deterministic=True) for one in node.attribute)
        inputs = tuple(self._computed(one, context, depth - 1) for one in node.input)
        return (called_key(node), list(node.output).index(name), *attributes, inputs)

    def _levels(self) -> dict[int, int]:
        """The levels of the members."""
        of_value: dict[str, int] = {}
        found: dict[int, int] = {}
        for position, node in enumerate(self.nodes):
            level = max((of_value.get(name, 0) for name in scoping.free_names(node)), default=0)
            if position in self.members:
                found[position] = level
                level += 1
            if level:
                of_value.update(dict.fromkeys(node.output, level))
        return found

    def _buckets(self, levels: Mapping[int, int]) -> list[list[Member]]:
        """The members of each level, by their trip counts."""
        buckets: list[list[Member]] = []
        known: dict[tuple[int, Hashable], list[Member]] = {}
        for position, member in self.members.items():
            keys = [(levels[position], key) for key in member.keys]
            bucket = next((known[key] for key in keys if key in known), None)
            if bucket is None:
                buckets.append(bucket := [])
            bucket.append(member)
            for key in keys:
                known.setdefault(key, bucket)
        return buckets

    def _behind(self, group: Sequence[Member]) -> tuple[int, ...]:
        """Return the nodes before the last member that read the results of the others."""
        readers, last = self.site.graph.readers, group[-1].position
        pending = [member.position for member in group[:-1]]
        found = set(pending)
        while pending:
            for name in filter(None, self.nodes[pending.pop()].output):
                for reader in readers.get(name, ()):
                    if 0 <= reader < last and reader not in found:
                        found.add(reader)
                        pending.append(reader)
        return tuple(sorted(found.difference(member.position for member in group)))

    def _may_not_move(self, position: int) -> bool:
        node = self.nodes[position]
        return _holds_scan(node) or first_random(self.site.model, [node]) is not None


def _refused_alone(member: Member, bucket: Sequence[Member]) -> Refused:
    """Why a Scan with others beside it becomes one with none of them."""
    if len(bucket) == 1:
        return _refused(
            member,
            "trip-counts",
            "it is not proven that a Scan beside it runs as many iterations",
        )
    return _refused(
        member,
        "not-worth-it",
        "with a Scan beside it, it has large elements, which take longer than an iteration's start",
    )


def _refused(member: Member, code: str, sentence: str) -> Refused:
    return member.site.refused(code, sentence)


def _packed(bucket: Sequence[Member]) -> Iterator[list[Member]]:
    """Neighbours, as many as are small enough together."""
    group: list[Member] = []
    elements = 0
    for member in bucket:
        if group and elements + member.elements > _MOST_ELEMENTS:
            yield group
            group, elements = [], 0
        group.append(member)
        elements += member.elements
    yield group


def _holds_scan(node: NodeProto) -> bool:
    """Return whether there are Scans in the bodies of a node."""
    return "Scan" in _loops_and_ifs(node)


def _loops_and_ifs(node: NodeProto) -> list[str]:
    """The operators with bodies in the bodies of a node."""
    return [
        op_of(inner)
        for _, body in scoping.subgraphs(node)
        for graph in scoping.graphs_below(body)
        for inner in graph.node
        if scoping.holds_graphs(inner)
    ]
