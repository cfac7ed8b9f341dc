"""Every decision of the generator, drawn through one object that can be recorded and replayed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: A small model draws its sizes from a part of what they might be.
_SMALL = 3
#: A model whose decisions need more numbers than this is cut short: the rest are zeros.
_MOST = 20_000


class Choices:
    """Draws numbers from a seed, or replays a list of them; behind its end all are 0.

    0 is always the simplest decision, so that a shorter or smaller list is a smaller model.
    """

    def __init__(
        self,
        replayed: Sequence[int],
        source: random.Random | None = None,
        *,
        small: bool = False,
    ) -> None:
        self._replayed = replayed
        self._source = source
        self._small = small
        self.drawn: list[int] = []

    @classmethod
    def of_seed(cls, seed: int, *, small: bool = False) -> Choices:
        """Fresh decisions, the same for the same seed on every machine and run."""
        return cls((), random.Random(seed), small=small)

    def below(self, bound: int) -> int:
        """A number from 0 to `bound - 1`."""
        place = len(self.drawn)
        if place < len(self._replayed):
            number = min(self._replayed[place], bound - 1)
        elif self._source is not None and place < _MOST:
            number = self._source.randrange(bound)
        else:
            number = 0
        self.drawn.append(number)
        return number

    def size(self, bound: int) -> int:
        """A number below `bound` that says how much there is of something."""
        fresh = len(self.drawn) >= len(self._replayed)
        return self.below(max(1, bound // _SMALL) if self._small and fresh else bound)

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""
        return options[self.below(len(options))]

    def one_in(self, count: int) -> bool:
        """Whether something that is seldom happens: once in `count` times."""
        return self.below(count) == count - 1
