"""Columns of values: which of another value's columns a part of a loop's body hands on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from onnx import NodeProto

from passes.analysis.integers.affine import LIMITS
from passes.analysis.sizes.whole_axes import cut_axes
from passes.ir.operators import called_key, op_of
from passes.rule import Refused
from passes.rules.time_axis.time_body import TimeBody
from passes.types.value_types import Dims, dims_of, elem_type_of
from passes.vectorize.axes import attribute

#: A whole number, or None where only the run tells it.
Number = int | None
_MOST = 64  # a shape, not data
_DEEPEST = 32
#: Ops that hand numbers on; of a Cast only those to whole numbers do.
_SAME = ("Identity", "Cast", "Squeeze", "Unsqueeze")


@dataclass(frozen=True)
class BodyNumbers:
    """Reads bounds and sizes, such as `(shape[1] + 3) / 4`, as far as they are known.

    Other than `Integers`, it goes by the types inside the body, of which a size may be open.
    """

    body: TimeBody
    _memo: dict[str, list[Number] | None] = field(default_factory=dict)

    def dims(self, name: str) -> Dims | None:
        """The dims of a value as the body sees it."""
        fixed = self.body.rows.constants.get(name)
        return dims_of(self.body.rows.types.get(name)) if fixed is None else fixed.shape

    def node(self, name: str) -> NodeProto | None:
        """The operator that makes a value of the body.

        None where the value is read or a constant, or what makes it is no operator of ONNX, or
        has an attribute that callers of a function choose.
        """
        at = self.body.producers.get(name)
        node = None if at is None else self.body.nodes[at]
        if node is None or op_of(node) == "Constant":
            return None
        chosen = any(one.ref_attr_name for one in node.attribute)
        return None if chosen or called_key(node) in self.body.functions else node

    def known(self, node: NodeProto, position: int) -> list[int] | None:
        """The numbers of an input of a node, None where it is omitted or they are not known."""
        if position >= len(node.input) or not node.input[position]:
            return None
        found = self.of(node.input[position])
        known = [one for one in found or () if one is not None]
        return known if found is not None and len(known) == len(found) else None

    def of(self, name: str, depth: int = 0) -> list[Number] | None:
        """The numbers of a scalar or vector, None where it is not followed."""
        if name not in self._memo:
            self._memo[name] = None if depth > _DEEPEST else self._computed(name, depth)
        return self._memo[name]

    def _computed(self, name: str, depth: int) -> list[Number] | None:
        fixed = self.body.rows.constants.get(name)
        if fixed is not None:
            small = fixed.dtype in (np.int64, np.int32) and fixed.size <= _MOST and fixed.ndim < 2
            return [int(one) for one in fixed.ravel()] if small else None
        node = self.node(name)
        if node is None:
            return None
        if op_of(node) == "Shape":
            dims = self.dims(node.input[0])
            part = slice(attribute(node, "start", 0), attribute(node, "end", _MOST))
            return None if dims is None else [_size(one) for one in dims[part]]
        if op_of(node) in _SAME:
            is_float = op_of(node) == "Cast" and attribute(node, "to", 0) not in LIMITS
            return None if is_float else self._held(name, self.of(node.input[0], depth + 1))
        follow = _FOLLOWED.get(op_of(node))
        inputs = [self.of(one, depth + 1) for one in node.input]
        told = [one for one in inputs if one is not None]
        if follow is None or len(told) != len(inputs):
            return None
        return self._held(name, follow(told))

    def _held(self, name: str, numbers: list[Number] | None) -> list[Number] | None:
        """Numbers as far as their type has them; what wraps is not followed."""
        limits = LIMITS.get(elem_type_of(self.body.rows.types.get(name)))
        if numbers is None or limits is None:
            return None
        return [
            one if one is not None and limits[0] <= one <= limits[1] else None for one in numbers
        ]


def _size(dim: int | str | None) -> Number:
    return dim if isinstance(dim, int) else None


def _gathered(inputs: Sequence[list[Number]]) -> list[Number] | None:
    data, places = inputs
    inside = [at for at in places if at is not None and -len(data) <= at < len(data)]
    return [data[at] for at in inside] if len(inside) == len(places) else None


def _joined(inputs: Sequence[list[Number]]) -> list[Number] | None:
    return [one for part in inputs for one in part]


def _pairwise(
    combine: Callable[[int, int], Number],
) -> Callable[[Sequence[list[Number]]], list[Number] | None]:
    def follow(inputs: Sequence[list[Number]]) -> list[Number] | None:
        one, other = inputs
        count = max(len(one), len(other))
        if not one or not other or not {len(one), len(other)} <= {1, count}:
            return None
        pairs = zip(one * (count // len(one)), other * (count // len(other)), strict=True)
        return [None if a is None or b is None else combine(a, b) for a, b in pairs]

    return follow


def _quotient(one: int, other: int) -> Number:
    return one // other if one >= 0 and other > 0 else None


_FOLLOWED: dict[str, Callable[[Sequence[list[Number]]], list[Number] | None]] = {
    "Gather": _gathered,
    "Concat": _joined,
    "Add": _pairwise(lambda one, other: one + other),
    "Sub": _pairwise(lambda one, other: one - other),
    "Mul": _pairwise(lambda one, other: one * other),
    "Div": _pairwise(_quotient),
}


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
