"""Chooses which of the nodes that may leave a body do so: those worth it, within a byte budget."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from passes.rules.hoist.invariants import Candidate


@dataclass
class Choice:
    """The candidates that move (`moving`, by number), and those kept back, with a refusal code.

    `outside` holds (candidate, output) for all that is read by what does not move. Such outputs of
    candidates that move are kept while the loop runs, at most `most` bytes of them.
    `can_stand_in` tells whether a substitute for an output of a guarded candidate can be written
    for a loop that does not run. Keeping a candidate back keeps back its readers, and cheap
    candidates that only fed it.
    """

    candidates: Sequence[Candidate]
    outside: set[tuple[int, str]]
    most: int
    can_stand_in: Callable[[int, str], bool] = lambda number, name: True
    moving: set[int] = field(default_factory=set)
    kept: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._readers: dict[int, list[int]] = {}
        for number, candidate in enumerate(self.candidates):
            for source, _ in candidate.reads:
                self._readers.setdefault(source, []).append(number)
        self._take_worthy()
        self._fed = Counter(source for number in self.moving for source in self._sources(number))
        self._bytes = 0
        self._largest: list[tuple[int, int]] = []
        self._untyped: list[int] = []
        for pair in sorted(pair for pair in self.outside if pair[0] in self.moving):
            self._expose(*pair)
        self._keep_untyped()
        while self._bytes > self.most:
            self._keep_back(heapq.heappop(self._largest)[1], "over-budget")
            self._keep_untyped()

    @property
    def chosen(self) -> list[int]:
        """The numbers of the candidates that move, in an order in which they may run."""
        return sorted(self.moving)

    def read_outside(self, number: int) -> list[str]:
        """The outputs of a candidate that are read by something that does not move."""
        return [name for name in self.candidates[number].outputs if (number, name) in self.outside]

    def _sources(self, number: int) -> set[int]:
        return {source for source, _ in self.candidates[number].reads}

    def _take_worthy(self) -> None:
        """Select all that is useful and worth moving, and what feeds it."""
        useful = self._feeding({number for number, _ in self.outside})
        self.moving = self._feeding(
            number for number in useful if not self.candidates[number].cheap
        )
        for number, candidate in enumerate(self.candidates):
            if number not in self.moving:
                self.outside.update(candidate.reads)

    def _feeding(self, numbers: Iterable[int]) -> set[int]:
        """These candidates, and all whose outputs go into them."""
        found: set[int] = set()
        pending = list(numbers)
        while pending:
            number = pending.pop()
            if number not in found:
                found.add(number)
                pending.extend(self._sources(number))
        return found

    def _size(self, number: int, name: str) -> int:
        candidate = self.candidates[number]
        return 0 if candidate.node is None else candidate.level.size_of(name)

    def _expose(self, number: int, name: str) -> None:
        """Note that something that stays reads an output of a candidate that moves."""
        self.outside.add((number, name))
        size, candidate = self._size(number, name), self.candidates[number]
        self._bytes += size
        heapq.heappush(self._largest, (-size, number))
        if candidate.guarded and not self.can_stand_in(number, name):
            self._untyped.append(number)

    def _keep_back(self, first: int, code: str) -> None:
        pending = [first]
        while pending:
            number = pending.pop()
            if number not in self.moving:
                continue
            self.moving.discard(number)
            self.kept[number] = code
            self._bytes -= sum(self._size(number, name) for name in self.read_outside(number))
            pending.extend(self._readers.get(number, ()))
            for pair in self.candidates[number].reads:
                if pair[0] in self.moving and pair not in self.outside:
                    self._expose(*pair)
            for source in self._sources(number):
                self._fed[source] -= 1
                if self.candidates[source].cheap and not self._fed[source]:
                    pending.append(source)

    def _keep_untyped(self) -> None:
        """Keep back guarded candidates that are read outside and have no stand-in."""
        while self._untyped:
            self._keep_back(self._untyped.pop(), "unknown-type")
