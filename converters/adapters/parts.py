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
    ints_as_attribute,
    ints_as_input,
    non_negative,
)
from passes.converters.writing.conversion import OLD_FLOATS, Conversion, through_float
from passes.ir.versions import HAS_COMPRESS, SLICE_HAS_INPUTS


@adapter("Slice", 10)
def slice_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attributes `starts`, `ends` and `axes` become inputs, int64 (n).

    Axes are always given: without them Slice-1 cuts the first n, Slice-10 all of them.
    """
    starts, ends = (ctx.attribute_as_input(node, name, np.int64) for name in ("starts", "ends"))
    axes, counting = _axes(node, ctx, starts)
    main = ctx.changed(
        node, inputs=[node.input[0], starts, ends, axes], without=["starts", "ends", "axes"]
    )
    return [*counting, main]


def _axes(node: NodeProto, ctx: Conversion, starts: str) -> tuple[str, list[NodeProto]]:
    """The axes to cut, by default the first ones; and the nodes that count them."""
    if ctx.refers(node, "axes") or ctx.attribute(node, "axes") is not None:
        return ctx.attribute_as_input(node, "axes", np.int64), []
    if not ctx.refers(node, "starts"):
        first_axes = np.arange(len(ctx.attribute(node, "starts", [])), dtype=np.int64)
        return ctx.value(first_axes, "axes"), []
    first, step = (ctx.value(np.array(one, np.int64), "number") for one in (0, 1))
    count = ctx.node("Size", [starts])
    axes = ctx.later(11).node("Range", [first, count.output[0], step])
    return axes.output[0], [count, axes]


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
        return [ctx.changed(node, inputs=[x, starts, ends, counted, *more[1:]])]
    dtype = helper.tensor_dtype_to_np_dtype(ctx.known_elem_type(more[0]))
    axes_10 = ctx.node("Mod", [more[0], ctx.value(rank.astype(dtype), "rank")])
    return [axes_10, ctx.changed(node, inputs=[x, starts, ends, *axes_10.output, *more[1:]])]


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
    made: list[NodeProto] = []
    plain: dict[str, Any] = {"starts": [], "ends": [], "axes": []}
    for place, (axis, step) in enumerate(zip(axes.tolist(), steps.tolist(), strict=True)):
        known = [int(values[place]) for values in limits if values is not None]
        dims = ctx.dims_of(x)
        size = None if dims is None else dims[axis]
        if len(known) == len(limits) and step == 1:
            for name, number in zip(plain, (*known, axis), strict=True):
                plain[name].append(number)
            continue
        if len(known) == len(limits) and isinstance(size, int):
            places = ctx.value(_places(known[0], known[1], step, size), "places")
            made.append(ctx.node("Gather", [x, places], axis=axis))
        elif ctx.site.target >= HAS_COMPRESS:
            made += _cut_at_run_time(node, ctx, x, place, axis, step)
        else:
            raise ctx.refused("unknown-rank", f"the size of axis {axis} of {x!r} is not known")
        x = made[-1].output[0]
    if made and not plain["axes"]:
        return _ending(made, node, ctx)
    return [*made, ctx.changed(node, inputs=[x], **plain)]


def _places(start: int, end: int, step: int, size: int) -> npt.NDArray[np.int64]:
    """What a step other than 1 keeps of an axis."""
    least, most = (-1, size - 1) if step < 0 else (0, size)
    first = min(max(start + size * (start < 0), 0), most)
    last = min(max(end + size * (end < 0), least), most)
    return np.arange(first, last, step)


def _cut_at_run_time(
    node: NodeProto, ctx: Conversion, x: str, place: int, axis: int, step: int
) -> list[NodeProto]:
    """Nodes of opset 9 that keep of one axis of `x` what lies between two limits of a Slice."""
    made: list[NodeProto] = []

    def then(op: str, *inputs: str, **attributes: Any) -> str:
        made.append(ctx.node(op, inputs, **attributes))
        return made[-1].output[0]

    def vector(number: int) -> str:
        return ctx.value(np.array([number]), "number")

    def counted(count: str) -> str:
        one = helper.make_tensor("value", TensorProto.INT64, [1], [1])
        return then("Squeeze", then("NonZero", then("ConstantOfShape", count, value=one)), axes=[0])

    zero = vector(0)
    size = then("Gather", then("Shape", x), vector(axis), axis=0)
    places = counted(size)
    limits = []
    for name in node.input[1:3]:
        limit = then("Cast", then("Gather", name, vector(place), axis=0), to=TensorProto.INT64)
        limits.append(then("Where", then("Less", limit, zero), then("Add", limit, size), limit))
    start, end = limits
    if step > 0:
        kept = then("And", then("Not", then("Less", places, start)), then("Less", places, end))
    else:
        start = then("Where", then("Less", start, zero), zero, start)
        kept = then("And", then("Not", then("Less", start, places)), then("Less", end, places))
    if step == 1:
        then("Compress", x, kept, axis=axis)
        return made
    places = then("Compress", places, kept, axis=0)
    count, each = then("Shape", places), vector(abs(step))
    steps = then("Div", then("Add", count, vector(abs(step) - 1)), each)
    chosen = then("Mul", counted(steps), each)
    if step < 0:
        chosen = then("Sub", then("Sub", count, vector(1)), chosen)
    then("Gather", x, then("Gather", places, chosen, axis=0), axis=axis)
    return made


def _ending(made: list[NodeProto], node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Nodes of which the last one gives what `node` gave."""
    return [*made[:-1], ctx.changed(made[-1], outputs=node.output)]


