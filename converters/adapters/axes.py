"""Steps of ops that add, drop, order or join axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from onnx import NodeProto

from passes.converters.steps import adapter, adapter_down, identical
from passes.converters.writing.attribute_inputs import (
    front_axes,
    front_axis,
    ints_as_attribute,
    ints_as_input,
    non_negative,
)
from passes.converters.writing.conversion import OLD_FLOATS, Conversion
from passes.types.value_types import Dims
from passes.writing import spelling


@adapter("Squeeze", 13)
def squeeze_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `axes` becomes the optional second input, int64 (n).

    Without axes every axis of size 1 is removed, as before.
    """
    return ints_as_input(node, ctx, "axes")


@adapter("Unsqueeze", 13)
def unsqueeze_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `axes` becomes the second input, int64 (n)."""
    axes = ctx.attribute_as_input(node, "axes", np.int64)
    return [ctx.changed(node, inputs=[node.input[0], axes], without=["axes"])]


@adapter_down("Squeeze", 13)
@adapter_down("Unsqueeze", 13)
def axes_12(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The input `axes` becomes an attribute again."""
    return ints_as_attribute(node, ctx, "axes")


@adapter_down("Unsqueeze", 11)
def unsqueeze_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Negative axes are counted from the front of the output."""
    return [non_negative(node, ctx, "axes", node.output[0])]


for _op in ("Squeeze", "Unsqueeze"):
    identical(_op, 11)  # negative axes are new
    identical(_op, 21, 23, 24, 25)
adapter_down("Squeeze", 11)(front_axes)

identical("Concat", 11, 13)
identical("Expand", 13)


@adapter_down("Expand", 8)
def expand_7(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Tile, of as many axes as there are in the end.

    Its repeats are fixed; for a single element they are the shape, which may be computed.
    """
    x = node.input[0]
    dims, rank = ctx.dims_of(x), (ctx.dims_of(node.input[1]) or (None,))[0]
    fits = isinstance(rank, int) and dims is not None and 0 < rank >= len(dims) and {*dims} <= {1}
    if fits and ctx.constant(node.input[1]) is None:
        element = ctx.op("Reshape", x, ctx.value(np.ones(rank, np.int64), "shape"))
        return [ctx.changed(node, op="Tile", inputs=[element, node.input[1]])]
    sizes = ctx.fixed(node, 1, "the shape")
    if dims is None or sizes is None or not all(isinstance(dim, int) for dim in dims):
        raise ctx.refused("unknown-rank", f"the sizes of {x!r} are not known, and Tile needs them")
    before = np.array([1] * (len(sizes) - len(dims)) + [*dims], np.int64)
    after = np.broadcast_shapes(tuple(before), tuple(sizes.tolist()))
    if len(before) > len(dims):
        x = ctx.op("Reshape", x, ctx.value(before, "shape"))
    if not after:
        return [ctx.changed(node, op="Identity", inputs=[x])]
    times = ctx.value(np.array(after, np.int64) // np.maximum(before, 1), "repeats")
    return [ctx.changed(node, op="Tile", inputs=[x, times])]


identical("Flatten", 9)


@adapter_down("Flatten", 9)
def flatten_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A tensor of a type that Flatten-1 lacks gets its shape by Reshape."""
    x = node.input[0]
    if ctx.known_elem_type(x) in OLD_FLOATS:
        return [node]
    axis, dims = ctx.attribute(node, "axis", 1), ctx.dims_of(x) or (None,)
    front, back = dims[:axis], dims[axis:]
    if not _size(front) and not _size(back):
        raise ctx.refused("unknown-rank", f"the sizes of {x!r}, which Reshape needs, are not known")
    sizes = [-1, _size(back)] if _size(back) else [_size(front), -1]
    shape = ctx.value(np.array(sizes), "shape")
    return [ctx.changed(node, op="Reshape", inputs=[x, shape], without=["axis"])]


def _size(dims: Dims) -> int:
    """The number of elements, 0 where it is unknown, too."""
    return math.prod(dim if isinstance(dim, int) else 0 for dim in dims)


identical("Flatten", 11)  # a negative axis is new
identical("Flatten", 13, 21, 23, 24, 25)


adapter_down("Concat", 11)(front_axis)
adapter_down("Flatten", 11)(front_axis)

identical("Reshape", 13, 19, 21, 23, 24, 25)
identical("Reshape", 14, because="allowzero is new; by default a 0 copies a dim, as ever")


@adapter_down("Reshape", 14)
def reshape_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """With `allowzero` a size of 0 is one; without, it is that of the same axis of the input.

    What has a size of 0 is empty, before and after. So -1 stands for the only 0; where there may
    be more of them, the input first gets as many axes, which are all of size 0 if it is empty.
    """
    x, shape = node.input
    sizes = ctx.constant(shape)
    before, after = ctx.dims_of(x) or (), ctx.dims_of(node.output[0])
    wanted = ctx.attribute(node, "allowzero", 0)
    plain = ctx.changed(node, without=["allowzero"])
    if not wanted:
        return [plain]
    if sizes is not None:
        return _of_fixed_shape(plain, ctx, sizes.tolist())
    if after is None:
        raise ctx.refused("unknown-rank", f"how many axes {plain.output[0]!r} has is not known")
    unsure = [place for place, dim in enumerate(after) if not dim or isinstance(dim, str)]
    if all(_is_same(before, after, place) for place in unsure):
        return [plain]
    if len(unsure) == 1:
        zero, rest = (ctx.whole([one], "size") for one in (0, -1))
        safe = ctx.op("Where", ctx.op("Equal", shape, zero), rest, shape)
        return [ctx.changed(plain, inputs=[x, safe])]
    rank = len(after)
    ones, zeros = (ctx.whole([one] * rank, "sizes") for one in (1, 0))
    flat = ctx.op("Reshape", x, ctx.whole([-1] + [1] * (rank - 1), "sizes"))
    ends = ctx.op("Mul", ctx.op("Size", x), ones)
    return [ctx.changed(plain, inputs=[ctx.op("Slice", flat, zeros, ends), shape])]


def _is_same(before: Dims, after: Dims, place: int) -> bool:
    """Return whether an axis is surely as long as that at the same place before, whatever its
    length."""
    return place < len(before) and before[place] == after[place] is not None


def _of_fixed_shape(plain: NodeProto, ctx: Conversion, sizes: list[int]) -> Sequence[NodeProto]:
    zeros = [place for place, size in enumerate(sizes) if size == 0]
    if not zeros:
        return [plain]
    first, *more = zeros
    rest = np.array([1 if place in more else size for place, size in enumerate(sizes)])
    rest[first] = -1
    inputs = [plain.input[0], ctx.value(rest, "shape")]
    if not more:
        return [ctx.changed(plain, inputs=inputs)]
    empty = ctx.copy(plain, *inputs)
    none = ctx.whole(np.zeros(len(more)), "none")
    return ctx.last(plain, "Slice", empty, none, none, ctx.whole(more, "axes"))


identical("Tile", 13)
identical("Transpose", 13, 21, 23, 24, 25)

identical("DepthToSpace", 11, because="mode is new; its default DCR is the order of version 1")
identical("DepthToSpace", 13, 28)
identical("SpaceToDepth", 13)


@adapter_down("DepthToSpace", 11)
def depthtospace_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The mode CRD is the mode DCR of channels in another order."""
    if ctx.attribute(node, "mode", "DCR") == "DCR":
        return [node]
    x = node.input[0]
    depth = ctx.op("Gather", x, ctx.value(_row_order(node, ctx, x, 1), "order"), axis=1)
    return [ctx.changed(node, inputs=[depth], without=["mode"])]


@adapter_down("SpaceToDepth", 28)
def spacetodepth_27(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The mode CRD is the mode DCR and its channels in another order."""
    if ctx.attribute(node, "mode", "DCR") == "DCR":
        return [node]
    block = ctx.attribute(node, "blocksize")
    order = ctx.value(np.argsort(_row_order(node, ctx, node.input[0], block * block)), "order")
    depth = ctx.copy(node, *node.input, without=["mode"])
    return ctx.last(node, "Gather", depth, order, axis=1)


def _row_order(node: NodeProto, ctx: Conversion, x: str, times: int) -> npt.NDArray[np.int64]:
    """Return the channels in the order of DCR for the mode CRD; `x` has a `times`-th of them."""
    dims = ctx.dims_of(x)
    channels = dims[1] if dims is not None else None
    if not isinstance(channels, int):
        raise ctx.refused("unknown-rank", f"how many channels {x!r} has is not known")
    block = ctx.attribute(node, "blocksize")
    return np.arange(channels * times).reshape(-1, block * block).T.ravel()


identical("SpaceToDepth", 28, because="mode is new; its default DCR is the order of version 13")

identical("Shape", 13, 19, 21, 23, 24, 25)
identical("Shape", 15, because="start and end are new; by default the shape is whole")
identical("Size", 13, 19, 21, 23, 24, 25)


@adapter_down("Shape", 15)
def shape_14(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """`start` and `end` become a Slice of the whole shape."""
    start, end = ctx.attribute(node, "start", 0), ctx.attribute(node, "end")
    whole = ctx.changed(node, without=["start", "end"])
    if start == 0 and end is None:
        return [whole]
    sizes = ctx.copy(whole, *whole.input)
    spelling.part(ctx, sizes, 0, start, end, node.output)
    return []
