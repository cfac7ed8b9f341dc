"""What there is to read of what a node reads, to tell the sizes of what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from onnx import NodeProto

from passes.rules.affine import Affine, Ints
from passes.value_types import Dims


@dataclass(frozen=True)
class SizeReading:
    """Reads what a node reads: the size of an axis, the dims, the value where it is fixed, and
    the whole numbers that it holds."""

    size: Callable[[str, int], Affine | None]
    dims: Callable[[str], Dims | None]
    constant: Callable[[str], npt.NDArray[Any] | None]
    ints: Callable[[str], Ints | None]

    def rank(self, name: str) -> int | None:
        """How many axes a value has."""
        dims = self.dims(name)
        return None if dims is None else len(dims)

    def items(self, name: str) -> tuple[Affine, ...] | None:
        """The numbers of a vector."""
        found = self.ints(name)
        return found.items if found is not None and found.rank == 1 else None

    def numbers(self, node: NodeProto, position: int, name: str) -> list[int] | None:
        """Numbers that are an input, or an attribute in older opsets, where they are fixed."""
        if position < len(node.input) and node.input[position]:
            array = self.constant(node.input[position])
            return None if array is None else [int(one) for one in array.ravel()]
        return next((list(one.ints) for one in node.attribute if one.name == name), None)


#: Tells the size of an axis, counted from the front, of what a node gives.
SizeRule = Callable[[SizeReading, NodeProto, int], Affine | None]


def common(sizes: Sequence[Affine | None]) -> Affine | None:
    """The size that all have that do not repeat their only element."""
    several = [size for size in sizes if size is None or size.number != 1]
    return (several or [Affine(1)])[0] if len(set(several)) <= 1 else None
