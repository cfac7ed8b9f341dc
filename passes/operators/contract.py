"""How operators state what they require of sizes: in expressions that name sizes of operands.

An expression computes nothing, so it serves whoever knows sizes as numbers, as symbols or as sums.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy.typing as npt
from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute, attributes, numbers
from passes.ir.operators import Registry


@dataclass(frozen=True)
class Size:
    """The size of an axis of an operand, by its place among the inputs."""

    operand: int
    axis: int


@dataclass(frozen=True)
class Index:
    """The index of an element of the output along an axis."""

    axis: int


@dataclass(frozen=True)
class Item:
    """A whole number, the element of an operand at these indices; None: its only one."""

    operand: int
    at: Sequence[Number] | None = None


@dataclass(frozen=True)
class Computed:
    """A number that is computed of numbers."""

    parts: Sequence[Number]


class Sum(Computed):
    """The sum of numbers."""


class Product(Computed):
    """The product of numbers."""


class Quotient(Computed):
    """A number divided by a positive one, rounded down."""


class Rest(Computed):
    """The rest of a quotient."""


class Least(Computed):
    """The least number."""


class Most(Computed):
    """The largest number."""


class Joint(Computed):
    """The size to which sizes broadcast."""


class Spread(Computed):
    """An index at which an axis is read, of a size that broadcasts to another one."""


class Place(Computed):
    """An index of an axis of a size, which may count from the end; an item has to be in range."""


@dataclass(frozen=True)
class Read:
    """An element of an operand; None: its only one."""

    operand: int
    at: Sequence[Number] | None = None


@dataclass(frozen=True)
class Value:
    """A whole number, or a number of an element type, of that of the operands if it is 0."""

    number: Number | float
    kind: int = TensorProto.INT64


@dataclass(frozen=True)
class Choice:
    """An element if no number is negative, else another one."""

    numbers: Sequence[Number]
    then: Source
    other: Source


@dataclass(frozen=True)
class InOrder:
    """The elements of an operand in their order."""

    operand: int


@dataclass(frozen=True)
class Dot:
    """The sum of products along an index that follows those of the output."""

    size: Number
    left: Read
    right: Read


@dataclass(frozen=True)
class Weighted:
    """The sum of elements times factors."""

    parts: Sequence[Source]
    factors: Sequence[float]


#: The origin of an element.
Source: TypeAlias = "Read | Value | Choice | InOrder | Dot | Weighted"


#: A number, an item of a list as its reader knows it, a size, an index, or what is computed.
Number: TypeAlias = "int | Any | Size | Index | Item | Computed"


def less(number: Number, other: Number) -> Number:
    """The difference of two numbers."""
    return Sum([number, -other if isinstance(other, int) else Product([-1, other])])


_COMPUTE: dict[type[Computed], Callable[[Sequence[int]], int]] = {
    Sum: sum,
    Product: math.prod,
    Quotient: lambda parts: parts[0] // parts[1],
    Rest: lambda parts: parts[0] % parts[1],
    Least: min,
    Most: max,
    Joint: lambda parts: min({*parts} - {1}, default=1),
}


def computed(number: Number, size_of: Callable[[Size], int | None]) -> int | None:
    """A number where sizes are known, None where one is unknown, or it depends on elements."""
    if isinstance(number, Size):
        return size_of(number)
    if not isinstance(number, Computed):
        return number if isinstance(number, int) else None
    parts = [computed(part, size_of) for part in number.parts]
    compute = _COMPUTE.get(type(number))
    return None if compute is None or None in parts else compute([*filter(_is_int, parts)])


def _is_int(number: object) -> TypeGuard[int]:
    return isinstance(number, int)


@dataclass(frozen=True)
class Need:
    """A size must be equal to a number, at least that, or a multiple of it; but if one of some
    sizes is 1, it need not be. `why` completes "it fails unless"; `sure`: every executor fails
    without it."""

    size: Number
    what: Literal["equal", "least", "multiple"]
    target: Number
    unless_one: Sequence[Number] = ()
    why: str = "its operands have the sizes that it takes"
    sure: bool = True


@dataclass(frozen=True)
class Contract:
    """The sizes of each output, None where one or the rank is unknown, and what the operator
    requires of its operands, or what all executors take, where they differ: all that it requires,
    besides their types and what makes it fail on values, if this is `complete`. `each`: the sizes
    of each output, where they differ; `elements`: the origin of those of each output, where this is
    known, and `agreed` what all executors take that agree on it."""

    sizes: Sequence[Number | None] | None
    needs: Sequence[Need] = ()
    complete: bool = False
    each: Sequence[Sequence[Number]] = ()
    elements: Sequence[Source] = ()
    agreed: Sequence[Need] = ()


#: What states the contract of a node, by operator; of the second ones, the origin of elements, too.
STATED: Registry[Callable[[Operands], Contract]] = Registry()
TRACED: Registry[Callable[[Operands], Contract]] = Registry()


class Unstated(Exception):
    """Nothing is stated: a rank or number is unknown, or it is none that the operator takes."""


@dataclass(frozen=True)
class Operands:
    """A node and what is known of the values that it reads: their dims and constants, and the items
    of lists in whatever form their reader knows them."""

    node: NodeProto
    dims: Callable[[str], Sequence[object] | None]
    constant: Callable[[str], npt.NDArray[Any] | None]
    items: Callable[[str], Sequence[Any] | None] | None = None
    opset: int = sys.maxsize

    def has(self, place: int) -> bool:
        """Return whether an operand is given."""
        return place < len(self.node.input) and bool(self.node.input[place])

    def sizes(self, place: int, rank: int | None = None) -> Sequence[Size]:
        """The sizes of an operand, of a given rank.

        Raises:
            Unstated: its rank is unknown, or another one.
        """
        dims = self.dims(self.node.input[place]) if self.has(place) else None
        if dims is None or (rank is not None and len(dims) != rank):
            raise Unstated
        return [Size(place, axis) for axis in range(len(dims))]

    def numbers(self, place: int, name: str) -> Sequence[int] | None:
        """Constants that are an operand, or an attribute in older opsets; None where there are
        none."""
        return numbers(self.node, place, name, self.constant)

    def list(self, place: int, name: str = "") -> Sequence[Number]:
        """The items of a list, an attribute in older opsets. Raises Unstated."""
        if self.items is None or not self.has(place) or attributes(self.node, name) is not None:
            found = self.numbers(place, name)
        else:
            found = self.items(self.node.input[place])
        if found is None:
            raise Unstated
        return found

    def axis(self, rank: int, default: int) -> int:
        """The axis of the node, counted from the front. Raises Unstated."""
        return axes_in([attribute(self.node, "axis", default)], rank)[0]


def axes_in(axes: Sequence[int], rank: int) -> Sequence[int]:
    """Axes that may count from the end, counted from the front.

    Raises:
        Unstated: one is out of range, or named twice.
    """
    found = [axis % rank for axis in axes if -rank <= axis < rank]
    if len({*found}) < len(axes):
        raise Unstated
    return found


def indices(sizes: Sequence[Number], first: int = 0) -> list[Number]:
    """The indices along as many axes of the output, from one on."""
    return [Index(first + axis) for axis in range(len(sizes))]


def joined(*shapes: Sequence[Number]) -> tuple[Sequence[Number], Sequence[Need]]:
    """The sizes to which these broadcast, and that they do."""
    columns = [
        [size for size in column if size is not None]
        for column in zip_longest(*map(reversed, shapes))
    ]
    return [Joint(column) for column in reversed(columns)], alike(*columns)


def alike(*groups: Sequence[Number]) -> Sequence[Need]:
    """That the sizes in each of some groups broadcast."""
    pairs = (pair for group in groups for pair in combinations(group, 2))
    return [Need(one, "equal", other, (one, other)) for one, other in pairs]


def spread(sizes: Sequence[Number], to: Sequence[Number]) -> Sequence[Need]:
    """That sizes broadcast to others, of no fewer axes. Raises Unstated."""
    if len(sizes) > len(to):
        raise Unstated
    pairs = zip(reversed(sizes), reversed(to), strict=False)
    why = "the addend broadcasts to the product"
    return [Need(size, "equal", other, (size,), why, sure=False) for size, other in pairs]


def spread_at(sizes: Sequence[Number], to: Sequence[Number]) -> Sequence[Number]:
    """The indices at which what broadcasts to sizes is read, from those of the result."""
    skipped = len(to) - len(sizes)
    pairs = enumerate(zip(sizes, to[skipped:], strict=True), skipped)
    return [Spread([Index(axis), *pair]) for axis, pair in pairs]
