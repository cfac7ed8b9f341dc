"""Finds a subgraph that is repeated, each copy reading what the one before it computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from passes.analysis.safety.may_fail import fails_on_other_values
from passes.rules.reroll.copies import copies_before, copy_after, later_copy, varies
from passes.rules.reroll.flow import LEAF, Flow, Value

FEWEST = 3
_MOST_PERIODS = 8  # distances between like nodes that are tried
_MOST_RUNS = 32
_MOST_STARTS = 4  # of the copies of a run that are tried
_DEEPEST = 16  # nodes beside a chain that join it for one of its readers
_LARGEST = 300  # places of copies that may begin elsewhere
_FEW = 4  # at most one in so many nodes of the last copy is added
_RADIUS = 6  # how far around a node it is compared with others


class Inner(NamedTuple):
    """An input that the same copy computes: output `out` of the node with a `place` in it."""

    place: int
    out: int


class State(NamedTuple):
    """An input that the copy before computes; the first copy reads `initial`."""

    place: int
    out: int
    initial: Value


class Outer(NamedTuple):
    """An input from outside: one value for each copy, or one for all."""

    values: tuple[Value, ...]


Wire = Inner | State | Outer


@dataclass(frozen=True)
class Chain:
    """The copies of a subgraph, in order: in each, a rank for each place of the subgraph."""

    flow: Flow
    copies: tuple[tuple[int, ...], ...]

    def wires(self) -> list[list[Wire]] | None:
        """The sources that each place reads; None if the copies do not read the same way, or one
        reads a value of a copy that is not the one before it."""
        homes = self.homes()
        found = [[self._wire(homes, row) for row in self._rows(ranks)] for ranks in self.families]
        wires = [[wire for wire in row if wire is not None] for row in found]
        return wires if list(map(len, wires)) == list(map(len, found)) else None

    def is_closed(self) -> bool:
        """Return whether the copies read the same way, and nothing that depends on them but through
        nodes outside of them."""
        after = self.flow.dependents(rank for copy in self.copies for rank in copy)
        outer: list[Value] = []
        for wire in (wire for row in self.wires() or [] for wire in row):
            if isinstance(wire, Outer):
                outer += wire.values
            elif isinstance(wire, State):
                outer.append(wire.initial)
        return bool(outer) and not any(rank != LEAF and after[rank] for rank, _ in outer)

    @property
    def families(self) -> list[tuple[int, ...]]:
        """For each place, its ranks in the copies."""
        return list(zip(*self.copies, strict=True))

    def homes(self) -> dict[int, tuple[int, int]]:
        """The copy and the place of each rank."""
        return {
            rank: (index, place)
            for index, copy in enumerate(self.copies)
            for place, rank in enumerate(copy)
        }

    def with_readers(self) -> Chain:
        """The same, with the nodes of each copy that only read what it computes, and what is read
        there besides."""
        joining = _Joining(self)
        place = 0
        while place < len(joining.copies[0]):
            readers = [joining.readers(copy[place]) for copy in joining.copies]
            for sign in list(readers[0]):
                row = [found.get(sign, LEAF) for found in readers]
                if LEAF not in row:
                    joining.join(row)
            place += 1
        return Chain(self.flow, tuple(map(tuple, joining.copies)))

    def with_last(self) -> Chain:
        """The same, with a last copy of which nothing reads some states, so that it lacks their
        nodes: they are added to the flow, unless they may fail."""
        flow, wires, whole = self.flow, self.wires() or [], len(self.copies[0])
        ranks = later_copy(flow, *self.copies[-2:])
        missing = [place for place in range(whole) if place not in ranks]
        used = {rank for copy in self.copies for rank in copy}
        few = 0 < len(missing) * _FEW <= whole
        if not few or len(set(ranks.values())) < len(ranks) or not used.isdisjoint(ranks.values()):
            return self
        own = {
            wire: flow.reads[rank][number]
            for place, rank in ranks.items()
            for number, wire in enumerate(wires[place])
            if isinstance(wire, Outer)
        }
        for place in missing:
            if fails_on_other_values(flow.node(self.copies[1][place]), flow.known):
                return self
            reads = list[Value]()
            for wire in wires[place]:
                if isinstance(wire, Outer):
                    reads += [own[wire]] if wire in own else [*{*wire.values}][:2]
                else:
                    copy = self.copies[-1] if isinstance(wire, State) else ranks
                    reads.append((copy[wire.place], wire.out))
            if len(reads) > len(wires[place]):
                return self
            ranks[place] = flow.add(self.copies[1][place], reads)
        last = tuple(ranks[place] for place in range(whole))
        return Chain(flow, (*self.copies, last))

    def _rows(self, ranks: Sequence[int]) -> Iterator[tuple[Value, ...]]:
        return zip(*(self.flow.reads[rank] for rank in ranks), strict=True)

    def _wire(self, homes: dict[int, tuple[int, int]], row: tuple[Value, ...]) -> Wire | None:
        places = [homes.get(producer) for producer, _ in row]
        if places[1] is None:
            return Outer(row) if not any(places) else None
        index, place = places[1]
        out = row[1][1]
        for copy in range(1, len(row)):
            if places[copy] != (copy + index - 1, place) or row[copy][1] != out:
                return None
        if index == 1:
            return Inner(place, out) if places[0] == (0, place) and row[0][1] == out else None
        return State(place, out, row[0]) if places[0] is None else None


class _Joining:
    """Adds nodes to the copies of a chain, one to each."""

    def __init__(self, chain: Chain) -> None:
        self.flow = chain.flow
        self.copies = [list(copy) for copy in chain.copies]
        self._homes = chain.homes()
        self._after = chain.flow.dependents(self._homes)

    def readers(self, rank: int) -> dict[object, int]:
        """The readers of a node outside of the copies, by what they read of its copy, where that
        tells them apart."""
        index = self._homes[rank][0]
        found: dict[object, list[int]] = {}
        for reader in self.flow.readers[rank]:
            inner = None if reader in self._homes else self._inner(reader, index)
            if inner is not None:
                found.setdefault((self.flow.keys[reader], inner), []).append(reader)
        return {sign: readers[0] for sign, readers in found.items() if len(readers) == 1}

    def _inner(self, reader: int, index: int) -> tuple[tuple[int, int] | None, ...] | None:
        """The sources that a node of a copy reads; None if it reads others than that copy and the
        one before it."""
        found: list[tuple[int, int] | None] = []
        for rank, out in self.flow.reads[reader]:
            copy, place = self._homes.get(rank, (index - 1, 0))
            if copy not in (index, index - 1):
                return None
            found.append((place, out) if copy == index else None)
        return tuple(found)

    def join(self, row: Sequence[int]) -> bool:
        """Add a node to each copy, after what it reads that is one for each copy, too; returns
        whether that was possible."""
        pending: list[list[int]] = []
        if not self._follow(list(row), pending):
            return False
        for ranks in pending:
            for index, (copy, rank) in enumerate(zip(self.copies, ranks, strict=True)):
                self._homes[rank] = (index, len(copy))
                copy.append(rank)
        return True

    def _follow(self, row: list[int], pending: list[list[int]], depth: int = 0) -> bool:
        if row in pending:
            return True
        keys = {self.flow.keys[rank] for rank in row}
        taken = any(rank in ranks for ranks in pending for rank in row)
        if len(keys) > 1 or len(set(row)) < len(row) or taken or depth > _DEEPEST:
            return False
        for values in zip(*(self.flow.reads[rank] for rank in row), strict=True):
            if not self._reads_alike(values, pending, depth):
                return False
        pending.append(row)
        return True

    def _reads_alike(self, values: Sequence[Value], pending: list[list[int]], depth: int) -> bool:
        (first, out), ranks = values[0], [rank for rank, _ in values]
        homes = [self._homes.get(rank) for rank in ranks]
        if homes[0] is not None:
            same = [(index, homes[0][1]) for index in range(len(ranks))]
            return homes == same and {one for _, one in values} == {out}
        if (
            homes[1] is not None
        ):  # what the copy before computes, if the first reads an initial value
            before = [(index, homes[1][1]) for index in range(len(ranks) - 1)]
            same_out = len({one for _, one in values[1:]}) == 1
            return homes[1:] == before and same_out and (first == LEAF or not self._after[first])
        if len(set(values)) == 1:
            return first == LEAF or not self._after[first]
        if set(ranks) == {first} != {LEAF}:
            return not self._after[first]
        if any(homes) or {one for _, one in values} != {out} or LEAF in ranks:
            constant = all(self.flow.tensor(value) is not None for value in values)
            return constant and all(varies(self.flow, values[0], value) for value in values)
        return self._follow(ranks, pending, depth + 1)


def chains(flow: Flow) -> Iterator[Chain]:
    """The chains of a graph, those with the most nodes first; what carries no value is none."""
    for _, period, start, end in sorted(_runs(flow), key=lambda run: (-run[0], run[1]))[
        :_MOST_RUNS
    ]:
        starts = _best_starts(flow, period, start, end)
        copies = max((_copies(flow, period, start, end) for start in starts), key=_size)
        if len(copies) >= FEWEST:
            yield _rotated(Chain(flow, tuple(copies)))


def _copies(flow: Flow, period: int, start: int, end: int) -> list[tuple[int, ...]]:
    """The copies in a range of ranks, and those before and after them."""
    firsts = range(start, end - period + 1, period)
    copies = _carrying(flow, [tuple(range(first, first + period)) for first in firsts])
    return _extended(flow, copies) if copies else []


def _extended(flow: Flow, copies: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Copies, with those before and after them."""
    found = [*copies_before(flow, copies), *copies]
    used, whole = {rank for copy in found for rank in copy}, list(found)
    while (copy := copy_after(flow, *whole[-2:])) and used.isdisjoint(copy):
        whole.append(copy)
        used.update(copy)
    more = len(whole) > len(found) and Chain(flow, tuple(whole)).is_closed()
    return whole if more else found


