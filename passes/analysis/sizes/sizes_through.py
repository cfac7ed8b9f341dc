"""The sizes of an operator's output, from those of its inputs: the size of an axis as a sum, and
the axes that the sizes of a Reshape, Squeeze or Unsqueeze that cannot fail come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.analysis.integers.affine import Affine, single_of
from passes.analysis.integers.integer_ops import Reading
from passes.analysis.sizes.whole_axes import END, cuts_of
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.operators.contract import (
    Computed,
    Joint,
    Number,
    Operands,
    Product,
    Size,
    Sum,
)
from passes.operators.contracts import contract_of, has_contract
from passes.operators.exactness import Array
from passes.operators.table import traits_of
from passes.operators.traits import Shape
from passes.types.value_types import Dims

#: Returns the size of an axis, counted from the front, of a node's output.
SizeRule = Callable[[Reading, NodeProto, int], Affine | None]


def common(sizes: Sequence[Affine | None]) -> Affine | None:
    """The size of all that do not broadcast an axis of size 1."""
    several = [size for size in sizes if size is None or size.number != 1]
    return (several or [Affine(1)])[0] if len(set(several)) <= 1 else None


def _reshaped(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size in the new shape, unless it may be the 0 that copies a size, or the -1."""
    items = read.items(node.input[1]) if len(node.input) > 1 else None
    rank = read.rank(node.input[0])
    if items is None or rank is None or axis >= len(items):
        return None
    declared, copies = items[axis], not attribute(node, "allowzero", 0)
    own = read.size(node.input[0], axis) if axis < rank else None
    if copies and declared.number == 0:
        return own
    sure = declared.at_least(1 if copies else 0)
    if not sure and axis < rank and declared.at_least(0):  # a 0 copies what is 0 itself
        sure = declared == own or read.empties(node.input[0], axis, declared)
    return declared if sure else None