identical("Split", 11)  # a negative axis is new


@adapter_down("Split", 11)
def split_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """A negative axis is counted from the front."""
    return [non_negative(node, ctx, "axis", node.input[0])]


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
    made = []
    start = zero = ctx.value(np.zeros(1, np.int64), "start")
    axis = ctx.value(np.array([ctx.attribute(node, "axis", 0)]), "axis")
    for place, output in enumerate(node.output):
        limits = [ctx.value(np.array([one]), "place") for one in (place, place + 1)]
        size = ctx.node("Slice", [sizes[0], *limits, zero])
        end = ctx.node("Add", [start, *size.output])
        made += [size, end]
        if output:
            made.append(ctx.node("Slice", [x, start, *end.output, axis], [output]))
        start = end.output[0]
    return made


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
        sizes = ctx.value(np.diff(np.minimum(each * np.arange(count + 1), size)), "split")
        return [ctx.changed(equal, inputs=[x, sizes])]
    shape = ctx.node("Shape", [x])
    whole = ctx.node("Gather", [*shape.output, ctx.value(np.array([axis]), "axis")], axis=0)
    parts, most = (ctx.value(np.array([number]), "parts") for number in (count, count - 1))
    more = ctx.node("Add", [*whole.output, most])
    each_size = ctx.node("Div", [*more.output, parts])
    other = ctx.node("Mul", [*each_size.output, most])
    last_size = ctx.node("Sub", [*whole.output, *other.output])
    computed = ctx.node("Concat", [*[*each_size.output] * (count - 1), *last_size.output], axis=0)
    made = [shape, whole, more, each_size, other, last_size, computed]
    return [*made, ctx.changed(equal, inputs=[x, *computed.output])]


identical("SplitToSequence", 24)


