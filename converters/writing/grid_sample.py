"""GridSample as Gather: which elements it reads, and their weights, computed from the grid."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.writing.conversion import Conversion
from passes.converters.writing.sampling import refuse_rounding
from passes.writing import spelling


def gathered(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Return nodes of opset 11 that read from x (N, C, D1, ..., Dr), with the channels moved to the
    end and all other axes as one, the neighbours of each position of the grid, (N, E1, ..., Er, r).

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
    refuse_rounding(ctx, mode, elem_type)
    sizes = [int(dim) for dim in dims[2:] if isinstance(dim, int)]
    ctx = ctx.later(11)
    places = _Places(node, ctx.known_elem_type(grid), ctx)
    rank = len(sizes)
    taps = [places.taps(grid, rank - 1 - axis, size, mode) for axis, size in enumerate(sizes)]
    first = _first_of_each_sample(x, dims[0], int(np.prod(sizes)), rank, ctx)
    rows = ctx.op("Transpose", x, perm=[0, *range(2, rank + 2), 1])
    rows = ctx.op("Flatten", rows, axis=rank + 1)
    total = ""
    for neighbours in product(*taps):
        index, inside, weight = first, "", ""
        for axis, (along, is_inside, share) in enumerate(neighbours):
            stride = ctx.rounded(int(np.prod(sizes[axis + 1 :])), np.int64, "stride")
            step = ctx.op("Mul", ctx.cast(along, places.kind, TensorProto.INT64), stride)
            index = ctx.op("Add", index, step)
            inside = ctx.both("And", inside, is_inside)
            weight = ctx.both("Mul", weight, share)
        part = ctx.op("Gather", rows, index, axis=0)
        if inside:
            zero = ctx.rounded(0, helper.tensor_dtype_to_np_dtype(elem_type), "zero")
            part = ctx.op("Where", spelling.unsqueeze(ctx, inside, rank + 1), part, zero)
        if weight:
            weight = spelling.unsqueeze(ctx, weight, rank + 1)
            part = ctx.op("Mul", part, ctx.cast(weight, places.kind, elem_type))
        total = ctx.both("Add", total, part)
    order = [0, rank + 1, *range(1, rank + 1)]
    return ctx.last(node, "Transpose", total, perm=order)


def _first_of_each_sample(x: str, count: object, size: int, rank: int, ctx: Conversion) -> str:
    """The row in which each sample begins: (N, 1, ...)."""
    behind = [1] * rank
    if isinstance(count, int):
        rows = np.arange(count, dtype=np.int64).reshape(count, *behind)
        return ctx.value(rows * size, "first_rows")
    samples = spelling.count_to(ctx, spelling.scalar_size(ctx, x, 0))
    rows_of = ctx.op("Mul", samples, ctx.whole(size, "number"))
    return ctx.op("Reshape", rows_of, ctx.ints(-1, *behind))


class _Places:
    """The positions of the grid, along each axis."""

    def __init__(self, node: NodeProto, elem_type: int, ctx: Conversion) -> None:
        double = elem_type == TensorProto.DOUBLE
        self.kind = TensorProto.DOUBLE if double else TensorProto.FLOAT
        self._elem_type = elem_type
        self._dtype = np.float64 if double else np.float32
        self._ctx = ctx
        self._padding = ctx.attribute(node, "padding_mode", "zeros")
        self._corners = bool(ctx.attribute(node, "align_corners", 0))

    def taps(self, grid: str, column: int, size: int, mode: str) -> list[tuple[str, str, str]]:
        """The neighbours along an axis: the index, whether it is inside, and the weight; the
        latter two are empty where all are, and where the weight is 1."""
        ctx, number = self._ctx, self._number
        last = ctx.known_rank(grid) - 1
        place = ctx.op("Gather", grid, ctx.whole(column, "column"), axis=last)
        place = ctx.op("Add", ctx.cast(place, self._elem_type, self.kind), number(1))
        if self._corners:
            place = ctx.op("Mul", ctx.op("Div", place, number(2)), number(size - 1))
        else:
            place = ctx.op("Sub", ctx.op("Mul", place, number(size)), number(1))
            place = ctx.op("Div", place, number(2))
        if mode == "nearest":
            place = ctx.op("Round", place)
        if self._padding == "reflection":
            place = self._reflected(place, size)
        elif self._padding == "border":
            place = self._clipped(place, size)
        if mode == "nearest":
            return [(self._clipped(place, size), self._inside(place, size), "")]
        low = ctx.op("Floor", place)
        ratio = ctx.op("Sub", place, low)
        high, rest = ctx.op("Add", low, number(1)), ctx.op("Sub", number(1), ratio)
        return [
            (self._clipped(one, size), self._inside(one, size), weight)
            for one, weight in ((low, rest), (high, ratio))
        ]

    def _number(self, value: float) -> str:
        return self._ctx.rounded(value, self._dtype)

    def _clipped(self, place: str, size: int) -> str:
        above = self._ctx.op("Max", place, self._number(0))
        return self._ctx.op("Min", above, self._number(size - 1))

    def _inside(self, place: str, size: int) -> str:
        if self._padding != "zeros":
            return ""
        above = self._ctx.op("Greater", place, self._number(-1))  # of whole numbers
        return self._ctx.op("And", above, self._ctx.op("Less", place, self._number(size)))

    def _reflected(self, place: str, size: int) -> str:
        """Places beyond the border, mirrored there as often as it takes."""
        ctx, number = self._ctx, self._number
        low, high = (0.0, size - 1.0) if self._corners else (-0.5, size - 0.5)
        span = high - low
        if not span:
            raise ctx.refused("no-equivalent", "runtimes differ in the mirror of one element")
        beyond = ctx.op("Abs", ctx.op("Sub", place, number(low)))
        turns = ctx.op("Floor", ctx.op("Div", beyond, number(2 * span)))
        within = ctx.op("Sub", beyond, ctx.op("Mul", turns, number(2 * span)))
        back = ctx.op("Abs", ctx.op("Sub", within, number(span)))
        mirrored = ctx.op("Sub", number(high), back)
        below, above = (
            ctx.op("Less", place, number(low)),
            ctx.op("Greater", place, number(high)),
        )
        return ctx.op("Where", ctx.op("Or", below, above), mirrored, place)