def _counted(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The length of a Range with a step of 1, if it is not negative."""
    start, limit, step = (single_of(read.ints(name)) for name in node.input)
    if start is None or limit is None or step is None:
        return None
    return limit - start if step.number == 1 and limit.at_least(start) else None


def size_through(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size of an axis, counted from the front, of a node's output; None if it is unknown.

    Of several outputs, that of each of them.
    """
    if not has_size(node):
        return None
    follow = _BY_SHAPE.get(traits_of(node).shape) or _SIZES.get(op_of(node)) or _stated
    return follow(read, node, axis)


def empties_through(read: Reading, node: NodeProto, axis: int, size: Affine) -> bool:
    """Return whether an axis of a node's output has no element where `size` is 0, though it may
    have another size than that where it broadcasts an axis of size 1."""
    shape, rank = traits_of(node).shape, read.rank(node.output[0])
    ranks = [read.rank(name) or 0 for name in node.input]
    if rank is None:
        return False
    if shape is Shape.BROADCAST:
        places = [axis - rank + own for own in ranks]
        pairs = zip(node.input, places, strict=True)
        return any(place >= 0 and read.empties(name, place, size) for name, place in pairs)
    stays = op_of(node) == "MatMul" and axis < rank - 1 and ranks[1] == 2
    kept = shape in (Shape.ELEMENTWISE, Shape.KEPT) or stays
    return kept and read.empties(node.input[0], axis, size)


def has_size(node: NodeProto) -> bool:
    """Return whether the output size of a node may be known."""
    several = len(node.output) > 1 or op_of(node) == "TopK"  # which may leave one out
    if several and op_of(node) != "Split":
        return False
    return traits_of(node).shape in _BY_SHAPE or op_of(node) in _SIZES or has_contract(node)


def _stated(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size that the contract of a node states."""
    contract = contract_of(Operands(node, read.dims, read.constant, read.items))
    sizes = None if contract is None else contract.sizes
    return _size(read, node, sizes[axis]) if sizes is not None and axis < len(sizes) else None


def _size(read: Reading, node: NodeProto, number: Number | None) -> Affine | None:
    if isinstance(number, Size):
        return read.size(node.input[number.operand], number.axis)
    if not isinstance(number, Computed):
        known = Affine(number) if isinstance(number, int) else number
        return known if isinstance(known, Affine) else None
    sizes = [_size(read, node, part) for part in number.parts]
    if isinstance(number, Joint):
        return common(sizes)
    known = [size for size in sizes if size is not None]
    products = isinstance(number, Product) and sum(one.number is None for one in known) < 2
    if len(known) < len(sizes) or not (products or isinstance(number, Sum)):
        return None
    made = reduce(mul, known) if products else sum(known, Affine())
    sure = all(
        part >= 0 if isinstance(part, int) else isinstance(part, Size) for part in number.parts
    )
    return made if sure or read.is_size(made) else None


def _same(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    return read.size(node.input[0], axis)


def _sliced(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size of an axis that is not cut, or is reversed, or is cut between bounds that are proven
    to lie inside."""
    rank, cuts = read.rank(node.input[0]), cuts_of(node, read.numbers)
    if not rank or cuts is None:
        return None
    size = read.size(node.input[0], axis)
    parts = [cut.part for cut in cuts if cut.axis % rank == axis and not cut.keeps_size]
    if not parts or size is None:
        return size
    part = parts[0] if len(parts) == 1 else None
    if part is None:
        return None
    first, end = (_place(read, size, bound) for bound in (part.start, part.stop))
    if first is None or end is None or not read.is_size(end - first):
        return None
    return end - first


def _place(read: Reading, size: Affine, bound: int) -> Affine | None:
    """Return the position of a bound of a Slice on an axis; None if it may be outside, or is
    clamped."""
    if bound >= END:
        return size
    place = size + bound if bound < 0 else Affine(bound)
    return place if read.is_size(place) and read.is_size(size - place) else None


_BY_SHAPE: dict[Shape, SizeRule] = {
    Shape.ELEMENTWISE: _same,
    Shape.KEPT: _same,
}
#: Those that decide by values, which contracts do not.
_SIZES: dict[str, SizeRule] = {
    "Range": _counted,
    "Reshape": _reshaped,
    "Slice": _sliced,
}


#: The origin of a size: a number, or, in a tuple, the axis of the original tensor that has this
#: size; an empty tuple where it is another one.
Origin = int | tuple[int, ...]
Origins = tuple[Origin, ...]
_OTHER: Origin = ()

#: The ops that return the elements of their first input, in order, with other axes.
RESHAPING = ("Reshape", "Squeeze", "Unsqueeze")


def sizes_of(dims: Dims) -> Origins:
    """The sizes of the original tensor."""
    return tuple(dim if isinstance(dim, int) else (position,) for position, dim in enumerate(dims))


def reshaped(
    node: NodeProto, sizes: Origins, constant: Callable[[str], Array | None]
) -> Origins | None:
    """The sizes of the output of a node; None where it may fail."""
    operands = Operands(node, lambda name: sizes, constant)
    if op_of(node) == "Reshape":
        shape = operands.numbers(1, "shape")
        return None if shape is None else _in_shape(node, sizes, shape)
    contract = contract_of(operands)
    if contract is None or contract.sizes is None:
        return None

    def of(number: Any) -> Origin:
        return sizes[number.axis] if isinstance(number, Size) else number

    fits = all(of(need.size) == need.target for need in contract.needs)
    return tuple(map(of, contract.sizes)) if fits else None


def _in_shape(node: NodeProto, sizes: Origins, shape: Sequence[int]) -> Origins | None:
    """A 0 copies a size, unless `allowzero`; a -1 is the rest, for which copied sizes must not be
    0."""
    if attribute(node, "allowzero", 0) and 0 in shape:
        return None
    if min(shape, default=1) < -1 or shape.count(-1) > 1 or 0 in shape[len(sizes) :]:
        return None
    copied = {position for position, size in enumerate(shape) if size == 0}
    left = [size for position, size in enumerate(sizes) if position not in copied]
    open_ = [size for size in left if isinstance(size, tuple)]
    known = int(np.prod([size for size in left if isinstance(size, int)], dtype=np.int64))
    wanted = int(np.prod([size for size in shape if size > 0], dtype=np.int64))
    if -1 not in shape:
        rest: Origin | None = 1 if known == wanted and not open_ else None
    elif any(sizes[position] == 0 or isinstance(sizes[position], tuple) for position in copied):
        return None  # where a size that is copied is 0, what is left is unknown
    elif known % wanted:
        return None
    elif open_:
        rest = open_[0] if known == wanted and len(open_) == 1 else _OTHER
    else:
        rest = known // wanted
    if rest is None:
        return None
    return tuple(
        sizes[position] if size == 0 else rest if size == -1 else size
        for position, size in enumerate(shape)
    )
