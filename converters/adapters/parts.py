"""Steps of ops that cut tensors into parts, and of Pad, which does the opposite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter, adapter_down, identical
from passes.converters.writing.attribute_inputs import (
    float_as_input,
    front_axis,
    ints_as_attribute,
    ints_as_input,
)
from passes.converters.writing.conversion import OLD_FLOATS, Conversion, through_float
from passes.ir.versions import HAS_COMPRESS, HAS_RANGE, SLICE_HAS_INPUTS
from passes.writing import spelling


@adapter("Slice", 10)
def slice_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attributes `starts`, `ends` and `axes` become inputs, int64 (n).

    Axes are always given: without them Slice-1 cuts the first n, Slice-10 all of them.
    """
    starts, ends = (ctx.attribute_as_input(node, name, np.int64) for name in ("starts", "ends"))
    inputs = [node.input[0], starts, ends, _axes(node, ctx, starts)]
    return [ctx.changed(node, inputs=inputs, without=["starts", "ends", "axes"])]


def _axes(node: NodeProto, ctx: Conversion, starts: str) -> str:
    """The axes to cut, by default the first ones."""
    if ctx.refers(node, "axes") or ctx.attribute(node, "axes") is not None:
        return ctx.attribute_as_input(node, "axes", np.int64)
    if not ctx.refers(node, "starts"):
        return ctx.whole(np.arange(len(ctx.attribute(node, "starts", []))), "axes")
    first, step = (ctx.whole(one, "number") for one in (0, 1))
    return ctx.later(HAS_RANGE).op("Range", first, ctx.op("Size", starts), step)


identical("Slice", 11)  # negative axes are new
identical("Slice", 13)


