"""Steps of convolutions and pooling ops."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto, defs

from passes.converters.steps import adapter, adapter_down, identical, refusal_down
from passes.converters.writing.conversion import Conversion
from passes.ir.operators import op_of

identical("Conv", 11, 22)

# The formula in the document of ConvTranspose-1 pads more at the beginning for SAME_UPPER;
# its own text on auto_pad, onnxruntime, and version 11 say at the end.
identical("ConvTranspose", 11, 22)

identical("DeformConv", 22)
refusal_down(
    "DeformConv", 19, "no-equivalent", "no older op convolves with a kernel that is deformed"
)


# The document of AveragePool-11 gives other output sizes for auto_pad than those of 10 and 19,
# and than its own text on auto_pad; onnxruntime has always computed those of 10 and 19.
identical("AveragePool", 10, because="ceil_mode is new, and 0 is what version 7 does")
identical("AveragePool", 11)
identical("AveragePool", 19, because="dilations are new, 1 by default")

identical(
    "MaxPool",
    8,
    because="storage_order only bears on the output Indices, which is new and optional",
)
identical(
    "MaxPool", 10, because="ceil_mode and dilations are new, and the defaults are what 8 does"
)
identical("MaxPool", 11, 12)


def with_pads(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Dilations of 1 go, and `ceil_mode` becomes padding at the end, where sizes are known."""
    gone = {"dilations"} if set(ctx.attribute(node, "dilations", [])) <= {1} else set()
    schema = defs.get_schema(op_of(node), ctx.version)
    if not ctx.attribute(node, "ceil_mode", 0) or "ceil_mode" in schema.attributes:
        return [ctx.changed(node, without=gone)]
    pads = _pads_instead_of_ceil(node, ctx)
    if not pads:
        return [ctx.changed(node, without={*gone, "ceil_mode"})]
    return [ctx.changed(node, without={*gone, "ceil_mode"}, pads=pads)]


def steps_and_pads(
    node: NodeProto, ctx: Conversion, count: int
) -> tuple[list[int], list[int], list[int]]:
    """The strides, dilations and pads of windows that move along `count` axes."""
    ones = [1] * count
    strides, dilations = (ctx.attribute(node, name) or ones for name in ("strides", "dilations"))
    return strides, dilations, list(ctx.attribute(node, "pads") or [0] * 2 * count)


def _pads_instead_of_ceil(node: NodeProto, ctx: Conversion) -> list[int]:
    """Padding with which as many windows fit as `ceil_mode` allows; none where it adds none.

    The last window may reach beyond the padding, but may not begin there. What it finds there
    counts for nothing, unless the average is to include the padding.
    """
    if ctx.attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", ""):
        raise ctx.refused("no-equivalent", f"{op_of(node)} has ceil_mode = 1 beside auto_pad")
    dims = (ctx.dims_of(node.input[0]) or ())[2:]
    kernel = ctx.attribute(node, "kernel_shape")
    count = len(kernel)
    strides, dilations, pads = steps_and_pads(node, ctx, count)
    more = False
    for axis in range(count):
        size = dims[axis] if axis < len(dims) else None
        if not isinstance(size, int):
            raise ctx.refused(
                "unknown-rank",
                f"{op_of(node)} has ceil_mode = 1, and the sizes of {node.input[0]!r}, which tell "
                f"how much padding stands for it, are not known: {dims}",
            )
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        span = size + pads[axis] + pads[count + axis] - reach
        steps = -(-span // strides[axis])
        if steps * strides[axis] >= size + pads[axis]:
            steps -= 1
        beyond = steps * strides[axis] - span
        if beyond > 0:
            more = True
            pads[count + axis] += beyond
    if more and ctx.attribute(node, "count_include_pad", 0):
        raise ctx.refused(
            "no-equivalent",
            f"{op_of(node)} has ceil_mode = 1, and its average includes padding, but not that "
            "which would stand for it",
        )
    return pads if more else []


for _op, _versions in (("AveragePool", (10, 19)), ("LpPool", (18,)), ("MaxPool", (10,))):
    for _version in _versions:
        adapter_down(_op, _version)(with_pads)


@adapter_down("MaxPool", 8)
def max_pool_7(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """`storage_order` is removed: it affects only the output Indices, which version 1 lacks."""
    return [ctx.changed(node, without=["storage_order"])]


@adapter_down("MaxPool", 12)
def max_pool_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers of 8 bits are no longer allowed: they take the way over float and back."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type not in (TensorProto.INT8, TensorProto.UINT8):
        return [node]
    y, *indices = node.output
    wide = ctx.cast(node.input[0], elem_type, TensorProto.FLOAT)
    outputs = [ctx.fresh(f"{y}_float"), *indices]
    ctx.adopt(ctx.changed(node, inputs=[wide], outputs=outputs))
    ctx.cast(outputs[0], TensorProto.FLOAT, elem_type, [y])
    return []


identical("LpPool", 11)
identical(
    "LpPool", 18, because="ceil_mode and dilations are new, and the defaults are what 11 does"
)

# In version 22, with ceil_mode, windows that start in the right padding are left out. That such
# windows, which hold no element, are not in the output was so in onnxruntime and in onnx's
# reference before; only onnx's shape inference used to count them.
identical("AveragePool", 22)
identical("LpPool", 22)
identical("MaxPool", 22)

identical("GlobalAveragePool", 22)
identical("GlobalLpPool", 22)
identical("GlobalMaxPool", 22)
identical("MaxRoiPool", 22)
identical("MaxUnpool", 11, 22)


@adapter("RoiAlign", 16)
def roi_align_16(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Coordinates are shifted by half a pixel now, unless `coordinate_transformation_mode` forbids
    it.

    Version 10 does not move them: "output_half_pixel".
    """
    return [ctx.changed(node, coordinate_transformation_mode="output_half_pixel")]


@adapter_down("RoiAlign", 16)
def roi_align_15(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Coordinates are those of version 10 if `coordinate_transformation_mode` asks for them."""
    mode = "coordinate_transformation_mode"
    if ctx.attribute(node, mode, "half_pixel") != "output_half_pixel":
        raise ctx.refused(
            "no-equivalent",
            "RoiAlign-10 takes each region to be a pixel wide at least, where half_pixel does not",
        )
    return [ctx.changed(node, without=[mode])]


refusal_down("RoiAlign", 10, "no-equivalent", "no older op samples regions whose place is computed")
identical("RoiAlign", 22)
refusal_down("MaxUnpool", 9, "no-equivalent", "no older op puts elements at computed places")
