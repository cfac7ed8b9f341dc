"""Finds the copies of a subgraph before and after others, from what copies hand on."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from passes.rules.reroll.flow import LEAF, Flow, Value

#: A place of the subgraph, and the number of an output.
Port = tuple[int, int]


class Earlier(NamedTuple):
    """A copy before the first one, as far as it has nodes: their `ranks` by place, `others` that
    it has instead of what nodes compute at a port, such as constants, and the `initials` that it
    reads instead of what the copy before it would compute at a port."""

    ranks: dict[int, int]
    others: dict[Port, Value]
    initials: dict[Port, Value]


def varies(flow: Flow, one: Value, other: Value) -> bool:
    """Return whether values from outside may be slices of one tensor: constants of one type, other
    leaves, outputs of one node."""
    if one[0] != other[0] or one[0] != LEAF:
        return one[0] == other[0]
    first, second = flow.tensor(one), flow.tensor(other)
    if first is None or second is None:
        return first is second and bool(flow.name(one)) and bool(flow.name(other))
    return first.data_type == second.data_type and list(first.dims) == list(second.dims)


def copies_before(flow: Flow, copies: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The copies before these, found from what the first one reads."""
    found: list[tuple[int, ...]] = []
    first, second = copies[:2]
    used = {rank for copy in copies for rank in copy}
    while (copy := _copy_before(flow, first, second)) and used.isdisjoint(copy):
        found.insert(0, copy)
        used.update(copy)
        first, second = copy, first
    return found


def _copy_before(
    flow: Flow, first: tuple[int, ...], second: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The copy whose values the first one reads where the second one reads those of the first."""
    earlier = earlier_copy(flow, first, second)
    if earlier is None or earlier.others:
        return None
    ranks = earlier.ranks
    whole = len(ranks) == len(first) == len(set(ranks.values()))
    return tuple(ranks[place] for place in range(len(first))) if whole else None


def earlier_copy(flow: Flow, first: tuple[int, ...], second: tuple[int, ...]) -> Earlier | None:
    """What there is of the copy before the first one; None where it reads in another way."""
    here, there = ({rank: place for place, rank in enumerate(copy)} for copy in (first, second))
    found = Earlier({}, {}, {})
    pending: list[
        tuple[int, Value, Value]
    ] = []  # a place, what should be there, and what is like it
    for rank, later in zip(first, second, strict=True):
        for value, read in zip(flow.reads[rank], flow.reads[later], strict=True):
            if read[0] in here:
                pending.append((here[read[0]], value, read))
    while pending:
        place, value, model = pending.pop()
        rank, out = value
        if rank == LEAF or out != model[1] or flow.keys[rank] != flow.keys[first[place]]:
            if found.others.setdefault((place, model[1]), value) != value:
                return None
            continue
        if place in found.ranks:
            if found.ranks[place] != rank:
                return None
            continue
        found.ranks[place] = rank
        reads = (flow.reads[one] for one in (rank, first[place], second[place]))
        for value, now, read in zip(*reads, strict=True):
            if read[0] in there:
                pending.append((there[read[0]], value, read))
            elif read[0] in here:
                found.initials.setdefault((here[read[0]], read[1]), value)
            elif value != now and not varies(flow, value, now):
                return None
    return found


def copy_after(flow: Flow, first: tuple[int, ...], last: tuple[int, ...]) -> tuple[int, ...] | None:
    """The copy that reads what the last one computes as that reads what the first one computes."""
    ranks = later_copy(flow, first, last)
    copy = tuple(ranks[place] for place in range(len(last)) if place in ranks)
    return copy if len(set(copy)) == len(last) else None


def later_copy(flow: Flow, first: tuple[int, ...], last: tuple[int, ...]) -> dict[int, int]:
    """What there is of the copy after the last one: ranks by place."""
    before, here = ({rank: place for place, rank in enumerate(copy)} for copy in (first, last))
    given: dict[int, int] = {}

    def read_by(place: int, found: Mapping[int, int]) -> Iterator[Value | None]:
        """The values that a place should read, where they are known."""
        for (rank, out), earlier in zip(
            flow.reads[last[place]], flow.reads[first[place]], strict=True
        ):
            if rank in before:
                yield last[before[rank]], out
            elif rank in here:
                yield (found[here[rank]], out) if here[rank] in found else None
            else:
                yield (rank, out) if (rank, out) == earlier else None

    def with_node(place: int, rank: int) -> Mapping[int, int] | None:
        """What is found besides if a node has a place, as what it reads then has places, too."""
        found, pending = ChainMap[int, int]({}, given), [(place, rank)]
        while pending:
            place, rank = pending.pop()
            if found.setdefault(place, rank) != rank or flow.keys[rank] != flow.keys[last[place]]:
                return None
            rows = zip(
                flow.reads[rank], flow.reads[last[place]], read_by(place, found), strict=True
            )
            for value, now, expected in rows:
                if expected is not None:
                    if value != expected:
                        return None
                elif now[0] in here:
                    if value[0] == LEAF or value[1] != now[1]:
                        return None
                    pending.append((here[now[0]], value[0]))
                elif value == now or not varies(flow, value, now):
                    return None
        return found.maps[0]

    for place in range(len(last)):
        if place not in given:
            known = zip(flow.reads[last[place]], read_by(place, given), strict=True)
            made = [one for now, one in known if one and (now[0] in before or now[0] in here)]
            fits = (with_node(place, rank) for one in made[:1] for rank in flow.readers[one[0]])
            given.update(next((found for found in fits if found), {}))
    return given
