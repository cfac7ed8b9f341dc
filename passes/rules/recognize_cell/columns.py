"""Columns of values: follows them back to the value that they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from onnx import NodeProto

from passes.analysis.integers.affine import Affine, Ints, size_atom
from passes.analysis.integers.integer_ops import FOLLOWED, Reading, ints_of
from passes.analysis.sizes.whole_axes import cuts_of
from passes.bodies.time_body import TimeBody
from passes.ir.attributes import attribute, attributes, has_references
from passes.ir.operators import Registry, called_key, op_of
from passes.rule import Refused
from passes.types.value_types import Dims, dims_of, elem_type_of

_DEEPEST = 32
#: The columns of an operand that columns of each operator's output are.
_CUTS: Registry[Callable[[Reader, NodeProto, Columns], Columns | None]] = Registry()


@dataclass(frozen=True)
class BodyNumbers:
    """Reads bounds and sizes, such as `(shape[1] + 3) / 4`, as far as they are known.

    Unlike `Integers`, it uses the types inside the body, whose sizes may be unknown.
    """

    body: TimeBody
    _memo: dict[str, Ints | None] = field(default_factory=dict)

    def dims(self, name: str) -> Dims | None:
        """The dims of a value as the body sees it."""
        fixed = self.body.rows.constants.get(name)
        return dims_of(self.body.rows.types.get(name)) if fixed is None else fixed.shape

    def node(self, name: str) -> NodeProto | None:
        """The operator that computes a value of the body.

        None where the value is captured or constant, or is computed by an operator of another
        domain, a function, or a node with an attribute reference.
        """
        position = self.body.index.positions.get(name)
        node = None if position is None else self.body.nodes[position]
        if node is None or op_of(node) == "Constant":
            return None
        chosen = has_references(node)
        return None if chosen or called_key(node) in self.body.functions else node

    def numbers(self, node: NodeProto, position: int, name: str = "") -> list[int] | None:
        """The integers of an input of a node, or of the attribute of older opsets; None where it
        is omitted or they are unknown."""
        return self._reading(0).numbers(node, position, name)

    def _of(self, name: str, depth: int) -> Ints | None:
        """The integers of a scalar or vector; None where they are not followed."""
        if name not in self._memo:
            self._memo[name] = None if depth > _DEEPEST else self._computed(name, depth)
        return self._memo[name]

    def _computed(self, name: str, depth: int) -> Ints | None:
        fixed = self.body.rows.constants.get(name)
        if fixed is not None:
            return ints_of(fixed)
        node = self.node(name)
        follow = None if node is None else FOLLOWED.get(op_of(node))
        return None if node is None or follow is None else follow(self._reading(depth + 1), node)

    def _reading(self, depth: int) -> Reading:
        numbers = partial(self._of, depth=depth)
        return Reading(numbers, numbers, self._size, self.dims)

    def _size(self, name: str, axis: int) -> Affine:
        return size_atom((), name, axis, (self.dims(name) or ())[axis])


@dataclass(frozen=True, order=True)
class Columns:
    """The columns `start` to `stop` of a value of the body, whose last axis has size `width`; its
    first axis where it is `turned`, [columns, rows]."""

    name: str
    width: int
    start: int
    stop: int
    turned: bool = False

    @property
    def count(self) -> int:
        """The number of columns."""
        return self.stop - self.start

    def cut_from(self, name: str, width: int, first: int) -> Columns:
        """The columns of a wider value, of which this one is cut out at `first`."""
        start, stop = first + self.start, first + self.stop
        return replace(self, name=name, width=width, start=start, stop=stop)

    def of(self, name: str) -> Columns:
        """The same columns of another value that is as wide."""
        return replace(self, name=name)


@dataclass(frozen=True)
class Reader(BodyNumbers):
    """Reads a body backwards from its outputs, through what splits and joins values.

    An operand is assumed to be as wide as the result; where it is broadcast instead, some width
    on the way to the leaves does not fit.
    """

    def refusal(self, what: str, *culprits: str) -> Refused:
        """Return the refusal of a body that is not the step of a cell; `what` tells how it
        differs."""
        return self.body.site.refused("not-a-cell", what, *culprits)

    def origin(self, name: str) -> str:
        """The value that Identities copy to a name, also through Casts that change no type, and
        through what adds or removes a first axis of size 1."""
        name = self.body.index.source(name)
        node = self.node(name)
        if node is None or op_of(node) not in ("Cast", "Squeeze", "Unsqueeze"):
            return name
        if op_of(node) == "Cast":
            types = [elem_type_of(self.body.rows.types.get(one)) for one in (name, node.input[0])]
            return self.origin(node.input[0]) if types[0] == types[1] != 0 else name
        dims, before = self.dims(name), self.dims(node.input[0])
        same = dims and before and ((1, *dims) == before or (1, *before) == dims)
        return self.origin(node.input[0]) if same else name

    def made_by(self, name: str, op_type: str) -> list[str] | None:
        """The inputs of the node that computes a value, ignoring copies; None for another op."""
        node = self.node(self.origin(name))
        return list(node.input) if node is not None and op_of(node) == op_type else None

    def is_leaf(self, name: str) -> bool:
        """Return whether a value is loop-invariant and no operator of the body computes it."""
        position = self.body.index.positions.get(name)
        constant = position is None or op_of(self.body.nodes[position]) == "Constant"
        return constant and name not in self.body.varying

    def upright(self, name: str, turned: bool = False) -> tuple[str, bool]:
        """The value before the Transposes of the body, and whether it is transposed."""
        name = self.origin(name)
        node = self.node(name)
        if node is None or op_of(node) != "Transpose" or not swaps(node):
            return name, turned
        return self.upright(node.input[0], not turned)

    def width(self, name: str, *, turned: bool = False) -> int | None:
        """The number of columns of a value."""
        dims = self.dims(name)
        size = dims[0 if turned else -1] if dims else None
        return size if isinstance(size, int) else None

    def along_columns(self, axis: int, name: str, *, turned: bool = False) -> bool:
        """Return whether an axis of a value is its last one, or the first where it is `turned`."""
        dims = self.dims(name)
        return dims is not None and axis % (len(dims) or 1) == (0 if turned else len(dims) - 1)

    def source(self, columns: Columns) -> Columns:
        """The columns of the value that these are cut out of, or joined from.

        Raises:
            Refused: `not-a-cell` where they are unknown.
        """
        while True:
            columns = columns.of(self.origin(columns.name))
            node = self.node(columns.name)
            step = None if node is None else _CUTS.get(op_of(node))
            if node is None or step is None:
                return columns
            found = step(self, node, columns)
            if found is None:
                what = f"it is unknown which columns {op_of(node)} {list(node.output)} takes"
                raise self.refusal(what, *node.output)
            columns = found


@_CUTS.enter("Split")
def _through_split(read: Reader, node: NodeProto, columns: Columns) -> Columns | None:
    turned, axis = columns.turned, attribute(node, "axis", 0)
    width = read.width(node.input[0], turned=turned)
    if width is None or not read.along_columns(axis, node.input[0], turned=turned):
        return None
    if len(node.input) > 1 and node.input[1]:
        sizes = read.numbers(node, 1)
    else:
        size = -(-width // len(node.output))
        sizes = [min(size, width - size * index) for index in range(len(node.output))]
    index = list(node.output).index(columns.name)
    if sizes is None or sum(sizes) != width or sizes[index] != columns.width:
        return None
    first = sum(sizes[:index])
    return columns.cut_from(node.input[0], width, first)


@_CUTS.enter("Slice")
def _through_slice(read: Reader, node: NodeProto, columns: Columns) -> Columns | None:
    turned = columns.turned
    width, cuts = read.width(node.input[0], turned=turned), cuts_of(node, read.numbers)
    cut = [cut for cut in cuts or () if not cut.is_whole]
    part = cut[0].part if len(cut) == 1 else None
    if width is None or part is None:
        return None
    start, stop, _ = part.indices(width)
    along = read.along_columns(cut[0].axis, node.input[0], turned=turned)
    if not along or stop - start != columns.width:
        return None
    return columns.cut_from(node.input[0], width, start)


@_CUTS.enter("Concat")
def _through_concat(read: Reader, node: NodeProto, columns: Columns) -> Columns | None:
    found = None if columns.turned else parts(read, node)
    if found is None or sum(width for _, width in found) != columns.width:
        return None
    first = 0
    for name, width in found:
        if first <= columns.start and columns.stop <= first + width:
            return columns.cut_from(name, width, -first)
        first += width
    return None


@_CUTS.enter("Transpose")
def _through_transpose(read: Reader, node: NodeProto, columns: Columns) -> Columns | None:
    if len(read.dims(node.input[0]) or ()) != 2 or not swaps(node):
        return None
    return replace(columns, name=node.input[0], turned=not columns.turned)


def swaps(node: NodeProto) -> bool:
    """Return whether a Transpose swaps the axes of a matrix."""
    return (attributes(node, "perm") or [1, 0]) == [1, 0]


def parts(read: Reader, node: NodeProto) -> list[tuple[str, int]] | None:
    """The inputs of a Concat along columns, with their widths; None where these are unknown."""
    if not read.along_columns(attribute(node, "axis", 0), node.output[0]):
        return None
    widths = [(name, read.width(name)) for name in node.input]
    known = [(name, width) for name, width in widths if width is not None]
    return known if len(known) == len(widths) else None
