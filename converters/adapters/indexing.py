"""Steps of ops that pick, place, order or find elements by their indices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter, adapter_down, identical, refusal_down
from passes.converters.writing.conversion import Conversion
from passes.converters.writing.index_arithmetic import (
    axis_from_front,
    from_front,
    in_flat_elements,
    in_flat_rows,
    is_negative,
    plus_where_negative,
    static_dims,
)
from passes.types.value_types import elem_type_of
from passes.writing import spelling

# -- TopK ----------------------------------------------------------------------------------


@adapter("TopK", 10)
def top_k_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `k` becomes the second input, int64 (1)."""
    x = node.input[0]
    if not ctx.refers(node, "k"):
        k = ctx.whole([ctx.attribute(node, "k")], "k")
    else:
        one = ctx.whole([1], "shape")
        k = ctx.op("Reshape", ctx.attribute_as_input(node, "k", np.int64), one)
    return [ctx.changed(node, inputs=[x, k], without=["k"])]


@adapter_down("TopK", 10)
def top_k_1(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The second input becomes the attribute `k`."""
    k = ctx.fixed(node, 1, "k")
    if k is None or k.size != 1:
        raise ctx.refused("invalid-node", "TopK takes one number k")
    return [ctx.changed(node, inputs=node.input[:1], k=int(k.flat[0]))]


identical("TopK", 11, because="largest and sorted are new; by default it is as it was")
identical("TopK", 24)

_SMALL_INTEGERS = frozenset(
    {
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32),
    }
)


@adapter_down("TopK", 11)
def largest_floats(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The smallest are the largest of the negated; what is not to be sorted may be sorted, too.
    Integers of up to 32 bits are ordered as doubles."""
    x, k = node.input
    values = node.output[0]
    smallest = not ctx.attribute(node, "largest", 1)
    elem_type = elem_type_of(ctx.type_of(x)) if not smallest else ctx.known_elem_type(x)
    axis = ctx.attribute(node, "axis", -1)
    axis = axis if axis == -1 else axis_from_front(node, ctx, x, -1)
    as_double = elem_type in _SMALL_INTEGERS
    if as_double:
        x = ctx.op("Cast", x, to=TensorProto.DOUBLE)
    elif elem_type in (TensorProto.INT64, TensorProto.UINT64):
        raise ctx.refused("no-equivalent", "TopK orders integers of 64 bits from opset 11 on")
    if smallest:
        x = ctx.op("Neg", x)
    first = ctx.fresh(f"{values}/found") if values and (smallest or as_double) else values
    gone = ["largest", "sorted"]
    outputs = [first, *node.output[1:]]
    ctx.adopt(ctx.changed(node, inputs=[x, k], outputs=outputs, without=gone, axis=axis))
    if values and smallest:
        first = ctx.op("Neg", first, outputs=() if as_double else [values])
    if values and as_double:
        ctx.op("Cast", first, outputs=[values], to=elem_type)
    return []


# -- Gather --------------------------------------------------------------------------------

identical("Gather", 11, 13)
identical("GatherElements", 13)
identical("GatherND", 12, because="batch_dims is new; 0 by default")
identical("GatherND", 13)


@adapter_down("Gather", 11)
def gather_1(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Indices that count from the back come to count from the front."""
    data, indices = node.input
    if _may_be_negative(ctx, indices):
        axis = axis_from_front(node, ctx, data, 0)
        indices = from_front(ctx, indices, data, axis)
    return [ctx.changed(node, inputs=[data, indices]) if indices != node.input[1] else node]


def _may_be_negative(ctx: Conversion, indices: str) -> bool:
    known = ctx.constant(indices)
    return known is None or bool((known < 0).any())


@adapter_down("GatherElements", 11)
def gather_elements_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Gather from the flattened data, where the shapes are fixed."""
    data, indices = node.input
    axis = axis_from_front(node, ctx, data, 0)
    places = in_flat_elements(ctx, indices, data, axis)
    flat = ctx.op("Reshape", data, ctx.whole([-1], "flat"))
    return [ctx.changed(node, op="Gather", inputs=[flat, places], axis=0)]


@adapter_down("GatherND", 12)
def gather_nd_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The indices along the batch axes are prepended to the given ones."""
    batch_dims = ctx.attribute(node, "batch_dims", 0)
    if not batch_dims:
        return [node]
    data, indices = node.input
    shape = static_dims(ctx, indices, "the batch of GatherND")
    batch = np.moveaxis(np.indices(shape[:-1])[:batch_dims], 0, -1)
    dtype = helper.tensor_dtype_to_np_dtype(ctx.known_elem_type(indices))
    rows = [ctx.value(batch.astype(dtype), "batch"), indices]
    both = ctx.op("Concat", *rows, axis=len(shape) - 1)
    return [ctx.changed(node, inputs=[data, both], without=["batch_dims"])]


@adapter_down("GatherND", 11)
def gather_nd_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Gather from data whose indexed axes are one, where their sizes are known."""
    data, indices = node.input
    depth = _depth(ctx, indices)
    places = in_flat_rows(ctx, indices, data, depth)
    dims = ctx.dims_of(data) or ()
    tail = [dim if isinstance(dim, int) else -1 for dim in dims[depth:]]
    inner = [dim for dim in dims[:depth] if isinstance(dim, int)]
    shape = [prod(inner) if len(inner) == depth else -1, *tail]
    if shape.count(-1) > 1 or (-1 in shape and 0 in shape):
        raise ctx.refused(
            "unknown-rank", f"GatherND depends on the shape of {data!r}, which is open"
        )
    rows = ctx.op("Reshape", data, ctx.whole(shape, "rows"))
    return [ctx.changed(node, op="Gather", inputs=[rows, places], axis=0)]


def _depth(ctx: Conversion, indices: str) -> int:
    """By how many indices a tuple of them points."""
    *_, depth = ctx.dims_of(indices) or [None]
    if not isinstance(depth, int):
        raise ctx.refused("unknown-rank", f"how many indices {indices!r} has in a row is not known")
    return depth


# -- Scatter -------------------------------------------------------------------------------


@adapter("Scatter", 11)
def scatter_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Scatter is now called ScatterElements."""
    return [ctx.changed(node, op="ScatterElements")]


for _op in ("ScatterElements", "ScatterND"):
    identical(_op, 13)
    identical(_op, 16, because="reduction is new; by default nothing is reduced")
    identical(_op, 18)  # the reductions max and min are new


@adapter_down("ScatterElements", 11)
def scatter_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """ScatterElements was called Scatter, and its indices counted from the front."""
    data, indices, updates = node.input
    axis = axis_from_front(node, ctx, data, 0)
    inputs = [data, from_front(ctx, indices, data, axis), updates]
    return [ctx.changed(node, op="Scatter", inputs=inputs, axis=axis)]


@adapter_down("ScatterND", 11)
def scatter_nd_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Scatter into the flattened data, where the shape of its slices is fixed."""
    data, indices, updates = node.input
    depth = _depth(ctx, indices)
    size = prod(static_dims(ctx, data, "ScatterND", depth))
    dims = ctx.dims_of(data) or ()
    places, flat = in_flat_rows(ctx, indices, data, depth), ctx.whole([-1], "flat")
    column = ctx.op("Reshape", places, ctx.whole([-1, 1], "column"))
    if size != 1:
        scaled = ctx.op("Mul", column, ctx.whole(size, "slice_size"))
        column = ctx.op("Add", scaled, ctx.whole(np.arange(size), "in_slice"))
    at_places = ctx.op("Reshape", column, flat)
    taken = [ctx.op("Reshape", tensor, flat) for tensor in (data, updates)]
    scattered = ctx.op("Scatter", taken[0], at_places, taken[1], axis=0)
    static = [dim for dim in dims if isinstance(dim, int)]
    known = len(static) == len(dims)
    shape = ctx.whole(static, "shape") if known else ctx.op("Shape", data)
    return [ctx.changed(node, op="Reshape", inputs=[scattered, shape])]


refusal_down("Scatter", 11, "invalid-node", "from opset 11 on Scatter is called ScatterElements")
refusal_down("Scatter", 9, "no-equivalent", "before opset 9 no op writes to places in a tensor")

# -- OneHot --------------------------------------------------------------------------------

identical("OneHot", 11)  # negative indices are new: version 9 asks for non-negative ones
identical("OneHot", 28)


@adapter_down("OneHot", 11)
def one_hot_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Indices that count from the back come to count from the front; what is out of range stays
    so."""
    indices, depth, values = node.input
    axis = ctx.attribute(node, "axis", -1)
    axis = axis if axis == -1 else axis_from_front(node, ctx, indices, -1, more=1)
    known = ctx.constant(indices)
    if known is not None and (known >= 0).all():
        return [ctx.changed(node, axis=axis)]
    numbers = ctx.op("Cast", indices, to=TensorProto.INT64)
    size = ctx.op("Cast", depth, to=TensorProto.INT64)
    size = ctx.op("Reshape", size, ctx.whole([1], "one_number"))
    once = plus_where_negative(ctx, numbers, size, TensorProto.INT64)
    negative = ctx.op("Cast", is_negative(ctx, once, TensorProto.INT64), to=TensorProto.INT64)
    beyond = ctx.op("Mul", negative, ctx.op("Sub", size, once))
    counted = ctx.op("Add", once, beyond)
    if ctx.known_rank(indices) == 0:
        counted = spelling.squeeze(ctx, counted, 0)
    if ctx.known_elem_type(indices) != TensorProto.INT64:  # onnxruntime lacks some combinations
        counted = ctx.op("Cast", counted, to=ctx.known_elem_type(indices))
    return [ctx.changed(node, inputs=[counted, depth, values], axis=axis)]


@adapter_down("OneHot", 9)
def one_hot_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Off and on are gathered by whether an index equals a place, where the depth is fixed."""
    indices, depth, values = node.input
    size = ctx.constant(depth)
    if size is None:
        raise ctx.refused("not-constant", f"before opset 9 the depth {depth!r} must be fixed")
    rank = ctx.known_rank(indices)
    axis = axis_from_front(node, ctx, indices, -1, more=1)
    numbers = ctx.op("Cast", indices, to=TensorProto.INT64)
    column = spelling.unsqueeze(ctx, numbers, axis)
    places = np.arange(int(size.flat[0])).reshape([-1] + [1] * (rank - axis))
    equal = ctx.op("Equal", column, ctx.whole(places, "places"))
    chosen = ctx.op("Cast", equal, to=TensorProto.INT64)
    return [ctx.changed(node, op="Gather", inputs=[values, chosen], axis=0)]


# -- finding and choosing ------------------------------------------------------------------

identical("NonZero", 13)
identical("Compress", 11)  # a negative axis is new
identical("Compress", 28)
identical("Unique", 28)
identical("ReverseSequence", 28)
identical(
    "NonMaxSuppression", 11
)  # "strictly greater" is now specified, and was the behaviour before

for _op, _version, _does in (
    ("NonZero", 9, "tells where a tensor is not zero"),
    ("NonMaxSuppression", 10, "suppresses boxes that overlap"),
    ("Unique", 11, "finds what is unique"),
):
    refusal_down(_op, _version, "no-equivalent", f"before opset {_version} no op {_does}")


@adapter_down("Compress", 11)
def compress_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A negative axis is counted from the front."""
    axis = ctx.attribute(node, "axis")
    if axis is None or axis >= 0:
        return [node]
    return [ctx.changed(node, axis=axis_from_front(node, ctx, node.input[0], 0))]


@adapter_down("Compress", 9)
def compress_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Gather, where it is fixed what is chosen."""
    data, condition = node.input
    chosen = ctx.constant(condition)
    if chosen is None:
        sentence = f"before opset 9 what {condition!r} chooses must be fixed"
        raise ctx.refused("not-constant", sentence)
    places = ctx.whole(np.flatnonzero(chosen), "places")
    axis = ctx.attribute(node, "axis")
    if axis is None:
        data = ctx.op("Reshape", data, ctx.whole([-1], "flat"))
    return [ctx.changed(node, op="Gather", inputs=[data, places], axis=axis or 0)]


@adapter_down("ReverseSequence", 10)
def reverse_sequence_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A Gather from data whose time and batch axes are one, where both sizes are fixed."""
    data, lengths = node.input
    batch_axis, time_axis = (ctx.attribute(node, name, k) for name, k in _REVERSED_AXES)
    shape = static_dims(ctx, data, "ReverseSequence", 0, 2)
    batch, time = shape[batch_axis], shape[time_axis]
    steps, rows = np.arange(time), np.arange(batch)
    steps, rows = (steps[:, None], rows) if time_axis == 0 else (steps, rows[:, None])
    if batch_axis == 0:
        lengths = spelling.unsqueeze(ctx, lengths, 1)
    # the last of those in front of the length is 0 steps away from its end
    left = ctx.op("Sub", lengths, ctx.whole(steps + 1, "steps"))
    stays = ctx.op("Cast", is_negative(ctx, left, TensorProto.INT64), to=TensorProto.INT64)
    moved = ctx.op("Sub", ctx.whole(1, "one"), stays)
    kept = ctx.op("Mul", stays, ctx.whole(steps, "own_step"))
    source = ctx.op("Add", kept, ctx.op("Mul", moved, left))
    stride, own = (batch, rows) if time_axis == 0 else (1, rows * time)
    flat = ctx.op("Mul", source, ctx.whole(stride, "stride"))
    flat = ctx.op("Add", flat, ctx.whole(own, "own_row"))
    tail = (ctx.dims_of(data) or ())[2:]
    if sum(not isinstance(dim, int) for dim in tail) > 1:
        raise ctx.refused("unknown-rank", f"ReverseSequence depends on the shape of {data!r}")
    sizes = [batch * time, *(dim if isinstance(dim, int) else -1 for dim in tail)]
    merged = ctx.op("Reshape", data, ctx.whole(sizes, "rows"))
    return [ctx.changed(node, op="Gather", inputs=[merged, flat], without=_AXES_NAMES, axis=0)]


_REVERSED_AXES = (("batch_axis", 1), ("time_axis", 0))
_AXES_NAMES = [name for name, _ in _REVERSED_AXES]


# -- Trilu ---------------------------------------------------------------------------------


@adapter_down("Trilu", 14)
def trilu_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Zeros where the distance of column and row requires them."""
    x, k = [*node.input, ""][:2]
    rank = ctx.known_rank(x)
    zero = ctx.number(0, ctx.known_elem_type(x))
    upper = bool(ctx.attribute(node, "upper", 1))
    dims = [dim for dim in (ctx.dims_of(x) or ())[-2:] if isinstance(dim, int)]
    shift = ctx.constant(k) if k else np.array(0)
    if len(dims) == 2 and prod(dims) <= _SMALL:
        rows, columns = (np.arange(dim) for dim in dims)
        distances = columns - rows[:, None]
        if shift is not None:
            limit = int(shift.flat[0])
            keeps = ctx.value(distances >= limit if upper else distances <= limit, "keeps")
        else:
            keeps = _keeps(ctx, ctx.whole(distances, "distances"), k, upper=upper)
    else:
        ends = [spelling.scalar_size(ctx, x, rank - back) for back in (2, 1)]
        row, column = (spelling.count_to(ctx, end) for end in ends)
        row = ctx.op("Reshape", row, ctx.whole([-1, 1]))
        distance = ctx.op("Sub", column, row)
        keeps = _keeps(ctx, distance, k or ctx.whole(0), upper=upper)
    return [ctx.changed(node, op="Where", inputs=[keeps, x, zero], without=["upper"])]


def _keeps(ctx: Conversion, distance: str, limit: str, *, upper: bool) -> str:
    return ctx.op("Not", ctx.op("Less" if upper else "Greater", distance, limit))


#: So many elements a mask has at most that is written out.
_SMALL = 1 << 16
