"""Steps of normalization ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter, adapter_down, expanded, identical, identical_down
from passes.converters.writing.conversion import Conversion
from passes.ir.attributes import has
from passes.ir.versions import NEGATIVE_AXES, SCALES_OF_CHANNELS
from passes.writing import spelling


@adapter("BatchNormalization", 9)
def batch_normalization_9(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `spatial` is gone: what it switched off is done on a flat input.

    With `spatial = 0` scale, bias, mean and variance are (C x D1 x ... x Dn), one for each
    activation. Version 9 advises to flatten the input (N x C x D1 x ... x Dn) to
    (N x C*D1*...*Dn), of which every column is a channel. Their shape must be known: an empty
    one cannot be restored, since a 0 in Reshape-5 copies a dim.
    """
    x, scale, *_ = node.input
    if ctx.attribute(node, "spatial", 1) or ctx.known_rank(scale) == 1:
        return [ctx.changed(node, without=["spatial"])]
    if any(node.output[1:]):
        raise ctx.refused(
            "no-equivalent",
            "BatchNormalization-9 has no training outputs of the shape (C x D1 x ... x Dn)",
        )
    dims = ctx.dims_of(scale) or ()
    if not all(isinstance(dim, int) and dim > 0 for dim in dims):
        raise ctx.refused("unknown-rank", f"the shape of {scale!r} is not known, or empty: {dims}")
    one_axis = ctx.whole([-1], "one_axis")
    shape = ctx.value(np.array([0, *dims], np.int64), "shape")  # 0 keeps N
    inputs = [ctx.op("Flatten", x, axis=1)]
    inputs += [ctx.op("Reshape", name, one_axis) for name in node.input[1:]]
    flat = ctx.copy(node, *inputs, without=["spatial"])
    return [ctx.node("Reshape", [flat, shape], [node.output[0]])]


def _of_one_axis(node: NodeProto, ctx: Conversion) -> str:
    one_axis = len(ctx.dims_of(node.input[0]) or ()) == 1
    return "BatchNormalization-7 takes no input (N) without channels" if one_axis else ""


identical_down("BatchNormalization", 9, unless=_of_one_axis)


