"""Follows integers through the operators by which exporters and rewrites compute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from passes.analysis.integers.affine import LIMITS, ONE, Affine, Ints, number_of
from passes.analysis.sizes.whole_axes import cuts_of
from passes.ir.attributes import attribute, has_references, numbers
from passes.ir.operators import Registry, is_onnx_domain, op_of
from passes.operators.folding import result_of
from passes.types.value_types import Dims
from passes.writing.guards import Guard

#: The integer types that are followed.
WHOLE = tuple(LIMITS)
_MOST_ITEMS = 64  # a shape, not data


@dataclass(frozen=True)
class Reading:
    """The facts known about the inputs of a node.

    `ints` returns the integers that a value holds, `wrapping` the same where those of 32 bits may
    wrap; `size` the size of an axis, `guard` the guard that a node is, and `length` how many slices
    of size 1 a sequence holds. `empties` tells whether an axis has no element where a size is 0.
    `positive` is a number that is 1 or more wherever this is asked.
    """

    ints: Callable[[str], Ints | None]
    wrapping: Callable[[str], Ints | None]
    size: Callable[[str, int], Affine | None]
    dims: Callable[[str], Dims | None]
    guard: Callable[[NodeProto], Guard | None] = lambda node: None
    length: Callable[[str], Affine | None] = lambda name: None
    empties: Callable[[str, int, Affine], bool] = lambda name, axis, size: False
    positive: Affine = ONE

    def is_size(self, number: Affine) -> bool:
        """Return whether a number is 0 or more."""
        more = number - (self.positive - 1)
        return number.at_least(0) or (self.positive.fits() and more.at_least(0))

    def rank(self, name: str) -> int | None:
        """The rank of a value."""
        dims = self.dims(name)
        return None if dims is None else len(dims)

    def shape(self, name: str) -> tuple[Affine, ...] | None:
        """The sizes of a tensor; None where its rank or one of them is unknown."""
        sizes = [self.size(name, axis) for axis in range(self.rank(name) or 0)]
        known = tuple(size for size in sizes if size is not None)
        return known if self.rank(name) is not None and len(known) == len(sizes) else None

    def items(self, name: str) -> tuple[Affine, ...] | None:
        """The numbers of a vector."""
        found = self.ints(name)
        return found.items if found is not None and found.rank == 1 else None

    def operand(self, node: NodeProto, position: int) -> Ints | None:
        """The numbers of an input; None where it is omitted or not followed."""
        if position >= len(node.input) or not node.input[position]:
            return None
        return self.wrapping(node.input[position])

    def numbers(self, node: NodeProto, position: int, name: str = "") -> list[int] | None:
        """Constants that an input holds, or the attribute of older opsets."""
        return numbers(node, position, name, self.constant)

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        """The numbers of a value, where all are constants."""
        found = self.wrapping(name)
        return None if found is None else found.constant


#: How numbers go through each operator.
FOLLOWED: Registry[Callable[[Reading, NodeProto], Ints | None]] = Registry()


def ints_of(array: npt.NDArray[Any]) -> Ints | None:
    """The numbers of a constant, unless it is data."""
    if array.dtype not in (np.int64, np.int32) or array.ndim > 1 or array.size > _MOST_ITEMS:
        return None
    return Ints.of(array, helper.np_dtype_to_tensor_dtype(array.dtype))


def is_settled(node: NodeProto) -> bool:
    """Return whether a node's meaning is fixed: an ONNX operator without attribute references."""
    chosen = has_references(node)
    return is_onnx_domain(node.domain) and not chosen


def splits_into_slices(node: NodeProto, ints: Callable[[str], Ints | None]) -> bool:
    """Return whether a SplitToSequence makes slices of size 1: by default, or of a scalar 1, which
    no part exceeds."""
    given = "".join(node.input[1:])
    parts = ints(given) if given else None
    return not given or (parts is not None and parts.rank == 0 and number_of(parts) == 1)


@FOLLOWED.enter("Identity")
def _same(read: Reading, node: NodeProto) -> Ints | None:
    return read.operand(node, 0)


@FOLLOWED.enter("Cast")
def _cast(read: Reading, node: NodeProto) -> Ints | None:
    data, to = read.operand(node, 0), attribute(node, "to", None)
    return None if data is None or to is None or to not in LIMITS else data.cast(to)


@FOLLOWED.enter("Shape")
def _shape(read: Reading, node: NodeProto) -> Ints | None:
    sizes = read.shape(node.input[0])
    if sizes is None:
        return None
    return Ints(sizes[attribute(node, "start", 0) : attribute(node, "end", None)], 1)


@FOLLOWED.enter("Size")
def _size(read: Reading, node: NodeProto) -> Ints | None:
    sizes, product = read.shape(node.input[0]), Affine(1)
    if sizes is None:
        return None
    for size in sizes:
        if product.number is None and size.number is None:
            return None
        product = product * size
    return Ints((product,), 0) if product.fits() else None


@FOLLOWED.enter("SequenceLength")
def _length(read: Reading, node: NodeProto) -> Ints | None:
    length = read.length(node.input[0])
    return None if length is None else Ints((length,), 0)


@FOLLOWED.enter("Slice")
def _slice(read: Reading, node: NodeProto) -> Ints | None:
    data, cuts = read.operand(node, 0), cuts_of(node, read.numbers)
    if data is None or data.rank != 1 or cuts is None or len(cuts) != 1:
        return None
    part = cuts[0].part
    return None if part is None else replace(data, items=data.items[part])


@FOLLOWED.enter(
    *("Concat", "Gather", "Reshape", "Squeeze", "Unsqueeze"),
    *("Add", "Div", "Max", "Min", "Mul", "Neg", "Sub"),
)
def _computed(read: Reading, node: NodeProto) -> Ints | None:
    """Return the result of an op on sums, computed as on numbers, or the input that a guard passes
    through."""
    guard = read.guard(node)
    if guard is not None:
        return read.wrapping(guard.value)
    found = [read.wrapping(name) for name in node.input if name]
    known = [ints for ints in found if ints is not None]
    if len(known) < len(found) or (op_of(node) in _ORDERED and not all(i.exact for i in known)):
        return None
    result = result_of(node, [ints.array for ints in known])
    if result is None or result.ndim > 1:
        return None
    return Ints.of(result, known[0].elem_type).wrapped


#: Ops that need the numbers themselves, not what is equal to them modulo their type.
_ORDERED = ("Div", "Max", "Min")
