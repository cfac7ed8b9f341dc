"""Grids of indices by which ScatterND writes `buffer[:, i]`: a row that is not of axis 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from onnx import NodeProto, numpy_helper

from passes.analysis.bodies.body_types import BodyTypes
from passes.analysis.integers.affine import ITERATION, ONE, Affine, Ints, single_of
from passes.analysis.integers.integer_ops import FOLLOWED, Reading, is_settled
from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.sizes_through import common, size_through
from passes.analysis.sizes.whole_axes import cuts_of
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.types.value_types import Dims, dims_of

_MOST_ITEMS = 64
Shape = tuple[Affine, ...]


@dataclass(frozen=True)
class Grid:
    """Integers: `start` everywhere, plus the position on the axis `along` if there is one."""

    shape: Shape
    start: Affine
    along: int | None = None

    @property
    def counts(self) -> Affine:
        """The number of numbers in it, each of them once, or repeated."""
        return ONE if self.along is None else self.shape[self.along]


@dataclass(frozen=True)
class GridRow:
    """The elements that a grid of this shape selects: `row` of `axis`, and all of the other axes.

    It has a column for each of so many leading axes.
    """

    axis: int
    row: Affine
    shape: Shape
    columns: int


@dataclass(frozen=True)
class IndexGrids:
    """Follows grids, shapes and sizes through the nodes of the body of a loop.

    What it finds is computed without a failure: the outputs of the nodes are in `followed`.
    """

    integers: Integers
    types: BodyTypes
    followed: set[str] = field(default_factory=set)
    _grids: dict[str, Grid | None] = field(default_factory=dict)
    _ints: dict[str, Ints | None] = field(default_factory=dict)

    @cached_property
    def reading(self) -> Reading:
        """What is known of sizes and whole numbers."""
        return Reading(ints=self.ints, wrapping=self.ints, size=self.size, dims=self.dims)

    def selected(self, index: str, buffer: Shape) -> GridRow | None:
        """The row of a buffer of this shape that the indices of a ScatterND select."""
        node = self._node(index)
        columns = [self.grid(name) for name in node.input] if node is not None else []
        grids = [grid for grid in columns if grid is not None]
        if node is None or op_of(node) != "Concat" or not 0 < len(grids) == len(columns):
            return None
        shape, last = grids[0].shape, attribute(node, "axis", None)
        if not shape or shape[-1] != ONE or any(grid.shape != shape for grid in grids):
            return None
        moving = [axis for axis, grid in enumerate(grids) if grid.start.coefficient(ITERATION)]
        if last not in (-1, len(shape) - 1) or len(moving) != 1 or len(grids) > len(buffer):
            return None
        (axis,) = moving
        if grids[axis].along is not None or not all(
            grid.start == Affine(0) and grid.counts == size
            for at, (grid, size) in enumerate(zip(grids, buffer, strict=False))
            if at != axis
        ):
            return None
        along = [grid.along for grid in grids if grid.along is not None]
        if along != [position for position, size in enumerate(shape) if size != ONE]:
            return None  # in another order, or some rows more than once
        return GridRow(axis, grids[axis].start, shape[:-1], len(grids))

    def dims(self, name: str) -> Dims | None:
        """The dims of a value."""
        if not self.integers.is_own(name):
            return dims_of(self.integers.site.type_of(name))
        dims, node = self.types.dims(name), self._node(name)
        if dims is None and (grid := self.grid(name)) is not None:
            return (None,) * len(grid.shape)
        if dims is None and node is not None and op_of(node) == "Reshape":
            items = self.reading.items(node.input[1])
            return None if items is None else (None,) * len(items)
        return dims

    def size(self, name: str, axis: int) -> Affine | None:
        """The size of an axis of a value."""
        dims = self.dims(name)
        if not self.integers.is_own(name):
            return self.integers.size(name, axis)
        if dims is None or not -len(dims) <= axis < len(dims):
            return None
        dim, node = dims[axis], self._node(name)
        if isinstance(dim, int):
            return Affine(dim)
        atom = self.types.sizes.get(dim)
        if atom is not None and atom.axis is not None:
            return self.integers.size(atom.tensor, atom.axis)
        grid = self.grid(name)
        if grid is not None:
            return grid.shape[axis]
        return None if node is None else size_through(self.reading, node, axis % len(dims))

    def fits(self, node: NodeProto) -> bool:
        """Return whether a node gives the sizes that it is to give, even where some of them are
        0."""
        rank = len(self.dims(node.output[0]) or ())
        sizes = [size_through(self.reading, node, axis) for axis in range(rank)]
        return bool(rank) and None not in sizes

    def ints(self, name: str) -> Ints | None:
        """The numbers of a scalar or vector."""
        if name not in self._ints:
            self._ints[name] = None  # in a cycle, which no valid model has
            found = self.integers.inside(name)
            node = self._node(name) if found is None else None
            self._ints[name] = found if node is None else self._computed(node)
            self._note(name, self._ints[name])
        return self._ints[name]

    def _computed(self, node: NodeProto) -> Ints | None:
        if op_of(node) == "ConstantOfShape":
            return self._filled(node)
        if op_of(node) == "Where":
            return self._chosen(node)
        follow = FOLLOWED.get(op_of(node))
        found = follow(self.reading, node) if follow else None
        return found if found is None or found.exact else None

    def _filled(self, node: NodeProto) -> Ints | None:
        sizes = self.reading.items(node.input[0])
        count = sizes[0].number if sizes is not None and len(sizes) == 1 else None
        values = [numpy_helper.to_array(entry.t) for entry in node.attribute]
        if count is None or not 0 < count <= _MOST_ITEMS or len(values) != 1:
            return None
        if values[0].dtype != np.int64 or values[0].size != 1:
            return None
        return Ints((Affine(int(values[0].item())),) * count, 1)

    def _chosen(self, node: NodeProto) -> Ints | None:
        """Return Where(Equal(a, b), c, d) of vectors, if a and b are equal nowhere."""
        equal = self._node(node.input[0])
        if equal is None or op_of(equal) != "Equal" or equal.attribute:
            return None
        found = [self.ints(name) for name in (*equal.input, *node.input[1:])]
        known = [ints for ints in found if ints is not None and ints.rank == 1 and ints.exact]
        if len(known) < 4 or len({len(ints.items) for ints in known}) > 1:
            return None
        (left, right, _, otherwise) = known
        differences = [a - b for a, b in zip(left.items, right.items, strict=True)]
        if any(d.least <= 0 <= d.most for d in differences):
            return None
        self._note(equal.output[0], known)
        return otherwise

    def grid(self, name: str) -> Grid | None:
        """The grid that a value is."""
        if name not in self._grids:
            self._grids[name] = None  # in a cycle, which no valid model has
            self._grids[name] = self._constant_grid(name) or self._computed_grid(name)
            self._note(name, self._grids[name])
        return self._grids[name]

    def _constant_grid(self, name: str) -> Grid | None:
        numbers, array = self.ints(name), self.integers.constant_inside(name)
        single = single_of(numbers)
        if numbers is not None and single is not None:
            return Grid((ONE,) * numbers.rank, single)
        if array is None or array.dtype != np.int64 or not array.size:
            return None
        first, shape = int(array.flat[0]), tuple(map(Affine, array.shape))
        if (array == first).all():
            return Grid(shape, Affine(first))
        positions = first + np.indices(array.shape)
        along = [axis for axis, numbers in enumerate(positions) if (numbers == array).all()]
        return Grid(shape, Affine(first), along[0]) if along else None

    def _computed_grid(self, name: str) -> Grid | None:
        node = self._node(name)
        if node is None:
            return None
        if op_of(node) == "Range":
            start, count = single_of(self.ints(node.input[0])), size_through(self.reading, node, 0)
            if start is None or count is None:
                return None
            return Grid((count,), start, None if count == ONE else 0)
        follow = {
            "Expand": self._expanded,
            "Identity": lambda node, data: data,
            "Reshape": self._reshaped,
            "Unsqueeze": self._unsqueezed,
            "Slice": self._whole,
        }.get(op_of(node))
        data = self.grid(node.input[0]) if follow is not None else None
        return None if follow is None or data is None else follow(node, data)

    def _whole(self, node: NodeProto, data: Grid) -> Grid | None:
        cuts = cuts_of(node, self.reading.numbers)
        return data if cuts is not None and all(cut.is_whole for cut in cuts) else None

    def _unsqueezed(self, node: NodeProto, data: Grid) -> Grid | None:
        axes = self.reading.numbers(node, 1, "axes")
        rank = len(data.shape) + len(axes or ())
        new = {axis % rank for axis in axes or ()}
        sizes = iter(data.shape)
        return _with_ones(data, [ONE if axis in new else next(sizes) for axis in range(rank)])

    def _reshaped(self, node: NodeProto, data: Grid) -> Grid | None:
        """With other axes of size 1; a -1 is the only size that is another one."""
        items = self.reading.items(node.input[1])
        if items is None or attribute(node, "allowzero", 0):
            return None
        rest = [size for size in data.shape if size != ONE] or [ONE]
        shape = [rest[0] if len(rest) == 1 and item == Affine(-1) else item for item in items]
        fixed = all(
            size.at_least(1) for item, size in zip(items, shape, strict=True) if item == size
        )
        return _with_ones(data, shape) if fixed and items.count(Affine(-1)) < 2 else None

    def _expanded(self, node: NodeProto, data: Grid) -> Grid | None:
        items = self.reading.items(node.input[1])
        if items is None:
            return None
        more = max(0, len(items) - len(data.shape))
        own = (ONE,) * more + data.shape
        new = (ONE,) * (len(own) - len(items)) + items
        sizes = [common(pair) for pair in zip(own, new, strict=True)]
        along = None if data.along is None else data.along + more
        known = tuple(size for size in sizes if size is not None)
        return Grid(known, data.start, along) if len(known) == len(sizes) else None

    def _node(self, name: str) -> NodeProto | None:
        """Return the node of the body, or an earlier one that reads the same, that computes a
        value."""
        node = self.integers.source(name)
        if node is None or not is_settled(node):
            return None
        own = self.integers.is_own(name) or self.integers.same_meaning(node, name)
        return node if own else None

    def _note(self, name: str, found: object) -> None:
        if found is not None:
            self.followed.add(name)


def _with_ones(data: Grid, shape: Sequence[Affine]) -> Grid | None:
    """A grid of another shape that differs in axes of size 1."""
    rest = [axis for axis, size in enumerate(shape) if size != ONE]
    before = [axis for axis, size in enumerate(data.shape) if size != ONE]
    if [shape[axis] for axis in rest] != [data.shape[axis] for axis in before]:
        return None
    along = None if data.along is None else rest[before.index(data.along)]
    return Grid(tuple(shape), data.start, along)
