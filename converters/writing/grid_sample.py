"""GridSample as Gather: which elements it reads, and their weights, computed from the grid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.writing.conversion import Conversion
from passes.converters.writing.replacement import Replacement

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)


def gathered(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Nodes of opset 11 that read from x (N, C, D1, ..., Dr), with the channels moved to the end
    and all other axes as one, the neighbours of each place of the grid, (N, E1, ..., Er, r).

    Raises:
        Refused: `unknown-rank`: the sizes of x are not known; `no-equivalent`: the mode, or the
            element type, cannot be said that way.
    """
    x, grid = node.input
    mode = ctx.attribute(node, "mode", "linear")
    dims, elem_type = ctx.dims_of(x), ctx.known_elem_type(x)
    if dims is None or not all(isinstance(dim, int) and dim > 0 for dim in dims[2:]):
        raise ctx.refused("unknown-rank", f"the sizes of {x!r} are not known, or 0: {dims}")
    if mode.endswith("cubic"):
        raise ctx.refused("no-equivalent", "runtimes differ in what is cubic beyond a border")
    if mode != "nearest" and elem_type not in _FLOATS:
        kind = TensorProto.DataType.Name(elem_type).lower()
        raise ctx.refused("no-equivalent", f"{kind} is rounded otherwise where it is interpolated")
    sizes = [int(dim) for dim in dims[2:] if isinstance(dim, int)]
    new = Replacement(node, ctx.later(11))
    places = _Places(node, ctx.known_elem_type(grid), new)
    rank = len(sizes)
    taps = [places.taps(grid, rank - 1 - axis, size, mode) for axis, size in enumerate(sizes)]
    first = _first_of_each_sample(x, dims[0], int(np.prod(sizes)), rank, new)
    rows = new.op("Transpose", x, perm=[0, *range(2, rank + 2), 1])
    rows = new.op("Flatten", rows, axis=rank + 1)
    total = ""
    for neighbours in product(*taps):
        index, inside, weight = first, "", ""
        for axis, (along, is_inside, share) in enumerate(neighbours):
            stride = new.fixed(int(np.prod(sizes[axis + 1 :])), np.int64, "stride")
            step = new.op("Mul", new.cast(along, places.kind, TensorProto.INT64), stride)
            index = new.op("Add", index, step)
            inside = new.both("And", inside, is_inside)
            weight = new.both("Mul", weight, share)
        part = new.op("Gather", rows, index, axis=0)
        if inside:
            zero = new.fixed(0, helper.tensor_dtype_to_np_dtype(elem_type), "zero")
            part = new.op("Where", new.op("Unsqueeze", inside, axes=[rank + 1]), part, zero)
        if weight:
            weight = new.op("Unsqueeze", weight, axes=[rank + 1])
            part = new.op("Mul", part, new.cast(weight, places.kind, elem_type))
        total = new.both("Add", total, part)
    order = [0, rank + 1, *range(1, rank + 1)]
    return new.last("Transpose", total, perm=order)


def _first_of_each_sample(x: str, count: object, size: int, rank: int, new: Replacement) -> str:
    """The row in which each sample begins: (N, 1, ...)."""
    behind = [1] * rank
    if isinstance(count, int):
        rows = np.arange(count, dtype=np.int64).reshape(count, *behind)
        return new.ctx.value(rows * size, "first_rows")
    zero, one, each = (new.ctx.value(np.int64(number), "number") for number in (0, 1, size))
    samples = new.op("Gather", new.op("Shape", x), zero)
    rows_of = new.op("Mul", new.op("Range", zero, samples, one), each)
    return new.op("Reshape", rows_of, new.ints(-1, *behind))


class _Places:
    """What the grid says, along each axis."""

    def __init__(self, node: NodeProto, elem_type: int, new: Replacement) -> None:
        double = elem_type == TensorProto.DOUBLE
        self.kind = TensorProto.DOUBLE if double else TensorProto.FLOAT
        self._elem_type = elem_type
        self._dtype = np.float64 if double else np.float32
        self._new = new
        self._padding = new.ctx.attribute(node, "padding_mode", "zeros")
        self._corners = bool(new.ctx.attribute(node, "align_corners", 0))

    def taps(self, grid: str, column: int, size: int, mode: str) -> list[tuple[str, str, str]]:
        """The neighbours along an axis: the index, whether it is inside, and the weight; the
        latter two are empty where all are, and where the weight is 1."""
        new, number = self._new, self._number
        last = new.ctx.known_rank(grid) - 1
        place = new.op("Gather", grid, new.ctx.value(np.int64(column), "column"), axis=last)
        place = new.op("Add", new.cast(place, self._elem_type, self.kind), number(1))
        if self._corners:
            place = new.op("Mul", new.op("Div", place, number(2)), number(size - 1))
        else:
            place = new.op("Sub", new.op("Mul", place, number(size)), number(1))
            place = new.op("Div", place, number(2))
        if mode == "nearest":
            place = new.op("Round", place)
        if self._padding == "reflection":
            place = self._reflected(place, size)
        elif self._padding == "border":
            place = self._clipped(place, size)
        if mode == "nearest":
            return [(self._clipped(place, size), self._inside(place, size), "")]
        low = new.op("Floor", place)
        ratio = new.op("Sub", place, low)
        high, rest = new.op("Add", low, number(1)), new.op("Sub", number(1), ratio)
        return [
            (self._clipped(one, size), self._inside(one, size), weight)
            for one, weight in ((low, rest), (high, ratio))
        ]

    def _number(self, value: float) -> str:
        return self._new.fixed(value, self._dtype)

    def _clipped(self, place: str, size: int) -> str:
        above = self._new.op("Max", place, self._number(0))
        return self._new.op("Min", above, self._number(size - 1))

    def _inside(self, place: str, size: int) -> str:
        if self._padding != "zeros":
            return ""
        above = self._new.op("Greater", place, self._number(-1))  # of whole numbers
        return self._new.op("And", above, self._new.op("Less", place, self._number(size)))

    def _reflected(self, place: str, size: int) -> str:
        """Places beyond the border, mirrored there as often as it takes."""
        new, number = self._new, self._number
        low, high = (0.0, size - 1.0) if self._corners else (-0.5, size - 0.5)
        span = high - low
        if not span:
            raise new.ctx.refused("no-equivalent", "runtimes differ in the mirror of one element")
        beyond = new.op("Abs", new.op("Sub", place, number(low)))
        turns = new.op("Floor", new.op("Div", beyond, number(2 * span)))
        within = new.op("Sub", beyond, new.op("Mul", turns, number(2 * span)))
        back = new.op("Abs", new.op("Sub", within, number(span)))
        mirrored = new.op("Sub", number(high), back)
        below, above = (
            new.op("Less", place, number(low)),
            new.op("Greater", place, number(high)),
        )
        return new.op("Where", new.op("Or", below, above), mirrored, place)
