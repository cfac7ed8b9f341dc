"""Merges two axes of a tensor into one, and splits one into two: the elements of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from onnx import TypeProto

from passes.analysis.sizes.made_up_sizes import without_made_up
from passes.bodies.time_body import UNKNOWN_DIM
from passes.bodies.time_cost import item_bytes
from passes.ir import scope as scoping
from passes.ir.versions import ZERO_IS_A_SIZE
from passes.rule import Site
from passes.types.value_types import Dim, Dims, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


@dataclass(frozen=True)
class Grid:
    """A tensor whose elements are those of all rows: `across` is the axis of the rows, `along`
    that of the elements of a row, both counted from the front, in a tensor of sizes `dims`."""

    tensor: str
    across: int
    along: int
    dims: Dims
    elem_type: int

    @property
    def order(self) -> list[int]:
        """The axes, these two first."""
        rest = [axis for axis in range(len(self.dims)) if axis not in (self.across, self.along)]
        return [self.across, self.along, *rest]

    @property
    def element(self) -> Dims:
        """The sizes of an element."""
        return tuple(self.dims[axis] for axis in self.order[2:])

    def type_of(self, *lengths: Dim) -> TypeProto:
        """The type of elements along axes of these lengths."""
        return tensor_type(self.elem_type, without_made_up((*lengths, *self.element)))


#: Bytes of a row up to which moving all rows together is faster than starting a Scan on each,
#: measured with onnxruntime, which transposes larger rows faster one by one, in the cache.
_MOST_MOVED = 1 << 13


@dataclass(frozen=True)
class GridAxes:
    """Writes tensors of `rows` times `length` elements.

    Each is a size and the name of an int64 [1] value that holds it. `guarded`: these names must be
    read before the loop, since they carry the guard on the lengths of all that is scanned.
    """

    site: Site
    author: Author
    rows: tuple[Dim, str]
    length: tuple[Dim, str]
    guarded: bool = False

    def merged(self, grid: Grid) -> str:
        """The elements of all rows along axis 0."""
        tensor = grid.tensor
        if _is_turned(grid):
            self._refuse_large(grid, "transposed")
            tensor = self.author.op("Transpose", tensor, perm=grid.order)
        count = self._count()
        shape = None if self.guarded else self._fixed(count, *grid.element)
        if shape is not None:
            return self.author.op("Reshape", tensor, self.author.ints(*shape))
        self._refuse_old(grid.tensor)
        product = self.author.once(
            "count", lambda: self.author.op("Mul", self.rows[1], self.length[1])
        )
        sizes = [product, *self._sizes(tensor, grid.element, 2)]
        return self._reshaped(tensor, sizes)

    def split(self, elements: str, grid: Grid) -> None:
        """Write `grid`, from the `elements` collected over all rows."""
        turned = _is_turned(grid)
        if turned:
            self._refuse_large(grid, "transposed")
        elif grid.tensor in scoping.output_names(self.site.scope.owner):
            self._refuse_large(grid, "copied")  # elsewhere a Reshape shares the memory
        outputs = [] if turned else [grid.tensor]
        shape = self._fixed(self.rows[0], self.length[0], *grid.element)
        if shape is not None:
            rows = self.author.op("Reshape", elements, self.author.ints(*shape), outputs=outputs)
        else:
            self._refuse_old(grid.tensor)
            sizes = [self.rows[1], self.length[1], *self._sizes(elements, grid.element, 1)]
            rows = self._reshaped(elements, sizes, outputs)
        if turned:
            back = [grid.order.index(axis) for axis in range(len(grid.dims))]
            self.author.op("Transpose", rows, outputs=[grid.tensor], perm=back)

    def _count(self) -> Dim:
        rows, length = self.rows[0], self.length[0]
        return rows * length if isinstance(rows, int) and isinstance(length, int) else None

    def _fixed(self, *dims: Dim) -> list[int] | None:
        """A shape for Reshape that is right for every run: one size may be -1, if none is 0."""
        sizes = [dim if isinstance(dim, int) else -1 for dim in dims]
        return None if 0 in sizes or sizes.count(-1) > 1 else sizes

    def _sizes(self, tensor: str, element: Dims, first: int) -> list[str]:
        """The names of the sizes of an element, whose first axis is axis `first` of the tensor."""
        author = self.author
        return [
            author.ints(dim)
            if isinstance(dim, int)
            else spelling.size_of_axis(author, tensor, first + position)
            for position, dim in enumerate(element)
        ]

    def _reshaped(self, tensor: str, sizes: Sequence[str], outputs: Sequence[str] = ()) -> str:
        return spelling.reshaped(self.author, tensor, spelling.joined(self.author, sizes), outputs)

    def _refuse_old(self, name: str) -> None:
        if self.author.opset < ZERO_IS_A_SIZE:
            raise self.site.refused(
                "opset-too-old",
                f"sizes of {name!r} are known only at run time, and before opset "
                f"{ZERO_IS_A_SIZE} a Reshape cannot take 0 as a size",
                name,
                opset=ZERO_IS_A_SIZE,
            )

    def _refuse_large(self, grid: Grid, done: str) -> None:
        """Refuse to move large rows."""
        sizes = [self.length[0], *grid.element]
        count = prod(dim if isinstance(dim, int) else UNKNOWN_DIM for dim in sizes)
        if count * item_bytes(grid.elem_type) > _MOST_MOVED:
            what = f"{grid.tensor!r} must be {done}, which costs more than the inner Scans"
            raise self.site.refused("not-worth-it", what, grid.tensor)


def _is_turned(grid: Grid) -> bool:
    """Return whether its axes must be transposed."""
    return grid.order != sorted(grid.order)