def _rotated(chain: Chain) -> Chain:
    """The chain whose copies begin elsewhere, if they then hand fewer values on."""
    wires = chain.wires() if len(chain.copies[0]) <= _LARGEST else None
    part = _earlier(wires or [])
    rotated = _begun_later(chain, part) if part else chain
    return rotated if rotated.wires() and len(rotated.copies) >= len(chain.copies) else chain


def _begun_later(chain: Chain, part: Collection[int]) -> Chain:
    """The chain whose copies have these places of the copy after them."""
    order = sorted(range(len(chain.copies[0])), key=part.__contains__)
    copies = [
        tuple((after if place in part else copy)[place] for place in order)
        for copy, after in pairwise(chain.copies)
    ]
    return Chain(chain.flow, tuple(_extended(chain.flow, copies)))


def handing_on(chain: Chain, places: Iterable[int]) -> Chain:
    """The chain whose copies compute at these places what the next one reads; as it is where that
    is impossible."""
    needs, part = _needs(chain.wires() or []), frozenset[int]()
    for place in places:
        part = _with_needs(needs, part, place)
    return chain if len(part) == len(needs) else _begun_later(chain, part)


def _earlier(wires: Sequence[Sequence[Wire]]) -> frozenset[int]:
    """The places that the copy before is to compute, so that copies hand the fewest values on.

    One after the other, the places that read such a value are tried, each with those that it
    depends on in its copy, and those that read it in the next one.
    """
    readers: dict[tuple[int, int], list[tuple[int, bool]]] = {}
    needs = _needs(wires)
    for place, read in enumerate(wires):
        for wire in read:
            if not isinstance(wire, Outer):
                handed = isinstance(wire, State)
                readers.setdefault((wire.place, wire.out), []).append((place, handed))

    def handed_on(part: frozenset[int]) -> list[list[tuple[int, bool]]]:
        return [
            read
            for (place, _), read in readers.items()
            if any(handed + (place in part) > (reader in part) for reader, handed in read)
        ]

    def order(part: frozenset[int]) -> tuple[int, int, list[int]]:
        return len(handed_on(part)), len(part), sorted(part)

    best, part, everything = frozenset[int](), frozenset[int](), frozenset(range(len(wires)))
    while part != everything:
        ahead = {place for read in handed_on(part) for place, _ in read} - part
        parts = {_with_needs(needs, part, place) for place in ahead} - {everything}
        part = min(parts, key=order, default=everything)
        best = min(best, part, key=order)
    return best


