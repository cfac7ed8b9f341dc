"""Sums of sizes: integers that are known as `2 * T - i + 3` before the model runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from passes.operators.bounds import SIZE
from passes.types.value_types import Dim

#: The ranges of the types that are followed.
LIMITS: Mapping[int, tuple[int, int]] = {
    TensorProto.INT64: (-(1 << 63), (1 << 63) - 1),
    TensorProto.INT32: (-(1 << 31), (1 << 31) - 1),
}


@dataclass(frozen=True)
class Atom:
    """A number known only at run time. Two atoms with one key are the same number.

    A size is read at `axis` of `tensor`, a scalar from `tensor` alone;
    comparisons ignore both. `within` is its range.
    """

    key: tuple[object, ...]
    tensor: str = field(default="", compare=False)
    axis: int | None = field(default=None, compare=False)
    within: tuple[int, int] = field(default=LIMITS[TensorProto.INT64], compare=False)
    shown: str = field(default="", compare=False)

    @property
    def negative(self) -> bool:
        """True if it may be below zero."""
        return self.within[0] < 0

    def __str__(self) -> str:
        return self.shown or str(self.key[-1])


#: The iteration number, from 0.
ITERATION = Atom(("iteration",), within=SIZE, shown="i")


@dataclass(frozen=True)
class Affine:
    """A constant and multiples of atoms, as a mathematical integer.

    The tensor that it is read from holds this number modulo its type, which is the number itself
    only where it `fits`. So two that differ by 0 are equal, but only what fits has an order.
    """

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

    def __neg__(self) -> Affine:
        return self.times(-1)

    def __mul__(self, other: Affine) -> Affine:
        """The product, of which one factor must be a constant."""
        return self.times(int(other)) if self.terms else other.times(self.constant)

    def __int__(self) -> int:
        if self.terms:
            raise ValueError(f"{self} is known only at run time")
        return self.constant

    def __ge__(self, other: Affine) -> bool:
        """The order, which must be the same in every run."""
        if not self.at_least(other) and not other.at_least(self):
            raise ValueError(f"whether {self} is at least {other} is known only at run time")
        return self.at_least(other)

    def __le__(self, other: Affine) -> bool:
        return other >= self

    def times(self, factor: int) -> Affine:
        """The multiple by a constant."""
        return _sum(self.constant * factor, ((atom, n * factor) for atom, n in self.terms))

    def coefficient(self, atom: Atom) -> int:
        """The coefficient of an atom in the sum."""
        return next((count for key, count in self.terms if key == atom), 0)

    def without(self, atom: Atom) -> Affine:
        """The sum without an atom."""
        return Affine(self.constant, frozenset(term for term in self.terms if term[0] != atom))

    @property
    def number(self) -> int | None:
        """The number, where it is a constant."""
        return None if self.terms else self.constant

    @property
    def least(self) -> int:
        """A lower bound."""
        return self.constant + sum(n * atom.within[n < 0] for atom, n in self.terms)

    @property
    def most(self) -> int:
        """An upper bound."""
        return -self.times(-1).least

    def fits(self, elem_type: int = TensorProto.INT64) -> bool:
        """Return whether a tensor of this type holds the number itself, in every run."""
        least, most = LIMITS[elem_type]
        return least <= self.least and self.most <= most

    def at_least(self, other: Affine | int) -> bool:
        """Return whether it is never less than the other one, in 64-bit tensors that hold both."""
        other = Affine(other) if isinstance(other, int) else other
        return (self - other).least >= 0 and self.fits() and other.fits()

    def range(self, elem_type: int = TensorProto.INT64) -> tuple[int, int]:
        """The bounds of what a tensor of this type holds for it."""
        return (self.least, self.most) if self.fits(elem_type) else LIMITS[elem_type]

    def wrapped(self, elem_type: int) -> Affine:
        """The same number modulo the type, with a constant and factors in the range of the type."""
        if self.fits(elem_type):
            return self
        least, most = LIMITS[elem_type]

        def own(number: int) -> int:
            return (number - least) % (most - least + 1) + least

        return _sum(own(self.constant), ((atom, own(n)) for atom, n in self.terms))

    def __str__(self) -> str:
        parts = [
            str(atom) if count == 1 else f"-{atom}" if count == -1 else f"{count} * {atom}"
            for atom, count in sorted(self.terms, key=lambda term: (-term[1], str(term[0])))
        ]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")


ONE = Affine(1)


def _sum(constant: int, terms: Iterable[tuple[Atom, int]]) -> Affine:
    counts: dict[Atom, int] = {}
    for atom, count in terms:
        counts[atom] = counts.get(atom, 0) + count
    return Affine(constant, frozenset((atom, n) for atom, n in counts.items() if n))


def size_atom(scope_key: tuple[object, ...], tensor: str, axis: int, dim: Dim) -> Affine:
    """The size of an axis: its number, or the atom of this particular axis.

    Two tensors inside of a model that are declared with one symbol need not have equal sizes: such
    declarations may be wrong. For the inputs of a model they do, see `symbol_atom`.
    """
    if isinstance(dim, int):
        return Affine(dim)
    shown = dim or f"size({tensor}, {axis})"
    key = ("size", scope_key, tensor, axis)
    return Affine.of(Atom(key, tensor, axis, within=SIZE, shown=shown))


def symbol_atom(scope_key: tuple[object, ...], tensor: str, axis: int, symbol: str) -> Affine:
    """Return the size that a symbol means in one graph, if declarations are trusted: those of a
    model's inputs, and all of them if the user trusts them."""
    key = ("size", scope_key, symbol)
    return Affine.of(Atom(key, tensor, axis, within=SIZE, shown=symbol))


@dataclass(frozen=True)
class Ints:
    """A scalar (`rank` 0) or vector of integers that wrap as those of the type do."""

    items: tuple[Affine, ...]
    rank: int
    elem_type: int = TensorProto.INT64

    @classmethod
    def of(cls, array: npt.NDArray[Any], elem_type: int) -> Ints:
        """The numbers or sums in an array."""
        items = (item if isinstance(item, Affine) else Affine(int(item)) for item in array.ravel())
        return cls(tuple(items), array.ndim, elem_type)

    @property
    def array(self) -> npt.NDArray[Any]:
        """The sums, as objects."""
        return np.array(self.items, object).reshape([-1] * self.rank)

    @property
    def constant(self) -> npt.NDArray[Any] | None:
        """The numbers, where all are constants."""
        if any(item.terms for item in self.items):
            return None
        return self.array.astype(helper.tensor_dtype_to_np_dtype(self.elem_type))

    @property
    def exact(self) -> bool:
        """True if no number wraps, so that a cast keeps them."""
        return all(item.fits(self.elem_type) for item in self.items)

    def cast(self, elem_type: int) -> Ints | None:
        """The numbers cast to another type: truncated if it is narrower; if wider, none may
        wrap."""
        if elem_type == TensorProto.INT64 != self.elem_type and not self.exact:
            return None
        return replace(self, elem_type=elem_type).wrapped

    @property
    def wrapped(self) -> Ints:
        """The same, with constants reduced to the range of the type."""
        return replace(self, items=tuple(item.wrapped(self.elem_type) for item in self.items))


def single_of(ints: Ints | None) -> Affine | None:
    """The number, where there is exactly one."""
    return ints.items[0] if ints is not None and len(ints.items) == 1 else None


def number_of(ints: Ints | None) -> int | None:
    """The constant that a single number is, None otherwise."""
    found = single_of(ints)
    return None if found is None else found.number
