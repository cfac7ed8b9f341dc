"""How operators state what they require of sizes: in expressions that name sizes of operands.

An expression computes nothing, so it serves whoever knows sizes as numbers, as symbols or as sums.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import Any, Literal, TypeAlias

import numpy.typing as npt
from onnx import NodeProto

from passes.ir.attributes import attribute, numbers


@dataclass(frozen=True)
class Size:
    """The size of an axis of an operand, by its place among the inputs."""

    operand: int
    axis: int


@dataclass(frozen=True)
class Sum:
    """The sum of sizes."""

    sizes: Sequence[Number]


@dataclass(frozen=True)
class Joint:
    """The size to which sizes broadcast."""

    sizes: Sequence[Number]


#: A number, an item of a list as its reader knows it, a size, or what is computed of them.
Number: TypeAlias = "int | Any | Size | Sum | Joint"


@dataclass(frozen=True)
class Need:
    """A size must be equal to a number, at least that, or a multiple of it; but if one of some
    sizes is 1, it need not be."""

    size: Number
    what: Literal["equal", "least", "multiple"]
    target: Number
    unless_one: Sequence[Number] = ()


@dataclass(frozen=True)
class Contract:
    """The sizes of each output, None where one or the rank is unknown, and what the operator
    requires of its operands, or what all executors take, where they differ: all that it requires,
    besides their types and what makes it fail on values, if this is `complete`."""

    sizes: Sequence[Number | None] | None
    needs: Sequence[Need] = ()
    complete: bool = False


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

    def list(self, place: int) -> Sequence[Number]:
        """The items of a list. Raises Unstated."""
        if self.items is None or not self.has(place):
            found = self.numbers(place, "")
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
    return [Need(size, "equal", other, (size,)) for size, other in pairs]