@adapter("Pad", 11)
def pad_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attributes `pads` and `value` become inputs, int64 (2r) and a scalar of the input's type.

    A value of 0 is left out, as is one that the mode does not use.
    """
    pads = ctx.attribute_as_input(node, "pads", np.int64)
    value, made = _padding(node, ctx)
    main = ctx.changed(node, inputs=[node.input[0], pads, *value], without=["pads", "value"])
    return [*made, main]


def _padding(node: NodeProto, ctx: Conversion) -> tuple[list[str], list[NodeProto]]:
    mode = "constant" if ctx.refers(node, "mode") else ctx.attribute(node, "mode", "constant")
    if mode != "constant":
        return [], []
    if not ctx.refers(node, "value"):
        value = np.float32(ctx.attribute(node, "value", 0.0))
        if value == 0 and not np.signbit(value):
            return [], []
    name, made = float_as_input(node, ctx, "value", node.input[0], 0.0)
    return [name], made


identical("Pad", 13, 21, 23, 24, 25)
identical("Pad", 18, because="the input axes is new and optional; without it all are padded")
identical("Pad", 19)  # the mode wrap is new


@adapter_down("Pad", 19)
def pad_18(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The mode wrap is a Gather along each axis, of places that are counted modulo its size.

    What negative pads take away goes first.
    """
    if ctx.attribute(node, "mode", "constant") != "wrap":
        return [node]
    x, pads, *more = node.input
    rank, chosen = ctx.known_rank(x), ctx.fixed(node, 3, "axes")
    axes = np.arange(rank) if chosen is None else chosen % rank
    known, zero = ctx.constant(pads), ctx.value(np.zeros(1, np.int64), "zero")
    made: list[NodeProto] = []
    if known is None:
        negative = ctx.node("Less", [pads, zero])
        cut = ctx.node("Where", [*negative.output, pads, zero])
        grown = ctx.node("Where", [*negative.output, zero, pads])
        made = [negative, cut, grown, ctx.node("Pad", [x, *cut.output, "", *more[1:]])]
        x, pads = made[-1].output[0], grown.output[0]
    elif (known < 0).any():
        cut_off = ctx.value(np.minimum(known, 0), "cut")
        made = [ctx.node("Pad", [x, cut_off, "", *more[1:]])]
        x, known = made[-1].output[0], np.maximum(known, 0)
        pads = ctx.value(known, "pads")
    dims, source = ctx.dims_of(x), x
    for place, axis in enumerate(axes.tolist()):
        size = dims[axis] if dims is not None else None
        if known is not None and isinstance(size, int):
            before, after = known.tolist()[place :: len(axes)]
            places = ctx.value(np.arange(-before, size + after) % max(size, 1), "places")
        else:
            made += _wrapped(source, pads, place, place + len(axes), axis, ctx)
            places = made[-1].output[0]
        made.append(ctx.node("Gather", [x, places], axis=axis))
        x = made[-1].output[0]
    return _ending(made, node, ctx) if made else [ctx.changed(node, op="Identity", inputs=[x])]


def _wrapped(
    x: str, pads: str, before: int, after: int, axis: int, ctx: Conversion
) -> list[NodeProto]:
    """Nodes that compute the places along an axis that is padded by two of the `pads`."""
    shape = ctx.node("Shape", [x])
    size, first, more = (
        ctx.node("Gather", [of, ctx.value(np.array(place), "place")], axis=0)
        for of, place in ((shape.output[0], axis), (pads, before), (pads, after))
    )
    start = ctx.node("Neg", first.output)
    end = ctx.node("Add", [*size.output, *more.output])
    counted = ctx.node("Range", [*start.output, *end.output, ctx.value(np.array(1), "one")])
    places = ctx.node("Mod", [*counted.output, *size.output])
    return [shape, size, first, more, start, end, counted, places]


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
    axes_64 = ctx.node("Cast", [more[1]], to=TensorProto.INT64)
    size = ctx.value(np.array([rank]), "rank")
    start = ctx.node("Mod", [*axes_64.output, size])
    end = ctx.node("Add", [*start.output, size])
    places = ctx.node("Concat", [*start.output, *end.output], axis=0)
    whole = ctx.node("ScatterElements", [ctx.value(every, "pads"), *places.output, pads])
    made = [axes_64, start, end, places, whole]
    return [*made, ctx.changed(node, inputs=[x, *whole.output, more[0]])]


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
