"""Columns of values: which of another value's columns a part of a loop's body hands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.operators import op_of
from passes.rule import Refused
from passes.rules.body_numbers import BodyNumbers
from passes.rules.whole_axes import cut_axes
from passes.vectorize.axes import attribute


@dataclass(frozen=True)
class Columns:
    """The columns `start` to `stop` of a value of the body, whose last axis is `width` long."""

    name: str
    width: int
    start: int
    stop: int

    @property
    def count(self) -> int:
        """How many columns."""
        return self.stop - self.start

    def at(self, name: str) -> Columns:
        """The same columns of another value that is as wide."""
        return replace(self, name=name)


@dataclass(frozen=True)
class Reader(BodyNumbers):
    """Reads a body back from its outputs, through what cuts values and joins them.

    An operand is taken to be as wide as what is computed from it; where it is not, since an
    operator spreads it, some width on the way to the leaves does not fit.
    """

    def refusal(self, what: str, *culprits: str) -> Refused:
        """The refusal of a body that is not the step of a cell; `what` says where it differs."""
        return Refused("not-a-cell", what, [self.body.site.path, *culprits])

    def made_by(self, name: str, op_type: str) -> list[str] | None:
        """The inputs of the node that makes a value, Identities aside; None for another op."""
        node = self.node(self.body.origin(name))
        return list(node.input) if node is not None and op_of(node) == op_type else None

    def is_leaf(self, name: str) -> bool:
        """Whether a value is the same in every iteration, and no operator of the body makes it."""
        at = self.body.producers.get(name)
        constant = at is None or op_of(self.body.nodes[at]) == "Constant"
        return constant and name not in self.body.varying

    def width(self, name: str) -> int | None:
        """How many columns a value has."""
        dims = self.dims(name)
        return dims[-1] if dims and isinstance(dims[-1], int) else None

    def along_columns(self, axis: int, name: str) -> bool:
        """Whether an axis of a value is its last one."""
        dims = self.dims(name)
        return dims is not None and axis in (-1, len(dims) - 1)

    def source(self, columns: Columns) -> Columns:
        """The columns of the value that these are cut out of, or joined from.

        Raises:
            Refused: `not-a-cell` where that cannot be told.
        """
        while True:
            columns = columns.at(self.body.origin(columns.name))
            node = self.node(columns.name)
            step = None if node is None else _CUTS.get(op_of(node))
            if node is None or step is None:
                return columns
            found = step(self, node, columns)
            if found is None:
                what = f"which columns {op_of(node)} {list(node.output)} takes is not known"
                raise self.refusal(what, *node.output)
            columns = found


def _through_split(read: Reader, node: NodeProto, columns: Columns) -> Columns | None:
    width = read.width(node.input[0])
    if width is None or not read.along_columns(attribute(node, "axis", 0), node.input[0]):
        return None
    if len(node.input) > 1 and node.input[1]:
        sizes = read.known(node, 1)
    else:
        size = -(-width // len(node.output))
        sizes = [min(size, width - size * at) for at in range(len(node.output))]
    at = list(node.output).index(columns.name)
    if sizes is None or sum(sizes) != width or sizes[at] != columns.width:
        return None
    first = sum(sizes[:at])
    return Columns(node.input[0], width, first + columns.start, first + columns.stop)


def _through_slice(read: Reader, node: NodeProto, columns: Columns) -> Columns | None:
    width = read.width(node.input[0])
    starts, ends, axes = (read.known(node, position) for position in (1, 2, 3))
    if width is None or starts is None or ends is None or axes is None:
        return None
    steps = read.known(node, 4) if len(node.input) > 4 and node.input[4] else [1] * len(axes)
    cut = [] if steps is None else cut_axes(starts, ends, steps)
    if steps is None or len(cut) != 1 or steps[cut[0]] != 1:
        return None
    first, last, axis = (one[cut[0]] for one in (starts, ends, axes))
    start, stop, _ = slice(first, last).indices(width)
    if not read.along_columns(axis, node.input[0]) or stop - start != columns.width:
        return None
    return Columns(node.input[0], width, start + columns.start, start + columns.stop)


def _through_concat(read: Reader, node: NodeProto, columns: Columns) -> Columns | None:
    found = parts(read, node)
    if found is None or sum(width for _, width in found) != columns.width:
        return None
    first = 0
    for name, width in found:
        if first <= columns.start and columns.stop <= first + width:
            return Columns(name, width, columns.start - first, columns.stop - first)
        first += width
    return None


def parts(read: Reader, node: NodeProto) -> list[tuple[str, int]] | None:
    """What a Concat joins along columns, with the widths; None where that is not known."""
    if not read.along_columns(attribute(node, "axis", 0), node.output[0]):
        return None
    widths = [(name, read.width(name)) for name in node.input]
    known = [(name, width) for name, width in widths if width is not None]
    return known if len(known) == len(widths) else None


_CUTS: dict[str, Callable[[Reader, NodeProto, Columns], Columns | None]] = {
    "Split": _through_split,
    "Slice": _through_slice,
    "Concat": _through_concat,
}