@adapter_down("Slice", 11)
def slice_10_down(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Negative axes are counted from the front; those of an input by Mod, when the model runs."""
    x, starts, ends, *more = node.input
    axes = ctx.constant(more[0]) if more else None
    if ctx.site.target < SLICE_HAS_INPUTS:
        axes = ctx.later(ctx.site.target).fixed(node, 3, "axes")
    if not more or not more[0] or (axes is not None and (axes >= 0).all()):
        return [node]
    rank = np.array(ctx.known_rank(x))
    if axes is not None:
        counted = ctx.value(axes % rank.astype(axes.dtype), "axes")
    else:
        dtype = helper.tensor_dtype_to_np_dtype(ctx.known_elem_type(more[0]))
        counted = ctx.op("Mod", more[0], ctx.value(rank.astype(dtype), "rank"))
    return [ctx.changed(node, inputs=[x, starts, ends, counted, *more[1:]])]


@adapter_down("Slice", 10)
def slice_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The inputs become attributes again; along an axis with a step, a Gather of what it keeps.

    Where limits or sizes are only known at run time, so are the places to keep (from opset 9 on).
    """
    x, *names = node.input
    limits = [ctx.constant(name) for name in names[:2]]
    if ctx.site.target < HAS_COMPRESS:
        limits = [ctx.fixed(node, place, name) for place, name in ((1, "starts"), (2, "ends"))]
    axes, steps = ctx.fixed(node, 3, "axes"), ctx.fixed(node, 4, "steps")
    if axes is None:
        (count,) = ctx.dims_of(names[0]) or (None,)
        if not isinstance(count, int):
            raise ctx.refused("unknown-rank", f"how many axes {names[0]!r} is for is not known")
        axes = np.arange(count)
    if (axes < 0).any():
        axes = axes % ctx.known_rank(x)
    steps = np.ones(len(axes), np.int64) if steps is None else steps
    plain: dict[str, Any] = {"starts": [], "ends": [], "axes": []}
    for place, (axis, step) in enumerate(zip(axes.tolist(), steps.tolist(), strict=True)):
        known = [int(values[place]) for values in limits if values is not None]
        dims = ctx.dims_of(x)
        size = None if dims is None else dims[axis]
        if len(known) == len(limits) and step == 1:
            for name, number in zip(plain, (*known, axis), strict=True):
                plain[name].append(number)
        elif len(known) == len(limits) and isinstance(size, int):
            places = ctx.value(_places(known[0], known[1], step, size), "places")
            x = ctx.op("Gather", x, places, axis=axis)
        elif ctx.site.target >= HAS_COMPRESS:
            x = _cut_at_run_time(node, ctx, x, place, axis, step)
        else:
            raise ctx.refused("unknown-rank", f"the size of axis {axis} of {x!r} is not known")
    if ctx.nodes and not plain["axes"]:
        return ctx.named_last(node, x)
    return [ctx.changed(node, inputs=[x], **plain)]


def _places(start: int, end: int, step: int, size: int) -> npt.NDArray[np.int64]:
    """Return the indices of an axis that a step other than 1 keeps."""
    least, most = (-1, size - 1) if step < 0 else (0, size)
    first = min(max(start + size * (start < 0), 0), most)
    last = min(max(end + size * (end < 0), least), most)
    return np.arange(first, last, step)


def _cut_at_run_time(
    node: NodeProto, ctx: Conversion, x: str, place: int, axis: int, step: int
) -> str:
    """Return the part between two limits of a Slice along one axis of `x`, by nodes of opset 9."""

    def vector(number: int) -> str:
        return ctx.whole([number], "number")

    zero = vector(0)
    size = spelling.size_of_axis(ctx, x, axis)
    places = spelling.arange(ctx, size)
    limits = []
    for name in node.input[1:3]:
        (limit,) = ctx.casts(TensorProto.INT64, ctx.op("Gather", name, vector(place), axis=0))
        limits.append(
            ctx.op("Where", ctx.op("Less", limit, zero), ctx.op("Add", limit, size), limit)
        )
    start, end = limits
    if step > 0:
        from_start = ctx.op("Not", ctx.op("Less", places, start))
        kept = ctx.op("And", from_start, ctx.op("Less", places, end))
    else:
        start = ctx.op("Where", ctx.op("Less", start, zero), zero, start)
        from_start = ctx.op("Not", ctx.op("Less", start, places))
        kept = ctx.op("And", from_start, ctx.op("Less", end, places))
    if step == 1:
        return ctx.op("Compress", x, kept, axis=axis)
    places = ctx.op("Compress", places, kept, axis=0)
    count, each = ctx.op("Shape", places), vector(abs(step))
    steps = ctx.op("Div", ctx.op("Add", count, vector(abs(step) - 1)), each)
    chosen = ctx.op("Mul", spelling.arange(ctx, steps), each)
    if step < 0:
        chosen = ctx.op("Sub", ctx.op("Sub", count, vector(1)), chosen)
    return ctx.op("Gather", x, ctx.op("Gather", places, chosen, axis=0), axis=axis)


identical("Split", 11)  # a negative axis is new


adapter_down("Split", 11)(front_axis)


@adapter("Split", 13)
def split_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `split` becomes the optional second input, int64 (n)."""
    return ints_as_input(node, ctx, "split")


@adapter_down("Split", 13)
def split_12(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The input `split` becomes an attribute again; where it is not fixed, each part is a Slice."""
    x, *sizes = node.input
    if not any(sizes) or ctx.constant(sizes[0]) is not None or ctx.site.target < HAS_COMPRESS:
        return ints_as_attribute(node, ctx, "split")
    start = ctx.whole([0], "start")
    axis = ctx.whole([ctx.attribute(node, "axis", 0)], "axis")
    for place, output in enumerate(node.output):
        end = ctx.op("Add", start, spelling.part(ctx, sizes[0], 0, place, place + 1))
        if output:
            ctx.op("Slice", x, start, end, axis, outputs=[output])
        start = end
    return []


@adapter("Split", 18)
def split_18(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Parts of equal size are counted by the new attribute `num_outputs`.

    Of an axis that they do not divide, which is an error in Split-13, the last part is smaller.
    """
    x, *sizes = node.input
    if any(sizes):
        return [node]
    return [ctx.changed(node, inputs=[x], num_outputs=len(node.output))]


@adapter_down("Split", 18)
def split_17(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Without `num_outputs` all parts are of one size; a smaller last one needs their sizes."""
    count = ctx.attribute(node, "num_outputs")
    if count is None:
        return [node]
    x = node.input[0]
    equal = ctx.changed(node, inputs=[x], without=["num_outputs"])
    axis, dims = ctx.attribute(node, "axis", 0), ctx.dims_of(x)
    size = dims[axis] if dims is not None else None
    if count == 1 or (isinstance(size, int) and size % count == 0):
        return [equal]
    if isinstance(size, int):
        each = -(-size // count)
        sizes = ctx.whole(np.diff(np.minimum(each * np.arange(count + 1), size)), "split")
        return [ctx.changed(equal, inputs=[x, sizes])]
    whole = spelling.size_of_axis(ctx, x, axis)
    parts, most = (ctx.whole([number], "parts") for number in (count, count - 1))
    each_size = ctx.op("Div", ctx.op("Add", whole, most), parts)
    last_size = ctx.op("Sub", whole, ctx.op("Mul", each_size, most))
    computed = ctx.op("Concat", *[each_size] * (count - 1), last_size, axis=0)
    return [ctx.changed(equal, inputs=[x, computed])]


identical("SplitToSequence", 24)


@adapter("Pad", 11)
def pad_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attributes `pads` and `value` become inputs, int64 (2r) and a scalar of the input's type.

    A value of 0 is left out, as is one that the mode does not use.
    """
    pads = ctx.attribute_as_input(node, "pads", np.int64)
    inputs = [node.input[0], pads, *_padding(node, ctx)]
    return [ctx.changed(node, inputs=inputs, without=["pads", "value"])]


def _padding(node: NodeProto, ctx: Conversion) -> list[str]:
    mode = "constant" if ctx.refers(node, "mode") else ctx.attribute(node, "mode", "constant")
    if mode != "constant":
        return []
    if not ctx.refers(node, "value"):
        value = np.float32(ctx.attribute(node, "value", 0.0))
        if value == 0 and not np.signbit(value):
            return []
    return [float_as_input(node, ctx, "value", node.input[0], 0.0)]


identical("Pad", 13, 21, 23, 24, 25)
identical("Pad", 18, because="the input axes is new and optional; without it all are padded")
identical("Pad", 19)  # the mode wrap is new


@adapter_down("Pad", 19)
def pad_18(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The mode wrap is a Gather along each axis, of indices modulo its size.

    Elements that negative pads remove are cut first.
    """
    if ctx.attribute(node, "mode", "constant") != "wrap":
        return [node]
    x, pads, *more = node.input
    rank, chosen = ctx.known_rank(x), ctx.fixed(node, 3, "axes")
    axes = np.arange(rank) if chosen is None else chosen % rank
    known, zero = ctx.constant(pads), ctx.whole([0], "zero")
    if known is None:
        negative = ctx.op("Less", pads, zero)
        cut, pads = ctx.op("Where", negative, pads, zero), ctx.op("Where", negative, zero, pads)
        x = ctx.op("Pad", x, cut, "", *more[1:])
    elif (known < 0).any():
        x = ctx.op("Pad", x, ctx.value(np.minimum(known, 0), "cut"), "", *more[1:])
        known = np.maximum(known, 0)
        pads = ctx.value(known, "pads")
    dims, source = ctx.dims_of(x), x
    for place, axis in enumerate(axes.tolist()):
        size = dims[axis] if dims is not None else None
        if known is not None and isinstance(size, int):
            before, after = known.tolist()[place :: len(axes)]
            places = ctx.value(np.arange(-before, size + after) % max(size, 1), "places")
        else:
            places = _wrapped(source, pads, place, place + len(axes), axis, ctx)
        x = ctx.op("Gather", x, places, axis=axis)
    return ctx.named_last(node, x)


def _wrapped(x: str, pads: str, before: int, after: int, axis: int, ctx: Conversion) -> str:
    """The places along an axis that is padded by two of the `pads`."""
    size = spelling.scalar_size(ctx, x, axis)
    first, more = (
        ctx.op("Gather", pads, ctx.whole(place, "place"), axis=0) for place in (before, after)
    )
    end = ctx.op("Add", size, more)
    counted = ctx.op("Range", ctx.op("Neg", first), end, ctx.whole(1, "one"))
    return ctx.op("Mod", counted, size)


@adapter_down("Pad", 18)
def pad_17(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Axes that are not among `axes` are padded by 0."""
    x, pads, *more = node.input
    if len(more) < 2 or not more[1]:
        return [ctx.changed(node, inputs=node.input[:3])]
    rank = ctx.known_rank(x)
    axes, known = ctx.constant(more[1]), ctx.constant(pads)
    every = np.zeros(2 * rank, np.int64)
    if axes is not None and known is not None:
        front = axes % rank
        every[[*front, *(front + rank)]] = known
        return [ctx.changed(node, inputs=[x, ctx.value(every, "pads"), more[0]])]
    (axes_64,) = ctx.casts(TensorProto.INT64, more[1])
    size = ctx.whole([rank], "rank")
    start = ctx.op("Mod", axes_64, size)
    places = ctx.op("Concat", start, ctx.op("Add", start, size), axis=0)
    whole = ctx.op("ScatterElements", ctx.value(every, "pads"), places, pads)
    return [ctx.changed(node, inputs=[x, whole, more[0]])]


#: The float types that hold what Pad-2 does not pad.
_HOLDING: dict[int, int] = {
    **dict.fromkeys((TensorProto.INT8, TensorProto.UINT8), TensorProto.FLOAT),
    **dict.fromkeys((TensorProto.INT16, TensorProto.UINT16), TensorProto.FLOAT),
    **dict.fromkeys((TensorProto.INT32, TensorProto.UINT32), TensorProto.DOUBLE),
    TensorProto.BOOL: TensorProto.FLOAT,
}


@adapter_down("Pad", 11)
def pad_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The inputs become attributes again; integers go through a float type that holds them."""
    x = node.input[0]
    elem_type = ctx.known_elem_type(x)
    if elem_type not in (*OLD_FLOATS, *_HOLDING):
        name = TensorProto.DataType.Name(elem_type).lower()
        raise ctx.refused("no-equivalent", f"Pad-2 takes no {name}, which fits into no float type")
    pads = ctx.fixed(node, 1, "pads")
    assert pads is not None
    uses_value = ctx.refers(node, "mode") or ctx.attribute(node, "mode", "constant") == "constant"
    given = ctx.fixed(node, 2, "the value") if uses_value else None
    value = None if given is None else float(given.item())
    if value is not None and not np.array_equal(np.float32(value), value, equal_nan=True):
        raise ctx.refused("no-equivalent", f"Pad-2 pads with a float, which {value} is not")
    main = ctx.changed(node, inputs=[x], pads=pads.tolist(), value=value)
    return [main] if elem_type in OLD_FLOATS else through_float(main, ctx, _HOLDING[elem_type])
