"""Writes the tensors that a raised Scan scans, in front of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passes import spelling
from passes.author import Author
from passes.purposes import GUARD_READS
from passes.rules.raising import Raising
from passes.rules.windows import Window

_RANGE, _SLICE_HAS_INPUTS = 11, 10


@dataclass
class ScanFeeds:
    """Writes what the Scan scans, where at least one iteration runs.

    `windows` are what iterations read, None for their number.
    """

    raising: Raising
    windows: Sequence[Window | None]
    author: Author
    _count: str = ""
    _explicit: bool = False
    _sure: bool = False  # whether some input has as many elements as there are iterations

    def __post_init__(self) -> None:
        self._explicit = self.raising.non_empty and self._keeps_count()
        self._sure = any(one is None or not one.guarded for one in self.windows)

    def _keeps_count(self) -> bool:
        """Whether the trip count must be read, so that what guards it still does.

        A Scan itself sees to it that whole tensors have the same size.
        """
        trips = self.raising.trips
        if not trips.guards or self.raising.assumes("valid-inputs"):
            return False
        whole = [one.extent for one in self.windows if one and one.whole]
        seen = {one - other for one in whole for other in whole}
        return not trips.only_equalities or not set(trips.zeros) <= seen

    def count(self) -> str:
        """The trip count, a scalar."""
        if not self._count:
            self._count = self.raising.trips.scalar(self.author)
        return self._count

    def vector(self) -> str:
        """The trip count, int64 [1]."""
        return spelling.unsqueeze(self.author, self.count(), 0)

    def tensor(self, window: Window | None) -> str:
        """The tensor to scan: one element an iteration."""
        author = self.author
        if window is None:
            numbers = self._numbers()
            rank = self.raising.form.iteration_rank
            return spelling.unsqueeze(author, numbers, 1) if rank else numbers
        tensor = window.read.tensor
        if window.whole and not self._explicit:
            return tensor
        self._explicit = False
        if window.guarded and not self._sure:
            tensor = self._guarded(tensor, window)
            self._sure = True  # a Scan fails itself where another input is shorter
        return self._cut(tensor, window)

    def _numbers(self) -> str:
        """The numbers of all iterations."""
        author = self.author
        if author.opset < _RANGE:
            return spelling.arange(author, self.vector())
        return author.op("Range", author.int(0), self.count(), author.int(1))

    def _guarded(self, tensor: str, window: Window) -> str:
        author, behind = self.author, self.count()
        with author.serving(GUARD_READS):
            size = spelling.size_of_axis(author, tensor, window.read.axis)
            if window.first:
                behind = author.op("Add", behind, author.int(window.first))
            exceeds = author.op("Greater", behind, spelling.squeeze(author, size, 0))
            return spelling.must(author, tensor, author.op("Not", exceeds))

    def _cut(self, tensor: str, window: Window) -> str:
        author, first = self.author, window.first
        if author.opset < _SLICE_HAS_INPUTS:
            index = spelling.arange(author, self.vector())
            index = author.op("Add", index, author.int(first)) if first else index
            return author.op("Gather", tensor, index, axis=window.read.axis)
        end = self.vector()
        end = author.op("Add", end, author.ints(first)) if first else end
        return author.op("Slice", tensor, author.ints(first), end, author.ints(window.read.axis))
