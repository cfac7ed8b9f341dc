"""Steps of normalization ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from converters.conversion import Conversion
from converters.steps import adapter, identical


@adapter("BatchNormalization", 9)
def batch_normalization_9(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `spatial` is gone: what it switched off is done on a flat input.

    With `spatial = 0` scale, bias, mean and variance are (C x D1 x ... x Dn), one for each
    activation. Version 9 advises to flatten the input (N x C x D1 x ... x Dn) to
    (N x C*D1*...*Dn), of which every column is a channel. Their shape must be known: an empty
    one cannot be restored, since a 0 in Reshape-5 copies a dim.
    """
    x, scale, *_ = node.input
    if at.attribute(node, "spatial", 1) or at.known_rank(scale) == 1:
        return [at.changed(node, without=["spatial"])]
    if any(node.output[1:]):
        raise at.refused(
            "no-equivalent",
            "BatchNormalization-9 has no training outputs of the shape (C x D1 x ... x Dn)",
        )
    dims = at.dims_of(scale) or ()
    if not all(isinstance(dim, int) and dim > 0 for dim in dims):
        raise at.refused("unknown-rank", f"the shape of {scale!r} is not known, or empty: {dims}")
    one_axis = at.value(np.array([-1], np.int64), "one_axis")
    shape = at.value(np.array([0, *dims], np.int64), "shape")  # 0 keeps N
    flat = [
        at.node("Flatten", [x], axis=1),
        *(at.node("Reshape", [name, one_axis]) for name in node.input[1:]),
    ]
    main = at.changed(
        node,
        inputs=[made.output[0] for made in flat],
        outputs=[at.fresh(f"{node.output[0]}_flat")],
        without=["spatial"],
    )
    return [*flat, main, at.node("Reshape", [main.output[0], shape], [node.output[0]])]


@adapter("BatchNormalization", 14)
def batch_normalization_14(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Training is asked for by `training_mode`, no longer by naming outputs; two of those go.

    Version 9 trains where outputs 2 to 5 are named: the running mean and variance, which stay,
    and the saved mean and variance of the batch, all (C). The document leaves the latter two
    open; as in onnxruntime, saved_var is sqrt(1 / (variance + epsilon)).
    """
    y, *training = node.output
    if not any(training):
        return [at.changed(node, outputs=[y])] if training else [node]
    mean, var, saved_mean, saved_var = [*training, "", "", ""][:4]
    outputs = [y, mean or at.fresh(f"{y}_mean"), var or at.fresh(f"{y}_var")]
    main = at.changed(node, outputs=outputs, training_mode=1)
    return [main, *_saved_statistics(node, saved_mean, saved_var, at)]


def _saved_statistics(node: NodeProto, mean: str, var: str, at: Conversion) -> Sequence[NodeProto]:
    """Mean and variance of the batch: what the running ones become when nothing else weighs."""
    if not (mean or var):
        return []
    x, scale, bias, *_ = node.input
    dtype = helper.tensor_dtype_to_np_dtype(at.known_elem_type(x))
    shape = at.node("Shape", [scale])
    zeros = at.node(
        "ConstantOfShape", [shape.output[0]], value=numpy_helper.from_array(np.zeros(1, dtype))
    )
    (zero,) = zeros.output
    outputs = [at.fresh(f"{hint}_{node.output[0]}") for hint in ("again", "mean", "variance")]
    outputs[1] = mean or outputs[1]
    inputs = [x, scale, bias, zero, zero]
    batch = at.node("BatchNormalization", inputs, outputs, momentum=0.0, training_mode=1)
    if not var:
        return [shape, zeros, batch]
    given = np.float32(at.attribute(node, "epsilon", 1e-5))  # a float, also where x is double
    epsilon = at.value(np.asarray(given, dtype), "epsilon")
    total = at.node("Add", [outputs[2], epsilon])
    inverse = at.node("Reciprocal", [total.output[0]])
    return [shape, zeros, batch, total, inverse, at.node("Sqrt", [inverse.output[0]], [var])]


# Scale and bias may differ from x in type. Statistics of float16 are computed in float; version
# 14 does not say in what.
identical("BatchNormalization", 15)


@adapter("GroupNormalization", 21)
def group_normalization_21(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """Scale and bias are given for each channel (C), no longer for each group (num_groups).

    What they are multiplied with is now computed in `stash_type`, float by default; version 18
    computes in the type of x.
    """
    x, *parameters = node.input
    elem_type = at.known_elem_type(x)
    made: list[NodeProto] = []
    for position, name in enumerate(parameters):
        nodes = _each_channel(name, x, at)
        made.extend(nodes)
        parameters[position] = nodes[-1].output[0] if nodes else name
    stash_type = None if elem_type == TensorProto.FLOAT else elem_type
    return [*made, at.changed(node, inputs=[x, *parameters], stash_type=stash_type)]


def _each_channel(name: str, x: str, at: Conversion) -> Sequence[NodeProto]:
    """Nodes that repeat every element of `name`, (groups), up to the channels of `x`."""
    channels, groups = (at.dims_of(x) or (None, None))[1], (at.dims_of(name) or (None,))[0]
    if isinstance(channels, int) and channels == groups:
        return []
    one, flat = (at.value(np.array([size], np.int64), "size") for size in (1, -1))
    made: list[NodeProto] = []
    if isinstance(channels, int) and isinstance(groups, int) and groups:
        shape = at.value(np.array([1, channels // groups], np.int64), "shape")
    else:
        count, of = at.node("Shape", [x], start=1, end=2), at.node("Shape", [name])
        times = at.node("Div", [count.output[0], of.output[0]])
        wanted = at.node("Concat", [one, times.output[0]], axis=0)
        made, shape = [count, of, times, wanted], wanted.output[0]
    column = at.node("Unsqueeze", [name, one])
    rows = at.node("Expand", [column.output[0], shape])
    return [*made, column, rows, at.node("Reshape", [rows.output[0], flat])]


identical("InstanceNormalization", 22)
identical("LpNormalization", 22)
identical("LRN", 13)


@adapter("MeanVarianceNormalization", 13)
def mean_variance_normalization_13(node: NodeProto, at: Conversion) -> Sequence[NodeProto]:
    """The attribute `axes` is said where it was left out, as [0, 2, 3]; it means the same.

    From opset 18 on onnx's checker rejects the node without it: its function body makes a
    Constant of the attribute, and forgets the default.
    """
    if any(one.name == "axes" for one in node.attribute):
        return [node]
    return [at.changed(node, axes=[0, 2, 3])]
