"""The size of an axis of what is made in a shape that is computed."""

from __future__ import annotations

from onnx import NodeProto

from passes.rules.affine import Affine
from passes.rules.integer_ops import attribute
from passes.rules.size_reading import SizeReading, SizeRule, common


def _filled(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """One of the sizes that a tensor is made with."""
    items = read.items(node.input[0])
    return items[axis] if items is not None and axis < len(items) else None


def _expanded(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    rank, items = read.rank(node.input[0]), read.items(node.input[1])
    if rank is None or items is None:
        return None
    before = max(rank, len(items))  # both count from the last axis
    own, wanted = axis - before + rank, axis - before + len(items)
    sizes = [items[wanted]] if wanted >= 0 else []
    return common([*sizes, read.size(node.input[0], own)] if own >= 0 else sizes)


def _reshaped(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """That which the new shape says, unless it may be the 0 that copies a size, or the -1."""
    items = read.items(node.input[1]) if len(node.input) > 1 else None
    rank = read.rank(node.input[0])
    if items is None or rank is None or axis >= len(items):
        return None
    said, copies = items[axis], not attribute(node, "allowzero", 0)
    own = read.size(node.input[0], axis) if axis < rank else None
    if copies and said.number == 0:
        return own
    sure = said.at_least(1 if copies else 0)
    return said if sure or (said == own and said.at_least(0)) else None


def _counted(read: SizeReading, node: NodeProto, axis: int) -> Affine | None:
    """How many numbers a Range counts one by one, if not fewer than none."""
    start, limit, step = (read.ints(name) for name in node.input)
    if start is None or limit is None or step is None:
        return None
    if start.single is None or limit.single is None or step.single is None:
        return None
    counts = step.single.number == 1 and limit.single.at_least(start.single)
    return limit.single - start.single if counts else None


#: Ops whose shape an input says.
SAID: dict[str, SizeRule] = {
    "ConstantOfShape": _filled,
    "Expand": _expanded,
    "Range": _counted,
    "Reshape": _reshaped,
}
