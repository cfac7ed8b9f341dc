"""Sums of sizes: whole numbers that are known as `2 * T - i + 3` before the model runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from passes.value_types import Dim


@dataclass(frozen=True)
class Atom:
    """A number that only the run tells. Two atoms with one key are the same number.

    `tensor` and `axis` say where a size can be read, `tensor` alone where a scalar can;
    neither counts in a comparison. `negative` says whether it may be below zero.
    """

    key: tuple[object, ...]
    tensor: str = field(default="", compare=False)
    axis: int | None = field(default=None, compare=False)
    negative: bool = field(default=True, compare=False)
    shown: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.shown or str(self.key[-1])


#: The number of the iteration, from 0.
ITERATION = Atom(("iteration",), negative=False, shown="i")


@dataclass(frozen=True)
class Affine:
    """A constant and multiples of atoms, as a mathematical whole number."""

    constant: int = 0
    terms: frozenset[tuple[Atom, int]] = frozenset()

    @staticmethod
    def of(atom: Atom) -> Affine:
        """The number that an atom is."""
        return Affine(0, frozenset({(atom, 1)}))

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms)
        return _sum(self.constant + other.constant, (*self.terms, *other.terms))

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other if isinstance(other, int) else other.times(-1))

    def times(self, factor: int) -> Affine:
        """The multiple by a constant."""
        return _sum(self.constant * factor, ((atom, n * factor) for atom, n in self.terms))

    def coefficient(self, atom: Atom) -> int:
        """How often an atom is in the sum."""
        return next((count for one, count in self.terms if one == atom), 0)

    def without(self, atom: Atom) -> Affine:
        """The sum without an atom."""
        return Affine(self.constant, frozenset(one for one in self.terms if one[0] != atom))

    @property
    def number(self) -> int | None:
        """The number, where nothing is left to the run."""
        return None if self.terms else self.constant

    @property
    def never_negative(self) -> bool:
        """Whether it is 0 or more in every run."""
        return self.constant >= 0 and all(n > 0 and not at.negative for at, n in self.terms)

    @property
    def always_negative(self) -> bool:
        """Whether it is below 0 in every run."""
        return self.constant < 0 and all(n < 0 and not at.negative for at, n in self.terms)

    def __str__(self) -> str:
        parts = [
            str(atom) if count == 1 else f"-{atom}" if count == -1 else f"{count} * {atom}"
            for atom, count in sorted(self.terms, key=lambda term: (-term[1], str(term[0])))
        ]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


def _sum(constant: int, terms: Iterable[tuple[Atom, int]]) -> Affine:
    counts: dict[Atom, int] = {}
    for atom, count in terms:
        counts[atom] = counts.get(atom, 0) + count
    return Affine(constant, frozenset((atom, n) for atom, n in counts.items() if n))


def size_atom(scope_key: tuple[object, ...], tensor: str, axis: int, dim: Dim) -> Affine:
    """The size of an axis: its number, or the atom of this very axis.

    That two tensors are declared with one symbol is no proof: nothing holds a caller to it.
    """
    if isinstance(dim, int):
        return Affine(dim)
    shown = dim or f"size({tensor}, {axis})"
    key = ("size", scope_key, tensor, axis)
    return Affine.of(Atom(key, tensor, axis, negative=False, shown=shown))


def symbol_atom(scope_key: tuple[object, ...], tensor: str, axis: int, symbol: str) -> Affine:
    """The size that a symbol is in one graph, where declarations may be trusted."""
    key = ("size", scope_key, symbol)
    return Affine.of(Atom(key, tensor, axis, negative=False, shown=symbol))


@dataclass(frozen=True)
class Ints:
    """A scalar (`rank` 0) or vector of whole numbers."""

    items: tuple[Affine, ...]
    rank: int

    @property
    def single(self) -> Affine | None:
        """The number, where there is one only."""
        return self.items[0] if len(self.items) == 1 else None


Known = Mapping[str, Ints | None]
