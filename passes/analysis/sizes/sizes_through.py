"""The size of an axis of an operator's output, from the sizes of its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import NodeProto

from passes.analysis.integers.affine import Affine, single_of
from passes.analysis.integers.integer_ops import Reading
from passes.analysis.sizes.whole_axes import END, cuts_of
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.operators.contract import Joint, Number, Operands, Size, Sum
from passes.operators.contracts import contract_of, has_contract
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
    if not isinstance(number, Sum | Joint):
        return Affine(number) if isinstance(number, int) else number
    sizes = [_size(read, node, part) for part in number.sizes]
    if isinstance(number, Joint):
        return common(sizes)
    total = sum((size for size in sizes if size is not None), Affine())
    cropped = any(isinstance(part, int) and part < 0 for part in number.sizes)
    return None if None in sizes or (cropped and not read.is_size(total)) else total


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
    "ConstantOfShape": _filled,
    "Range": _counted,
    "Reshape": _reshaped,
    "Slice": _sliced,
}
