"""Which of the nodes that may leave a body do so: those worth it, within a budget of bytes."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from passes.rules.hoist.invariants import Candidate


@dataclass
class Choice:
    """The candidates that move (`moving`, by number), and those kept back, with a code why.

    `outside` holds (candidate, output) for all that is read by what does not move. The outputs
    of what moves that are read so are kept while the loop runs: they are at most `most` bytes.
    `can_stand_in` says of an output of a guarded candidate whether something can stand for it
    where the loop does not run. Keeping a candidate back keeps back what reads it, and what is
    cheap and only fed it.
    """

    candidates: Sequence[Candidate]
    outside: set[tuple[int, str]]
    most: int
    can_stand_in: Callable[[int, str], bool] = lambda at, name: True
    moving: set[int] = field(default_factory=set)
    kept: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._readers: dict[int, list[int]] = {}
        for at, one in enumerate(self.candidates):
            for source, _ in one.reads:
                self._readers.setdefault(source, []).append(at)
        self._take_worthy()
        self._fed = Counter(source for at in self.moving for source in self._sources(at))
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
        """The numbers of what moves, in an order in which it may run."""
        return sorted(self.moving)

    def read_outside(self, at: int) -> list[str]:
        """The outputs of a candidate that something reads which does not move."""
        return [name for name in self.candidates[at].outputs if (at, name) in self.outside]

    def _sources(self, at: int) -> set[int]:
        return {source for source, _ in self.candidates[at].reads}

    def _take_worthy(self) -> None:
        """All that is worth a move and of use, and what feeds it."""
        useful = self._feeding({at for at, _ in self.outside})
        self.moving = self._feeding(at for at in useful if not self.candidates[at].cheap)
        for at, one in enumerate(self.candidates):
            if at not in self.moving:
                self.outside.update(one.reads)

    def _feeding(self, numbers: Iterable[int]) -> set[int]:
        """These candidates, and all whose outputs go into them."""
        found: set[int] = set()
        pending = list(numbers)
        while pending:
            at = pending.pop()
            if at not in found:
                found.add(at)
                pending.extend(self._sources(at))
        return found

    def _size(self, at: int, name: str) -> int:
        one = self.candidates[at]
        return 0 if one.node is None else one.level.size_of(name)

    def _expose(self, at: int, name: str) -> None:
        """Something that stays reads an output of what moves."""
        self.outside.add((at, name))
        size, one = self._size(at, name), self.candidates[at]
        self._bytes += size
        heapq.heappush(self._largest, (-size, at))
        if one.guarded and not self.can_stand_in(at, name):
            self._untyped.append(at)

    def _keep_back(self, at: int, code: str) -> None:
        pending = [at]
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
        """What is guarded and read outside needs a stand-in for where the loop does not run."""
        while self._untyped:
            self._keep_back(self._untyped.pop(), "unknown-type")
