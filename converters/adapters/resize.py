"""Steps of ops that sample a tensor on another grid: Upsample, Resize, GridSample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from converters.conversion import Conversion
from converters.steps import adapter, identical
from passes.ir.operators import op_of


@adapter("Upsample", 9)
def upsample_9(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `scales` becomes the second input, a float tensor (r)."""
    scales = at.attribute_as_input(node, "scales", np.float32)
    return [at.changed(node, inputs=[node.input[0], scales], without=["scales"])]


@adapter("Upsample", 10)
def upsample_10(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Upsample is deprecated: Resize-10 does the same, and shrinks too."""
    return [at.changed(node, op="Resize")]


@adapter("Resize", 11)
def resize_11(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Attributes say which positions of x are read; version 10 has one way, which is not said.

    That of onnxruntime, which onnx's tests of version 10 agree with: position i of the output
    reads i / scale ("asymmetric"); `nearest` rounds up along axes that shrink, and down along
    the others. Version 11 rounds all axes alike, so where both kinds may be there, it takes two.
    """
    x, scales = node.input
    roi = "" if at.site.target >= 13 else at.value(np.zeros(0, np.float32), "roi")
    rounding = None if _says_linear(node) else _rounding_of_all(scales, at)
    if _says_linear(node) or rounding or at.attribute(node, "mode", "nearest") != "nearest":
        return [
            at.changed(
                node,
                inputs=[x, roi, scales],
                coordinate_transformation_mode="asymmetric",
                nearest_mode=rounding,
            )
        ]
    return _shrink_then_grow(node, roi, at)


def _says_linear(node: NodeProto) -> bool:
    return any(one.name == "mode" and one.s == b"linear" for one in node.attribute)


def _rounding_of_all(scales: str, at: Conversion) -> str | None:
    """The nearest_mode that is right along every axis, None where there is none for sure."""
    if op_of(at.site.node) == "Upsample":
        return "floor"  # its scales are 1 or more
    known = at.constant(scales)
    if known is None:
        return None
    if np.all(known >= 1):
        return "floor"
    return "ceil" if np.all(known <= 1) else None


def _shrink_then_grow(node: NodeProto, roi: str, at: Conversion) -> Sequence[NodeProto]:
    """Two nodes: the axes that shrink, rounding up, then the others, rounding down.

    Where no axis changes its size, onnxruntime copies, whatever the scales (4 * 1.2 is 4). So
    that the second does not copy where the node did not, an axis in front doubles where some
    axis shrinks; half of it is dropped.
    """
    x, scales = node.input
    one, two = (at.value(np.array([n], np.float32), name) for n, name in ((1, "one"), (2, "two")))
    smaller, larger = at.node("Min", [scales, one]), at.node("Max", [scales, one])
    asymmetric = {"coordinate_transformation_mode": "asymmetric"}
    shrunk = at.node(
        "Resize", [x, roi, smaller.output[0]], mode="nearest", nearest_mode="ceil", **asymmetric
    )
    least = at.node("ReduceMin", smaller.output, keepdims=1)
    above = at.node("Sub", [two, least.output[0]])
    front = at.node("Ceil", above.output)  # 2, but 1 where nothing shrinks
    all_scales = at.node("Concat", [front.output[0], larger.output[0]], axis=0)
    wrapped = at.node("Unsqueeze", shrunk.output, axes=[0])
    main = at.changed(
        node,
        inputs=[wrapped.output[0], roi, all_scales.output[0]],
        outputs=[at.fresh(f"{node.output[0]}_wrapped")],
        nearest_mode="floor",
        **asymmetric,
    )
    first = at.node("Gather", [main.output[0], at.value(np.array(0), "first")], [node.output[0]])
    return [smaller, larger, shrunk, least, above, front, all_scales, wrapped, main, first]


#: What `nearest` reads of position p + 0.5, as what it reads of p: floor(p + 0.5) is p rounded
#: half up, and p + 0.5 rounded half down is ceil(p).
_HALF_PIXEL_FURTHER = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}


@adapter("Resize", 13)
def resize_13(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Of `scales` and `sizes` just one is given; "tf_half_pixel_for_nn" is gone.

    Version 11 wants an empty `scales` beside `sizes`. "tf_half_pixel_for_nn" reads position
    (i + 0.5) / scale, "half_pixel" half a pixel before.
    """
    x, roi, scales, sizes = [*node.input, ""][:4]
    if at.dims_of(sizes) == (0,):
        sizes = ""  # empty, so not given
    elif sizes:
        scales = ""  # empty, or the node is not valid
    inputs = [x, roi, scales, sizes] if sizes else [x, roi, scales]
    mode = "coordinate_transformation_mode"
    if at.attribute(node, mode) != "tf_half_pixel_for_nn":
        return [node] if inputs == list(node.input) else [at.changed(node, inputs=inputs)]
    rounding = at.attribute(node, "nearest_mode", "round_prefer_floor")
    nearest = at.attribute(node, "mode", "nearest") == "nearest"
    if not nearest or rounding not in _HALF_PIXEL_FURTHER:
        raise at.refused(
            "no-equivalent",
            f"Resize-13 has no 'tf_half_pixel_for_nn', and with nearest_mode {rounding!r} or "
            "another mode than 'nearest' no other coordinates read the same",
        )
    further = _HALF_PIXEL_FURTHER[rounding]
    return [at.changed(node, inputs=inputs, **{mode: "half_pixel"}, nearest_mode=further)]


identical(
    "Resize", 18, because="antialias, axes and keep_aspect_ratio_policy are new, off by default"
)
identical("Resize", 19)  # one more coordinate mode


@adapter("GridSample", 20)
def grid_sample_20(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The modes "bilinear" (the default) and "bicubic" are called "linear" and "cubic"."""
    named = {"bilinear": "linear", "bicubic": "cubic"}
    mode = at.attribute(node, "mode")
    return [at.changed(node, mode=named[mode])] if mode in named else [node]


identical("GridSample", 22)
