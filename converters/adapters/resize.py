"""Steps of ops that sample a tensor on another grid: Upsample, Resize, GridSample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.converters.steps import adapter, adapter_down, identical, refusal_down
from passes.converters.writing.conversion import Conversion
from passes.converters.writing.grid_sample import gathered
from passes.converters.writing.sampling import fixed_input, is_replicating, sampled
from passes.ir.attributes import text
from passes.ir.operators import op_of
from passes.writing import spelling


@adapter("Upsample", 9)
def upsample_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `scales` becomes the second input, a float tensor (r)."""
    scales = ctx.attribute_as_input(node, "scales", np.float32)
    return [ctx.changed(node, inputs=[node.input[0], scales], without=["scales"])]


@adapter_down("Upsample", 9)
def upsample_8(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The scales, which are fixed, become an attribute."""
    scales = ctx.fixed(node, 1, "scales")
    assert scales is not None  # it cannot be left out
    return [ctx.changed(node, inputs=node.input[:1], scales=scales.tolist())]


refusal_down("Upsample", 10, "invalid-node", "Upsample is deprecated from opset 10 on")


@adapter("Upsample", 10)
def upsample_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Upsample is deprecated: Resize-10 does the same, and shrinks too."""
    return [ctx.changed(node, op="Resize")]


@adapter_down("Resize", 10)
def resize_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes an Upsample where no axis shrinks; else elements are picked and weighted."""
    scales = ctx.constant(node.input[1])
    if scales is not None and np.all(scales >= 1):
        return [ctx.changed(node, op="Upsample")]
    nearest = ctx.attribute(node, "mode", "nearest") == "nearest"
    if nearest and scales is not None and np.any(scales > 1):
        raise ctx.refused("no-equivalent", "Upsample-9 does not shrink, and other axes grow")
    resized = ctx.changed(
        node,
        inputs=[node.input[0], "", node.input[1]],
        coordinate_transformation_mode="asymmetric",
        nearest_mode="ceil",
    )
    return sampled(resized, ctx)


@adapter("Resize", 11)
def resize_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Attributes choose which positions of x are read; version 10 has one way and no attribute.

    That of onnxruntime, which onnx's tests of version 10 agree with: position i of the output
    reads i / scale ("asymmetric"); `nearest` rounds up along axes that shrink, and down along
    the others. Version 11 rounds all axes alike, so where both kinds may be there, it takes two.
    """
    x, scales = node.input
    roi = "" if ctx.site.target >= 13 else ctx.value(np.zeros(0, np.float32), "roi")
    rounding = None if _is_linear(node) else _rounding_of_all(scales, ctx)
    if _is_linear(node) or rounding or ctx.attribute(node, "mode", "nearest") != "nearest":
        return [
            ctx.changed(
                node,
                inputs=[x, roi, scales],
                coordinate_transformation_mode="asymmetric",
                nearest_mode=rounding,
            )
        ]
    return _shrink_then_grow(node, roi, ctx)


@adapter_down("Resize", 11, exact=False)
def resize_10(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Version 10 reads position i / scale; other positions of known sizes are selected by Gather.

    With `nearest` it rounds down along the axes that grow, and up along those that shrink.
    Several ways to say which position is read come to the same where the scales are whole numbers.
    """
    x, _, scales, sizes = [*node.input, ""][:4]
    if sizes and ctx.dims_of(sizes) != (0,):
        return sampled(node, ctx)
    if is_replicating(node, ctx) or (
        ctx.attribute(node, "mode", "nearest") == "linear"
        and ctx.attribute(node, "coordinate_transformation_mode", "half_pixel") == "asymmetric"
    ):
        return [ctx.changed(node, inputs=[x, scales], without=_SINCE_11)]
    return sampled(node, ctx)


_SINCE_11 = (
    "coordinate_transformation_mode",
    "cubic_coeff_a",
    "exclude_outside",
    "extrapolation_value",
    "nearest_mode",
)


def _is_linear(node: NodeProto) -> bool:
    return text(node, "mode", "") == "linear"


def _rounding_of_all(scales: str, ctx: Conversion) -> str | None:
    """The nearest_mode that is right along every axis, None where there is none for sure."""
    if op_of(ctx.site.node) == "Upsample":
        return "floor"  # its scales are 1 or more
    known = ctx.constant(scales)
    if known is None:
        return None
    if np.all(known >= 1):
        return "floor"
    return "ceil" if np.all(known <= 1) else None


def _shrink_then_grow(node: NodeProto, roi: str, ctx: Conversion) -> Sequence[NodeProto]:
    """Two nodes: the axes that shrink, rounding up, then the others, rounding down.

    Where no axis changes its size, onnxruntime copies, whatever the scales (4 * 1.2 is 4). So
    that the second does not copy where the node did not, an axis in front doubles where some
    axis shrinks; half of it is dropped.
    """
    x, scales = node.input
    one, two = (ctx.value(np.array([n], np.float32), name) for n, name in ((1, "one"), (2, "two")))
    smaller, larger = ctx.op("Min", scales, one), ctx.op("Max", scales, one)
    asymmetric = {_COORDINATES: "asymmetric"}
    shrunk = ctx.op("Resize", x, roi, smaller, mode="nearest", nearest_mode="ceil", **asymmetric)
    above = ctx.op("Sub", two, ctx.op("ReduceMin", smaller, keepdims=1))
    front = ctx.op("Ceil", above)  # 2, but 1 where nothing shrinks
    all_scales = ctx.op("Concat", front, larger, axis=0)
    inputs = [spelling.unsqueeze(ctx, shrunk, 0), roi, all_scales]
    wrapped = ctx.copy(node, *inputs, nearest_mode="floor", **asymmetric)
    return ctx.last(node, "Gather", wrapped, ctx.whole(0, "first"))


#: What `nearest` reads of position p + 0.5, as what it reads of p: floor(p + 0.5) is p rounded
#: half up, and p + 0.5 rounded half down is ceil(p).
_HALF_PIXEL_FURTHER = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}


@adapter("Resize", 13)
def resize_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Of `scales` and `sizes` just one is given; "tf_half_pixel_for_nn" is gone.

    Version 11 wants an empty `scales` beside `sizes`. "tf_half_pixel_for_nn" reads position
    (i + 0.5) / scale, "half_pixel" half a pixel before.
    """
    x, roi, scales, sizes = [*node.input, ""][:4]
    if ctx.dims_of(sizes) == (0,):
        sizes = ""  # empty, so not given
    elif sizes:
        scales = ""  # empty, or the node is not valid
    inputs = [x, roi, scales, sizes] if sizes else [x, roi, scales]
    mode = "coordinate_transformation_mode"
    if ctx.attribute(node, mode) != "tf_half_pixel_for_nn":
        return [node] if inputs == list(node.input) else [ctx.changed(node, inputs=inputs)]
    rounding = ctx.attribute(node, "nearest_mode", "round_prefer_floor")
    nearest = ctx.attribute(node, "mode", "nearest") == "nearest"
    if not nearest or rounding not in _HALF_PIXEL_FURTHER:
        raise ctx.refused(
            "no-equivalent",
            f"Resize-13 has no 'tf_half_pixel_for_nn', and with nearest_mode {rounding!r} or "
            "another mode than 'nearest' no other coordinates read the same",
        )
    further = _HALF_PIXEL_FURTHER[rounding]
    return [ctx.changed(node, inputs=inputs, **{mode: "half_pixel"}, nearest_mode=further)]


@adapter_down("Resize", 13)
def resize_12(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Omitted inputs, roi and scales, become empty ones."""
    x, roi, scales, sizes = [*node.input, "", "", ""][:4]
    empty = ctx.value(np.zeros(0, np.float32), "empty")
    return [ctx.changed(node, inputs=[x, roi or empty, scales or empty, *[sizes] * bool(sizes)])]


identical(
    "Resize", 18, because="antialias, axes and keep_aspect_ratio_policy are new, off by default"
)


@adapter_down("Resize", 18)
def resize_17(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Scales and sizes are given for all axes, for those that are not named 1 and that of x."""
    x, roi, scales, sizes = [*node.input, "", "", ""][:4]
    if ctx.attribute(node, "antialias", 0):
        fixed = ctx.constant(scales)
        if fixed is None or not _is_linear(node) or np.any(fixed < 1):
            raise ctx.refused(
                "no-equivalent",
                "Resize has antialias = 1, which came with opset 18, and may shrink an axis",
            )
    axes = ctx.attribute(node, "axes")
    rank = ctx.known_rank(x) if axes or _keeps_ratio(node, ctx, sizes) else 0
    if _keeps_ratio(node, ctx, sizes):
        sizes = _adjusted_sizes(node, ctx, axes or list(range(rank)))
    if axes is not None:
        named = [axis % rank for axis in axes]
        ones, zeros = np.ones(rank, np.float32), np.zeros(rank, np.float32)
        if scales:
            scales = _for_all_axes(scales, named, ones.tolist(), ctx)
        if sizes:
            sizes = _for_all_axes(sizes, named, ctx.dims_of(x) or (), ctx, of=x)
        if roi and ctx.attribute(node, _COORDINATES) == "tf_crop_and_resize":
            count = len(named)
            starts = spelling.part(ctx, roi, 0, 0, count)
            ends = spelling.part(ctx, roi, 0, count, 2 * count)
            starts = _for_all_axes(starts, named, zeros.tolist(), ctx)
            roi = ctx.op("Concat", starts, _for_all_axes(ends, named, ones.tolist(), ctx), axis=0)
        else:
            roi = ""
    inputs = [x, roi, scales, *[sizes] * bool(sizes)]
    gone = ["antialias", "axes", "keep_aspect_ratio_policy"]
    return [ctx.changed(node, inputs=inputs, without=gone)]


def _for_all_axes(
    given: str, named: Sequence[int], others: Sequence[Any], ctx: Conversion, of: str = ""
) -> str:
    """Return values given for the named axes, completed by those of the `others`: the shape `of` a
    value, which may be unknown, or numbers."""
    fixed = ctx.constant(given)
    if fixed is not None and all(isinstance(one, int | float) for one in others):
        full = np.array(others, fixed.dtype)
        full[list(named)] = fixed
        return ctx.value(full, "of_all_axes")
    rank = len(others)
    place = [rank + named.index(axis) if axis in named else axis for axis in range(rank)]
    behind = ctx.op("Shape", of) if of else ctx.value(np.array(others, np.float32), "others")
    both = ctx.op("Concat", behind, given, axis=0)
    return ctx.op("Gather", both, ctx.ints(*place), axis=0)


_COORDINATES = "coordinate_transformation_mode"


def _keeps_ratio(node: NodeProto, ctx: Conversion, sizes: str) -> bool:
    return bool(sizes) and ctx.attribute(node, "keep_aspect_ratio_policy", "stretch") != "stretch"


def _adjusted_sizes(node: NodeProto, ctx: Conversion, axes: Sequence[int]) -> str:
    """The sizes that keep the aspect ratio, where they do so to the pixel."""
    wanted, dims = fixed_input(node, ctx, 3), ctx.dims_of(node.input[0]) or ()
    known = [dims[axis] for axis in axes]
    if not all(isinstance(dim, int) and dim > 0 for dim in known):
        raise ctx.refused("unknown-rank", f"the sizes of {node.input[0]!r} are not known: {dims}")
    own = np.array(known, np.float64)
    larger = ctx.attribute(node, "keep_aspect_ratio_policy") == "not_smaller"
    scale = (np.max if larger else np.min)(wanted / own)
    adjusted = np.floor(scale * own + 0.5)
    if np.any(np.abs(adjusted - scale * own) > 1e-9):
        raise ctx.refused("no-equivalent", "Resize-13 takes no scales beside the sizes")
    return ctx.value(adjusted.astype(np.int64), "sizes")


identical("Resize", 19)  # one more coordinate mode


@adapter_down("Resize", 19, exact=False)
def resize_18(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """ "half_pixel_symmetric" is "half_pixel" where a size times its scale is a whole number."""
    _, _, scales, sizes = [*node.input, "", "", ""][:4]
    if ctx.attribute(node, _COORDINATES) != "half_pixel_symmetric":
        return [node]
    if sizes and not _keeps_ratio(node, ctx, sizes):
        return [ctx.changed(node, **{_COORDINATES: "half_pixel"})]
    fixed = ctx.constant(scales)
    if fixed is not None and np.all(fixed == np.floor(fixed)):
        return [ctx.changed(node, **{_COORDINATES: "half_pixel"})]
    if any(one.name in ("axes", "antialias") or one.s == b"not_larger" for one in node.attribute):
        raise ctx.refused("no-equivalent", "Resize-18 has no 'half_pixel_symmetric'")
    return sampled(node, ctx)


@adapter("GridSample", 20)
def grid_sample_20(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The modes "bilinear" (the default) and "bicubic" are called "linear" and "cubic"."""
    named = {"bilinear": "linear", "bicubic": "cubic"}
    mode = ctx.attribute(node, "mode")
    return [ctx.changed(node, mode=named[mode])] if mode in named else [node]


_IMAGE = 4  # axes, of which two are spatial


@adapter_down("GridSample", 16, exact=False)
def grid_sample_15(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The neighbours of each place of the grid are read by Gather, and weighted."""
    return gathered(node, ctx)


@adapter_down("GridSample", 20, exact=False)
def grid_sample_19(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The modes "linear" (the default) and "cubic" are called "bilinear" and "bicubic".

    Version 16 takes images only: others become Gather.
    """
    if ctx.known_rank(node.input[0]) != _IMAGE:
        return gathered(node, ctx)
    named = {"linear": "bilinear", "cubic": "bicubic"}
    mode = ctx.attribute(node, "mode", "linear")
    return [ctx.changed(node, mode=named.get(mode, mode))]


identical("GridSample", 22)
