"""How integers go through the ops by which exporters and rewrites compute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt
from onnx import NodeProto

from passes.analysis.integers.affine import LIMITS, Affine, Ints
from passes.ir.operators import is_onnx_domain
from passes.types.value_types import Dims
from passes.writing.guards import Guard

#: The integer types that are followed.
WHOLE = tuple(LIMITS)


@dataclass(frozen=True)
class Reading:
    """What is known about the inputs of a node.

    `ints` returns the integers that a value holds, `wrapping` the same where those of 32 bits may
    wrap; `size` the size of an axis, `constant` the value of a constant, `guard` the guard
    that a node is, and `length` how many slices of size 1 a sequence holds.
    """

    ints: Callable[[str], Ints | None]
    wrapping: Callable[[str], Ints | None]
    size: Callable[[str, int], Affine | None]
    dims: Callable[[str], Dims | None]
    constant: Callable[[str], npt.NDArray[Any] | None]
    guard: Callable[[NodeProto], Guard | None]
    length: Callable[[str], Affine | None]

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
        if position >= len(node.input) or not node.input[position]:
            return next((list(entry.ints) for entry in node.attribute if entry.name == name), None)
        found = self.operand(node, position)
        values = [item.number for item in found.items] if found else []
        fixed = [value for value in values if value is not None]
        return fixed if found is not None and len(fixed) == len(values) else None


def attribute(node: NodeProto, name: str, default: int | None = None) -> int | None:
    """An integer attribute."""
    return next((int(entry.i) for entry in node.attribute if entry.name == name), default)


def is_settled(node: NodeProto) -> bool:
    """Whether a node's meaning is fixed: an ONNX operator without attribute references."""
    chosen = any(entry.ref_attr_name for entry in node.attribute)
    return is_onnx_domain(node.domain) and not chosen


def _same(read: Reading, node: NodeProto) -> Ints | None:
    return read.operand(node, 0)


def _cast(read: Reading, node: NodeProto) -> Ints | None:
    data, to = read.operand(node, 0), attribute(node, "to")
    return None if data is None or to is None or to not in LIMITS else data.cast(to)


def _shape(read: Reading, node: NodeProto) -> Ints | None:
    sizes = read.shape(node.input[0])
    if sizes is None:
        return None
    return Ints(sizes[attribute(node, "start", 0) : attribute(node, "end")], 1)


def _size(read: Reading, node: NodeProto) -> Ints | None:
    sizes = read.shape(node.input[0])
    product: Affine | None = None if sizes is None else Affine(1)
    for size in sizes or ():
        product = None if product is None else _product(product, size)
    return None if product is None or not product.fits() else Ints((product,), 0)


def _length(read: Reading, node: NodeProto) -> Ints | None:
    length = read.length(node.input[0])
    return None if length is None else Ints((length,), 0)


def _gather(read: Reading, node: NodeProto) -> Ints | None:
    guard = read.guard(node)
    if guard is not None:
        return read.wrapping(guard.value)
    data, indices = read.operand(node, 0), read.operand(node, 1)
    positions = read.numbers(node, 1)
    if data is None or data.rank != 1 or indices is None or positions is None:
        return None
    count = len(data.items)
    if not all(-count <= index < count for index in positions):
        return None
    return replace(data, items=tuple(data.items[index] for index in positions), rank=indices.rank)


def _slice(read: Reading, node: NodeProto) -> Ints | None:
    data = read.operand(node, 0)
    rest = [read.numbers(node, position) for position in range(1, len(node.input))]
    fixed = [numbers for numbers in rest if numbers is not None]
    if data is None or data.rank != 1 or len(fixed) != len(rest):
        return None
    known = {entry.name: list(entry.ints) for entry in node.attribute}  # below opset 10
    fixed = fixed or [known.get(name, [0]) for name in ("starts", "ends", "axes")]
    (starts, ends), axes = fixed[:2], fixed[2] if len(fixed) > 2 else [0]
    steps = fixed[3] if len(fixed) > 3 else [1]
    if axes not in ([0], [-1]) or len(starts) != 1 or len(ends) != 1 or steps != [1]:
        return None
    return replace(data, items=data.items[starts[0] : ends[0]])


def _concat(read: Reading, node: NodeProto) -> Ints | None:
    read_parts = [read.operand(node, position) for position in range(len(node.input))]
    parts = [part for part in read_parts if part is not None and part.rank == 1]
    if len(parts) != len(read_parts):
        return None
    return replace(parts[0], items=tuple(item for part in parts for item in part.items))


def _squeeze(read: Reading, node: NodeProto) -> Ints | None:
    data = read.operand(node, 0)
    return replace(data, rank=0) if data is not None and len(data.items) == 1 else None


def _unsqueeze(read: Reading, node: NodeProto) -> Ints | None:
    data = read.operand(node, 0)
    return replace(data, rank=1) if data is not None and data.rank == 0 else None


def _reshape(read: Reading, node: NodeProto) -> Ints | None:
    data, shape = read.operand(node, 0), read.numbers(node, 1)
    if read.guard(node) is not None:
        return data
    if data is None or len(data.items) != 1 or shape not in ([], [1], [-1]):
        return None
    return replace(data, rank=len(shape))


def _pairwise(
    combine: Callable[[Affine, Affine], Affine | None], *, ordered: bool = False
) -> _Follow:
    def follow(read: Reading, node: NodeProto) -> Ints | None:
        left, right = read.operand(node, 0), read.operand(node, 1)
        if len(node.input) != 2 or left is None or right is None:
            return None
        if left.elem_type != right.elem_type or (ordered and not (left.exact and right.exact)):
            return None
        count = max(len(left.items), len(right.items))
        if not {len(left.items), len(right.items)} <= {1, count}:
            return None
        pairs = zip(_spread(left, count), _spread(right, count), strict=True)
        items = [combine(*pair) for pair in pairs]
        known = tuple(item for item in items if item is not None)
        if len(known) != count:
            return None
        return replace(left, items=known, rank=max(left.rank, right.rank)).wrapped

    return follow


def _spread(ints: Ints, count: int) -> tuple[Affine, ...]:
    return ints.items if len(ints.items) == count else ints.items * count


def _product(number: Affine, other: Affine) -> Affine | None:
    if number.number is not None:
        return other.times(number.number)
    return None if other.number is None else number.times(other.number)


def _maximum(number: Affine, other: Affine) -> Affine | None:
    if number.at_least(other):
        return number
    return other if other.at_least(number) else None


def _minimum(number: Affine, other: Affine) -> Affine | None:
    if number.at_least(other):
        return other
    return number if other.at_least(number) else None


def _negative(read: Reading, node: NodeProto) -> Ints | None:
    data = read.operand(node, 0)
    if data is None:
        return None
    return replace(data, items=tuple(item.times(-1) for item in data.items)).wrapped


_Follow = Callable[[Reading, NodeProto], Ints | None]
#: How numbers go through each op.
FOLLOWED: dict[str, _Follow] = {
    "Identity": _same,
    "Cast": _cast,
    "Shape": _shape,
    "Size": _size,
    "Gather": _gather,
    "SequenceLength": _length,
    "Slice": _slice,
    "Concat": _concat,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Add": _pairwise(lambda a, b: a + b),
    "Sub": _pairwise(lambda a, b: a - b),
    "Mul": _pairwise(_product),
    "Max": _pairwise(_maximum, ordered=True),
    "Min": _pairwise(_minimum, ordered=True),
    "Neg": _negative,
}