@adapter("BatchNormalization", 14)
def batch_normalization_14(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Training is asked for by `training_mode`, no longer by naming outputs; two of those go.

    Version 9 trains where outputs 2 to 5 are named: the running mean and variance, which stay,
    and the saved mean and variance of the batch, all (C). The document leaves the latter two
    open; as in onnxruntime, saved_var is sqrt(1 / (variance + epsilon)).
    """
    y, *training = node.output
    if not any(training):
        return [ctx.changed(node, outputs=[y])] if training else [node]
    mean, var, saved_mean, saved_var = [*training, "", "", ""][:4]
    outputs = [y, mean or ctx.fresh(f"{y}_mean"), var or ctx.fresh(f"{y}_var")]
    ctx.adopt(ctx.changed(node, outputs=outputs, training_mode=1))
    _saved_statistics(node, saved_mean, saved_var, ctx)
    return []


def _saved_statistics(node: NodeProto, mean: str, var: str, ctx: Conversion) -> None:
    """Mean and variance of the batch: what the running ones become when nothing else weighs."""
    if not (mean or var):
        return
    x, scale, bias, *_ = node.input
    elem_type = ctx.known_elem_type(x)
    zero = spelling.filled(ctx, spelling.shape_of(ctx, scale), elem_type, 0)
    outputs = [ctx.fresh(f"{hint}_{node.output[0]}") for hint in ("again", "mean", "variance")]
    outputs[1] = mean or outputs[1]
    inputs = [x, scale, bias, zero, zero]
    ctx.op("BatchNormalization", *inputs, outputs=outputs, momentum=0.0, training_mode=1)
    if var:
        dtype = helper.tensor_dtype_to_np_dtype(elem_type)
        epsilon = ctx.rounded(ctx.attribute(node, "epsilon", 1e-5), dtype, "epsilon")
        inverse = ctx.op("Reciprocal", ctx.op("Add", outputs[2], epsilon))
        ctx.op("Sqrt", inverse, outputs=[var])


@adapter_down("BatchNormalization", 14, exact=False)
def batch_normalization_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Training is written out: what version 9 computes of it, its document leaves open.

    The mean and variance of the batch are those over all axes of x, (N, C, D1, ..., Dn), but the
    channels; the running ones are weighted by `momentum`. What types differ become the first one.
    """
    y, *training = node.output
    elem_types = [ctx.known_elem_type(name) for name in node.input]
    if not ctx.attribute(node, "training_mode", 0):
        if any(training):
            raise ctx.refused("invalid-node", "only in training there are more outputs than one")
        if len(set(elem_types)) == 1:
            return [ctx.changed(node, without=["training_mode"], outputs=[y])]
        return _of_one_type(ctx.changed(node, without=["training_mode"], outputs=[y]), ctx)
    ctx = ctx.later(NEGATIVE_AXES)
    rank = ctx.known_rank(node.input[0])
    axes = [axis for axis in range(rank) if axis != 1]
    kind = _widest(elem_types)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    x, scale, bias, mean, var = (
        ctx.cast(name, elem_type, kind)
        for name, elem_type in zip(node.input, elem_types, strict=True)
    )

    def each_channel(name: str) -> str:
        return spelling.unsqueeze_axes(ctx, name, range(1, rank - 1))

    batch_mean = spelling.along(ctx, "ReduceMean", x, axes, keepdims=0)
    deviation = ctx.op("Sub", x, each_channel(batch_mean))
    squares = ctx.op("Mul", deviation, deviation)
    batch_var = spelling.along(ctx, "ReduceMean", squares, axes, keepdims=0)
    epsilon = ctx.rounded(ctx.attribute(node, "epsilon", 1e-5), dtype, "epsilon")
    spread = ctx.op("Sqrt", ctx.op("Add", batch_var, epsilon))
    normal = ctx.op("Div", deviation, each_channel(spread))
    scaled = ctx.op("Mul", normal, each_channel(scale))
    biased = ctx.op("Add", scaled, each_channel(bias))
    ctx.cast(biased, kind, elem_types[0], [y])
    momentum = np.float32(ctx.attribute(node, "momentum", 0.9))
    for output, before, found in zip(training, (mean, var), (batch_mean, batch_var), strict=False):
        if output:
            kept = ctx.op("Mul", before, ctx.rounded(momentum, dtype, "momentum"))
            added = ctx.op("Mul", found, ctx.rounded(1 - momentum, dtype, "momentum"))
            ctx.cast(ctx.op("Add", kept, added), kind, elem_types[3], [output])
    return []


# Scale and bias may differ from x in type. Statistics of float16 are computed in float; version
# 14 does not say in what.
identical("BatchNormalization", 15)


@adapter_down("BatchNormalization", 15, exact=False)
def batch_normalization_14_again(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Scale and bias have the type of x: where they have not, all take the widest."""
    x, scale, bias, *_ = (ctx.known_elem_type(name) for name in node.input)
    return [node] if x == scale == bias else _of_one_type(node, ctx)


def _of_one_type(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The node on inputs of the widest of their types, and its outputs in their own."""
    elem_types = [ctx.known_elem_type(name) for name in node.input]
    kind = _widest(elem_types)
    inputs = [
        ctx.cast(name, elem_type, kind)
        for name, elem_type in zip(node.input, elem_types, strict=True)
    ]
    outputs = [ctx.fresh(f"{name}_wide") if name else "" for name in node.output]
    ctx.adopt(ctx.changed(node, inputs=inputs, outputs=outputs))
    own = [elem_types[0], *elem_types[3:]]
    for wide, name, elem_type in zip(outputs, node.output, own, strict=False):
        if name:
            ctx.cast(wide, kind, elem_type, [name])
    return []


def _widest(elem_types: Sequence[int]) -> int:
    """The float type that holds what all of these hold."""
    if len(set(elem_types)) == 1:
        return elem_types[0]
    return TensorProto.DOUBLE if TensorProto.DOUBLE in elem_types else TensorProto.FLOAT


@adapter_down("LayerNormalization", 17, exact=False)
def layer_normalization_16(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is written out, the variance as the mean of the squares of deviations.

    The document's own body takes the mean of squares less the square of the mean, which loses
    digits, and reshapes, which an empty x does not allow.
    """
    x, scale, bias = [*node.input, ""][:3]
    elem_type = ctx.known_elem_type(x)
    kind = ctx.attribute(node, "stash_type", TensorProto.FLOAT)
    axes = _last_axes(node, ctx)
    y, mean, inverse = [*node.output, "", ""][:3]
    ctx = ctx.later(NEGATIVE_AXES)
    wide = ctx.cast(x, elem_type, kind)
    mean = spelling.along(ctx, "ReduceMean", wide, axes, outputs=[mean] if mean else ())
    deviation = ctx.op("Sub", wide, mean)
    spread = _root_of_mean_square(deviation, axes, kind, node, ctx)
    if inverse:
        ctx.op("Reciprocal", spread, outputs=[inverse])
    normal = ctx.cast(ctx.op("Div", deviation, spread), kind, elem_type)
    scaled = ctx.op("Mul", normal, scale, outputs=() if bias else [y])
    if bias:
        ctx.op("Add", scaled, bias, outputs=[y])
    return []


@adapter_down("RMSNormalization", 23, exact=False)
def rms_normalization_22(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is written out; the document's own body counts its axes at run time."""
    x, scale = node.input
    kind = ctx.attribute(node, "stash_type", TensorProto.FLOAT)
    axes = _last_axes(node, ctx)
    ctx = ctx.later(NEGATIVE_AXES)
    wide = ctx.cast(x, ctx.known_elem_type(x), kind)
    spread = _root_of_mean_square(wide, axes, kind, node, ctx)
    normal = ctx.cast(ctx.op("Div", wide, spread), kind, ctx.known_elem_type(scale))
    return ctx.last(node, "Mul", normal, scale)


def _last_axes(node: NodeProto, ctx: Conversion) -> list[int]:
    """The axes from `axis` on."""
    axis: int = ctx.attribute(node, "axis", -1)
    return list(range(axis, 0 if axis < 0 else ctx.known_rank(node.input[0])))


def _root_of_mean_square(
    x: str, axes: Sequence[int], kind: int, node: NodeProto, ctx: Conversion
) -> str:
    squares = spelling.along(ctx, "ReduceMean", ctx.op("Mul", x, x), axes)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    epsilon = ctx.rounded(ctx.attribute(node, "epsilon", 1e-5), dtype, "epsilon")
    return ctx.op("Sqrt", ctx.op("Add", squares, epsilon))


@adapter("GroupNormalization", 21)
def group_normalization_21(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Scale and bias are given for each channel (C), no longer for each group (num_groups).

    What they are multiplied with is now computed in `stash_type`, float by default; version 18
    computes in the type of x.
    """
    x, *parameters = node.input
    elem_type = ctx.known_elem_type(x)
    inputs = [x, *(_each_channel(name, x, ctx) for name in parameters)]
    stash_type = None if elem_type == TensorProto.FLOAT else elem_type
    return [ctx.changed(node, inputs=inputs, stash_type=stash_type)]


def _each_channel(name: str, x: str, ctx: Conversion) -> str:
    """Every element of `name`, (groups), repeated up to the channels of `x`."""
    channels, groups = (ctx.dims_of(x) or (None, None))[1], (ctx.dims_of(name) or (None,))[0]
    if isinstance(channels, int) and channels == groups:
        return name
    one, flat = (ctx.whole([size], "size") for size in (1, -1))
    if isinstance(channels, int) and isinstance(groups, int) and groups:
        shape = ctx.whole([1, channels // groups], "shape")
    else:
        count, of = ctx.op("Shape", x, start=1, end=2), ctx.op("Shape", name)
        shape = ctx.op("Concat", one, ctx.op("Div", count, of), axis=0)
    rows = ctx.op("Expand", ctx.op("Unsqueeze", name, one), shape)
    return ctx.op("Reshape", rows, flat)


def group_normalization(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It is written out, on x, (N, C, D1, ..., Dn), as (N, num_groups, C / num_groups * ...).

    Scale and bias are given for each of the groups in version 18, for each channel from 21 on.
    """
    x, scale, bias = node.input
    elem_type = ctx.known_elem_type(x)
    each_channel = ctx.version == SCALES_OF_CHANNELS - 1
    kind = ctx.attribute(node, "stash_type", TensorProto.FLOAT) if each_channel else elem_type
    groups = ctx.attribute(node, "num_groups")
    if 0 in (ctx.dims_of(x) or ()):
        raise ctx.refused("no-equivalent", f"{x!r} is empty, and cannot be split into groups")
    ctx = ctx.later(NEGATIVE_AXES)
    flat = ctx.op("Reshape", ctx.cast(x, elem_type, kind), ctx.ints(0, groups, -1))
    mean = spelling.along(ctx, "ReduceMean", flat, [2])
    deviation = ctx.op("Sub", flat, mean)
    spread = _root_of_mean_square(deviation, [2], kind, node, ctx)
    normal = ctx.cast(ctx.op("Div", deviation, spread), kind, elem_type)
    shape = ctx.op("Shape", x)
    if each_channel:
        normal = ctx.op("Reshape", ctx.op("Reshape", normal, shape), ctx.ints(0, 0, -1))
    columns = [ctx.op("Reshape", name, ctx.ints(-1, 1)) for name in (scale, bias)]
    biased = ctx.op("Add", ctx.op("Mul", normal, columns[0]), columns[1])
    return ctx.last(node, "Reshape", biased, shape)


for _version in (18, SCALES_OF_CHANNELS):
    adapter_down("GroupNormalization", _version, exact=False)(group_normalization)

identical("InstanceNormalization", 22)
identical("LpNormalization", 22)
identical("LRN", 13)


@adapter("MeanVarianceNormalization", 13)
def mean_variance_normalization_13(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `axes` is written where it was left out, as [0, 2, 3]; it means the same.

    From opset 18 on onnx's checker rejects the node without it: its function body makes a
    Constant of the attribute, and forgets the default.
    """
    if has(node, "axes"):
        return [node]
    return [ctx.changed(node, axes=[0, 2, 3])]


identical_down("MeanVarianceNormalization", 13)
expanded("MeanVarianceNormalization", 9)
