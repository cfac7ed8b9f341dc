"""The size of an axis of an operator's output, from the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from onnx import NodeProto

from passes.analysis.integers.affine import Affine, single_of
from passes.analysis.integers.integer_ops import Reading
from passes.analysis.sizes.whole_axes import END, cuts_of
from passes.ir.attributes import attribute, attributes, text
from passes.ir.operators import op_of
from passes.operators.table import traits_of
from passes.operators.traits import Shape

#: Returns the size of an axis, counted from the front, of a node's output.
SizeRule = Callable[[Reading, NodeProto, int], Affine | None]


def common(sizes: Sequence[Affine | None]) -> Affine | None:
    """The size of all that do not broadcast an axis of size 1."""
    several = [size for size in sizes if size is None or size.number != 1]
    return (several or [Affine(1)])[0] if len(set(several)) <= 1 else None


def _filled(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """One of the sizes that a tensor is made with."""
    items = read.items(node.input[0])
    return items[axis] if items is not None and axis < len(items) else None


def _expanded(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    rank, items = read.rank(node.input[0]), read.items(node.input[1])
    if rank is None or items is None:
        return None
    before = max(rank, len(items))  # both count from the last axis
    own, new = axis - before + rank, axis - before + len(items)
    sizes = [items[new]] if new >= 0 else []
    return common([*sizes, read.size(node.input[0], own)] if own >= 0 else sizes)


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
    if len(node.output) > 1 and op_of(node) != "Split":
        return None
    follow = _BY_SHAPE.get(traits_of(node).shape) or _SIZES.get(op_of(node))
    return None if follow is None else follow(read, node, axis)


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
    return traits_of(node).shape in _BY_SHAPE or op_of(node) in _SIZES


def _same(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    return read.size(node.input[0], axis)


def _broadcast(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    ranks = [read.rank(name) for name in node.input]
    known = [rank for rank in ranks if rank is not None]
    if len(known) != len(ranks):
        return None
    pairs = zip(node.input, (axis - max(known) + rank for rank in known), strict=True)
    sizes = [read.size(name, position) for name, position in pairs if position >= 0]
    return common(sizes)


def _reduced(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    rank, axes = read.rank(node.input[0]), read.numbers(node, 1, "axes")
    if rank is None or not axes:
        return None
    gone = {number % rank for number in axes}
    if op_of(node) != "Squeeze" and attribute(node, "keepdims", 1):
        return Affine(1) if axis in gone else read.size(node.input[0], axis)
    return read.size(
        node.input[0], [position for position in range(rank) if position not in gone][axis]
    )


def _unsqueezed(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    rank, axes = read.rank(node.input[0]), read.numbers(node, 1, "axes")
    if rank is None or axes is None:
        return None
    new = {number % (rank + len(axes)) for number in axes}
    return (
        Affine(1)
        if axis in new
        else read.size(node.input[0], axis - sum(position < axis for position in new))
    )


def _sliced(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size of an axis that is not cut, or is reversed, or is cut between bounds that are proven
    to lie inside."""
    rank, cuts = read.rank(node.input[0]), cuts_of(node, read.numbers)
    if rank is None or cuts is None:
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


def _padded(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """Return the size after padding or cropping at both ends."""
    rank, pads = read.rank(node.input[0]), read.numbers(node, 1, "pads")
    chosen = len(node.input) > 3 and bool(node.input[3])
    axes = read.numbers(node, 3, "axes") if chosen else range(rank or 0)
    size = read.size(node.input[0], axis)
    if not rank or pads is None or axes is None or size is None or len(pads) != 2 * len(axes):
        return None
    pairs = zip([*axes, *axes], pads, strict=True)
    padded = size + sum(more for position, more in pairs if position % rank == axis)
    return padded if read.is_size(padded) else None


def _summed(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size of an axis of an Einsum, which that of each operand with its letter is."""
    sides = text(node, "equation", "").replace(" ", "").split("->")
    terms = sides[0].split(",")
    if len(sides) != 2 or "." in sides[0] or axis >= len(sides[1]):
        return None
    places = [
        (name, term.index(sides[1][axis]))
        for name, term in zip(node.input, terms, strict=False)
        if sides[1][axis] in term
    ]
    return common([read.size(name, place) for name, place in places]) if places else None


def _product(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size for a product with a matrix on the right."""
    rank, other = (read.rank(name) for name in node.input)
    if rank is None or rank < 2 or other != 2:
        return None
    return read.size(node.input[1], 1) if axis == rank - 1 else read.size(node.input[0], axis)


def _split(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size of an axis that is not split."""
    rank = read.rank(node.input[0])
    if rank is None or axis == attribute(node, "axis", 0) % rank:
        return None
    return read.size(node.input[0], axis)


def _gathered(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The size of an axis other than the one that is read from, or of the indices."""
    rank, picked = (read.rank(name) for name in node.input)
    if not rank or picked is None:
        return None
    along = attribute(node, "axis", 0) % rank
    if along <= axis < along + picked:
        return read.size(node.input[1], axis - along)
    return read.size(node.input[0], axis if axis < along else axis - picked + 1)


def _joined(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    rank = read.rank(node.input[0])
    sizes = [read.size(name, axis) for name in node.input]
    known = [size for size in sizes if size is not None]
    if rank is None or len(known) != len(sizes):
        return None
    if axis != attribute(node, "axis", 1) % rank:
        return known[0]
    return reduce(Affine.__add__, known)


def _transposed(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    perm = attributes(node, "perm")
    return None if perm is None else read.size(node.input[0], perm[axis])


def _gemm(read: Reading, node: NodeProto, axis: int) -> Affine | None:
    """The rows of the first matrix, the columns of the second one."""
    turned = attribute(node, "transB" if axis else "transA", 0)
    return read.size(node.input[axis], 1 - axis if turned else axis)


_BY_SHAPE: dict[Shape, SizeRule] = {
    Shape.ELEMENTWISE: _same,
    Shape.KEPT: _same,
    Shape.BROADCAST: _broadcast,
    Shape.REDUCED: _reduced,
}
_SIZES: dict[str, SizeRule] = {
    "Concat": _joined,
    "ConstantOfShape": _filled,
    "Einsum": _summed,
    "Expand": _expanded,
    "Gather": _gathered,
    "Gemm": _gemm,
    "MatMul": _product,
    "Pad": _padded,
    "Range": _counted,
    "Reshape": _reshaped,
    "Slice": _sliced,
    "Split": _split,
    "Squeeze": _reduced,
    "Transpose": _transposed,
    "Unsqueeze": _unsqueezed,
}
