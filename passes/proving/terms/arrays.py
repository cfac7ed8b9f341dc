"""Arrays as functions: element type, sizes, and the element at given indices, made on demand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from passes.proving.terms.algebra import INT64, Algebra
from passes.proving.terms.term import Term
from passes.verify.executor import Ended

Indices = tuple[Term, ...]


class NotProvable(Ended):
    """The proof ends here, whether or not the models are equal; `code` tells why, `terms` are what
    is not shown."""

    def __init__(self, code: str, detail: str, *terms: Term) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.terms = terms


@dataclass(frozen=True)
class Array:
    """An array of an element type; an axis of size 1 is read at 0 whatever its index."""

    algebra: Algebra
    dtype: str
    shape: tuple[Term, ...]
    get: Callable[[Indices], Term]
    _memo: dict[Indices, Term] = field(default_factory=dict, compare=False, repr=False)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def kind(self) -> tuple[type[Array], str]:
        """Whether it is a tensor or a sequence, and the element type."""
        return type(self), self.dtype

    def key(self, indices: Sequence[Term]) -> Indices:
        """Indices at which the element is read: 0 along axes of size 1."""
        one = self.algebra.one
        return tuple(
            self.algebra.zero if size is one else index
            for size, index in zip(self.shape, indices, strict=True)
        )

    def at(self, indices: Sequence[Term]) -> Term:
        """The element at these indices."""
        key = self.key(indices)
        if key not in self._memo:
            self._memo[key] = self.get(key)
        return self._memo[key]

    def like(self, get: Callable[[Indices], Term], dtype: str | None = None) -> Array:
        """An array of the same sizes."""
        return type(self)(self.algebra, dtype or self.dtype, self.shape, get)

    def read(self, shape: Sequence[Term], at: Callable[[Indices], Sequence[Term]]) -> Array:
        """A tensor of these sizes that has the elements of this array at other indices."""
        return Array(self.algebra, self.dtype, tuple(shape), lambda own: self.at(at(own)))

    def slice(self, axis: int, place: Term) -> Array:
        """What is at a place of an axis."""
        shape = [*self.shape[:axis], *self.shape[axis + 1 :]]
        return self.read(shape, lambda at: [*at[:axis], place, *at[axis:]])

    def moved(self, axis: int, to: int) -> Array:
        """A tensor whose axis `to` is this one, the others in their order."""
        order = [one for one in range(self.rank) if one != axis]
        order.insert(to, axis)
        places = [order.index(one) for one in range(self.rank)]
        return self.read([self.shape[one] for one in order], lambda at: [at[one] for one in places])

    def generic(self) -> tuple[list[Term], Term]:
        """New variables for its indices, and its element there."""
        variables = [self.algebra.variable(size) for size in self.shape]
        return variables, self.at([self.algebra.lift(one) for one in variables])

    def scalar(self) -> Term:
        """The only element, of a scalar or a vector.

        Raises:
            NotProvable: there may be another number of them, or more axes.
        """
        if self.rank > 1 or any(size is not self.algebra.one for size in self.shape):
            raise NotProvable("shape", "a value of several elements is used as a scalar")
        return self.at([self.algebra.zero] * self.rank)

    def items(self) -> list[Term]:
        """The elements of an int64 vector of a known size.

        Raises:
            NotProvable: the size is unknown, or it is another array.
        """
        if self.rank != 1 or self.dtype != INT64:
            raise NotProvable("shape", f"sizes or axes are {self.dtype} of rank {self.rank}")
        (size,) = self.shape
        count = self.algebra.number(size)
        if count is None:
            raise NotProvable("shape", f"a vector of sizes or axes has the unknown size {size}")
        return [self.at([self.algebra.whole(number)]) for number in range(count)]

    def numbers(self) -> list[int]:
        """The elements as numbers.

        Raises:
            NotProvable: they depend on something.
        """
        found = [self.algebra.number(item) for item in self.items()]
        if any(one is None for one in found):
            raise NotProvable("shape", "axes or sizes are computed")
        return [one for one in found if one is not None]


class Stacked(Array):
    """A sequence of tensors of one size as the tensor that stacks them along its first axis; those
    of an empty one may have any sizes."""

    @classmethod
    def of_none(cls, algebra: Algebra, dtype: str, sizes: Indices = ()) -> Stacked:
        """An empty sequence."""
        return cls(algebra, dtype, (algebra.zero, *sizes), lambda _: algebra.null(dtype))


class Unranked(Array):
    """A value of which only a term is known: a sequence or optional, or a tensor of unknown rank.

    Whoever asks for its sizes or elements gets NotProvable.
    """

    def __init__(self, algebra: Algebra, term: Term) -> None:
        for name, value in (("algebra", algebra), ("term", term)):
            object.__setattr__(self, name, value)

    term: Term

    @property
    def dtype(self) -> str:
        """It may be none."""
        raise NotProvable("input", "a value is no tensor, or its rank is unknown")

    @property
    def shape(self) -> tuple[Term, ...]:
        """It may be none."""
        raise NotProvable("input", "a value is no tensor, or its rank is unknown")


def constant(
    algebra: Algebra, value: npt.NDArray[Any], known: dict[Hashable, Array] | None = None
) -> Array:
    """The array of a value, which is the same whatever its name and axes of size 1; one that is
    `known`, if it has equal elements and sizes."""
    dtype = "string" if value.dtype == object else value.dtype.name
    kept = [axis for axis, size in enumerate(value.shape) if size != 1]
    name = algebra.constant(value.reshape([value.shape[axis] for axis in kept]))

    def get(indices: Indices) -> Term:
        return algebra.element(name, dtype, [indices[axis] for axis in kept])

    made = Array(algebra, dtype, tuple(map(algebra.whole, value.shape)), get)
    return made if known is None else known.setdefault((name, dtype, value.shape), made)


def parameter(algebra: Algebra, name: str, dtype: str, shape: tuple[Term, ...]) -> Array:
    """An input of the model."""

    def get(indices: Indices) -> Term:
        kept = [i for i, size in zip(indices, shape, strict=True) if size is not algebra.one]
        return algebra.opaque(dtype, "elem", ("input", name, dtype), kept)

    return Array(algebra, dtype, shape, get)