def _needs(wires: Sequence[Sequence[Wire]]) -> list[set[int]]:
    """For each place, those that it depends on in its copy, and those that read it in the next."""
    needs = [{wire.place for wire in read if isinstance(wire, Inner)} for read in wires]
    for place, read in enumerate(wires):
        for wire in read:
            if isinstance(wire, State):
                needs[wire.place].add(place)
    return needs


def _with_needs(needs: Sequence[set[int]], part: frozenset[int], place: int) -> frozenset[int]:
    found, pending = set(part), [place]
    while pending:
        one = pending.pop()
        if one not in found:
            found.add(one)
            pending += needs[one]
    return frozenset(found)


def _size(copies: Sequence[tuple[int, ...]]) -> int:
    return sum(map(len, copies))


def repeats(flow: Flow) -> bool:
    """Return whether anything is repeated, with or without a carried value."""
    return any((end - start) // period >= FEWEST for _, period, start, end in _runs(flow))


def _alike(flow: Flow, first: int, second: int, period: int) -> bool:
    """Return whether two nodes read the same way, a period apart."""
    for one, other in zip(flow.reads[first], flow.reads[second], strict=True):
        if one == other:
            continue
        follows = one[1] == other[1] and other[0] - one[0] == period and one[0] != LEAF
        if not follows and not varies(flow, one, other):
            return False
    return True


def _runs(flow: Flow) -> Iterator[tuple[int, int, int, int]]:
    """Ranges of ranks that repeat: nodes, the period, where they start and end."""
    keys = flow.keys
    for period in _periods(flow):
        start = 0
        for rank in range(len(keys) - period + 1):
            other = rank + period
            if (
                other < len(keys)
                and keys[rank] == keys[other]
                and _alike(flow, rank, other, period)
            ):
                continue
            if rank - start >= period:
                yield rank - start, period, start, other
            start = rank + 1


def _periods(flow: Flow) -> list[int]:
    """The most frequent distances between nodes that are alike, with and without those around."""
    votes = Counter[int]()
    keys = flow.keys
    for _ in range(_RADIUS):
        last: dict[int, int] = {}
        for rank, key in enumerate(keys):
            if key in last:
                votes[rank - last[key]] += 1
            last[key] = rank
        numbers: dict[object, int] = {}
        around = (
            (key, *(LEAF if value[0] == LEAF else keys[value[0]] for value in read))
            for key, read in zip(keys, flow.reads, strict=True)
        )
        keys = [numbers.setdefault(key, len(numbers)) for key in around]
    return [period for period, _ in votes.most_common(_MOST_PERIODS)]


def _best_starts(flow: Flow, period: int, start: int, end: int) -> list[int]:
    """The starts of the first copy with which copies hand the fewest values on, the last first;
    then the first and the last one that there may be."""
    spare = (end - start) % period
    crossing = [0] * (2 * period + 2)
    last: dict[Value, int] = {}
    for rank in range(start, min(end, start + 3 * period)):
        for value in flow.reads[rank]:
            if value[0] >= start:
                last[value] = rank
    for (rank, _), reader in last.items():
        for edge in range(max(rank + 1, start + period), min(reader, start + 2 * period) + 1):
            crossing[edge - start] += 1
    fewest = min(crossing[period : period + spare + 1])
    offsets = [offset for offset in range(spare + 1) if crossing[offset + period] == fewest]
    tried = [*offsets[: -_MOST_STARTS - 1 : -1], 0, spare]
    return [start + offset for offset in dict.fromkeys(tried)]


def _carrying(flow: Flow, copies: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The copies without what no later copy depends on; none where nothing is handed on."""
    here, there = ({rank: place for place, rank in enumerate(copy)} for copy in copies[:2])
    pending = [here[value[0]] for rank in there for value in flow.reads[rank] if value[0] in here]
    kept: set[int] = set()
    while pending:
        place = pending.pop()
        if place not in kept:
            kept.add(place)
            read = flow.reads[copies[1][place]]
            pending += [there[value[0]] for value in read if value[0] in there]
    return [tuple(copy[place] for place in sorted(kept)) for copy in copies] if kept else []
