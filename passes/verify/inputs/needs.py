"""The needs of a model's inputs that its declarations leave out, found by running it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from passes.verify.inputs.arrays import IntStyle


@dataclass(frozen=True)
class Tie:
    """A size that follows from others: a number, plus so many times the size of each symbol."""

    number: int
    times: Mapping[str, int] = field(default_factory=dict)

    def size(self, sizes: Mapping[str, int]) -> int:
        """The size, once the others are known."""
        return self.number + sum(count * sizes[symbol] for symbol, count in self.times.items())


@dataclass(frozen=True)
class Needs:
    """The ranks of inputs that declare none; the sizes that follow from others (`ties`), that are
    at least a number, or that leave a rest when they are divided (`steps`: divisor and rest), by
    the symbol; and what whole numbers mean."""

    ranks: Mapping[str, int] = field(default_factory=dict)
    ties: Mapping[str, Tie] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    ints: IntStyle = "small"

    def tied(self, symbol: str, tie: Tie) -> Needs:
        """These, and one more size that follows from others."""
        return replace(self, ties={**self.ties, symbol: tie})

    def at_least(self, symbol: str, size: int) -> Needs:
        """These, and one more size that is at least a number."""
        return replace(self, least={**self.least, symbol: size})

    def in_steps(self, symbol: str, divisor: int, rest: int) -> Needs:
        """These, and one more size that leaves a rest."""
        return replace(self, steps={**self.steps, symbol: (divisor, rest)})

    def tied_symbols(self) -> list[str]:
        """The symbols whose sizes follow from others, and those that are equal to such a one."""
        ties = {symbol: tie for symbol, tie in self.ties.items() if tie.times}
        equal = [name for tie in ties.values() if len(tie.times) == 1 for name in tie.times]
        return list(dict.fromkeys([*ties, *equal]))

    def apart(self, symbol: str) -> Needs:
        """These, but for one size that is 1 and from which no other follows."""
        ties = {name: tie for name, tie in self.ties.items() if symbol not in (name, *tie.times)}
        return replace(self, ties={**ties, symbol: Tie(1)})

    def fit(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes that were planned, made to fit; those that are too small keep their distances."""
        fitting = dict(sizes)
        for symbol, size in sizes.items():
            least = self.least.get(symbol, 0)
            size = least + size if size < least else size
            divisor, rest = self.steps.get(symbol, (1, 0))
            fitting[symbol] = size + (rest - size) % divisor
        for symbol, tie in reversed(list(self.ties.items())):  # earlier ones may rest on later ones
            if symbol in sizes:
                fitting[symbol] = max(0, tie.size(fitting))
        return fitting
