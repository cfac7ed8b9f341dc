"""How whole numbers go through the ops that exporters and rewrites compute them with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.analysis.integers.affine import LIMITS, Affine, Ints
from passes.analysis.integers.guards import Guard
from passes.ir.operators import is_onnx_domain

#: The types of numbers that are followed.
WHOLE = tuple(LIMITS)


@dataclass(frozen=True)
class Reading:
    """Reads the inputs of a node: what is known of a value, of the sizes of a tensor, the guard
    that a node is, and how long a sequence is."""

    ints_of: Callable[[str], Ints | None]
    shape_of: Callable[[str], Ints | None]
    guard_of: Callable[[NodeProto], Guard | None]
    length_of: Callable[[str], Affine | None]

    def ints(self, node: NodeProto, position: int) -> Ints | None:
        """The numbers of an input; None where it is omitted or not followed."""
        if position >= len(node.input) or not node.input[position]:
            return None
        return self.ints_of(node.input[position])

    def numbers(self, node: NodeProto, position: int) -> list[int] | None:
        """The numbers of an input that is fixed."""
        found = self.ints(node, position)
        values = [one.number for one in found.items] if found else []
        fixed = [value for value in values if value is not None]
        return fixed if found is not None and len(fixed) == len(values) else None


def attribute(node: NodeProto, name: str, default: int | None = None) -> int | None:
    """A whole-number attribute."""
    return next((int(one.i) for one in node.attribute if one.name == name), default)


def is_settled(node: NodeProto) -> bool:
    """Whether a node says what it does: an operator of ONNX, whose attributes no caller chooses."""
    chosen = any(one.ref_attr_name for one in node.attribute)
    return is_onnx_domain(node.domain) and not chosen


def _same(read: Reading, node: NodeProto) -> Ints | None:
    return read.ints(node, 0)


def _cast(read: Reading, node: NodeProto) -> Ints | None:
    data, to = read.ints(node, 0), attribute(node, "to")
    return None if data is None or to is None or to not in LIMITS else data.cast(to)


def _shape(read: Reading, node: NodeProto) -> Ints | None:
    sizes = read.shape_of(node.input[0])
    if sizes is None:
        return None
    return Ints(sizes.items[attribute(node, "start", 0) : attribute(node, "end")], 1)


def _size(read: Reading, node: NodeProto) -> Ints | None:
    sizes = read.shape_of(node.input[0])
    return Ints(sizes.items, 0) if sizes is not None and len(sizes.items) == 1 else None


def _length(read: Reading, node: NodeProto) -> Ints | None:
    length = read.length_of(node.input[0])
    return None if length is None else Ints((length,), 0)


def _gather(read: Reading, node: NodeProto) -> Ints | None:
    guard = read.guard_of(node)
    if guard is not None:
        return read.ints_of(guard.value)
    data, indices = read.ints(node, 0), read.ints(node, 1)
    positions = read.numbers(node, 1)
    if data is None or data.rank != 1 or indices is None or positions is None:
        return None
    count = len(data.items)
    if not all(-count <= at < count for at in positions):
        return None
    return replace(data, items=tuple(data.items[at] for at in positions), rank=indices.rank)


def _slice(read: Reading, node: NodeProto) -> Ints | None:
    data = read.ints(node, 0)
    rest = [read.numbers(node, position) for position in range(1, len(node.input))]
    fixed = [one for one in rest if one is not None]
    if data is None or data.rank != 1 or len(fixed) != len(rest):
        return None
    told = {one.name: list(one.ints) for one in node.attribute}  # below opset 10
    fixed = fixed or [told.get(name, [0]) for name in ("starts", "ends", "axes")]
    (starts, ends), axes = fixed[:2], fixed[2] if len(fixed) > 2 else [0]
    steps = fixed[3] if len(fixed) > 3 else [1]
    if axes not in ([0], [-1]) or len(starts) != 1 or len(ends) != 1 or steps != [1]:
        return None
    return replace(data, items=data.items[starts[0] : ends[0]])


def _concat(read: Reading, node: NodeProto) -> Ints | None:
    read_parts = [read.ints(node, position) for position in range(len(node.input))]
    parts = [part for part in read_parts if part is not None and part.rank == 1]
    if len(parts) != len(read_parts):
        return None
    return replace(parts[0], items=tuple(item for part in parts for item in part.items))


def _squeeze(read: Reading, node: NodeProto) -> Ints | None:
    data = read.ints(node, 0)
    return replace(data, rank=0) if data is not None and len(data.items) == 1 else None


def _unsqueeze(read: Reading, node: NodeProto) -> Ints | None:
    data = read.ints(node, 0)
    return replace(data, rank=1) if data is not None and data.rank == 0 else None


def _reshape(read: Reading, node: NodeProto) -> Ints | None:
    data, shape = read.ints(node, 0), read.numbers(node, 1)
    if read.guard_of(node) is not None:
        return data
    if data is None or len(data.items) != 1 or shape not in ([], [1], [-1]):
        return None
    return replace(data, rank=len(shape))


def _pairwise(
    combine: Callable[[Affine, Affine], Affine | None], *, ordered: bool = False
) -> _Follow:
    def follow(read: Reading, node: NodeProto) -> Ints | None:
        one, other = read.ints(node, 0), read.ints(node, 1)
        if len(node.input) != 2 or one is None or other is None:
            return None
        if one.elem_type != other.elem_type or (ordered and not (one.exact and other.exact)):
            return None
        count = max(len(one.items), len(other.items))
        if not {len(one.items), len(other.items)} <= {1, count}:
            return None
        pairs = zip(_spread(one, count), _spread(other, count), strict=True)
        items = [combine(*pair) for pair in pairs]
        known = tuple(item for item in items if item is not None)
        if len(known) != count:
            return None
        return replace(one, items=known, rank=max(one.rank, other.rank)).wrapped

    return follow


def _spread(ints: Ints, count: int) -> tuple[Affine, ...]:
    return ints.items if len(ints.items) == count else ints.items * count


def _product(one: Affine, other: Affine) -> Affine | None:
    if one.number is not None:
        return other.times(one.number)
    return None if other.number is None else one.times(other.number)


def _maximum(one: Affine, other: Affine) -> Affine | None:
    if one.at_least(other):
        return one
    return other if other.at_least(one) else None


def _minimum(one: Affine, other: Affine) -> Affine | None:
    if one.at_least(other):
        return other
    return one if other.at_least(one) else None


def _negative(read: Reading, node: NodeProto) -> Ints | None:
    data = read.ints(node, 0)
    if data is None:
        return None
    return replace(data, items=tuple(item.times(-1) for item in data.items)).wrapped


_Follow = Callable[[Reading, NodeProto], Ints | None]
#: How numbers go through an op.
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
    "Add": _pairwise(lambda one, other: one + other),
    "Sub": _pairwise(lambda one, other: one - other),
    "Mul": _pairwise(_product),
    "Max": _pairwise(_maximum, ordered=True),
    "Min": _pairwise(_minimum, ordered=True),
    "Neg": _negative,
}
