"""Ops along axes of a row: reducers, running sums, softmaxes, normalizations, TopK."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from passes.ir.attributes import attribute, attributes, has
from passes.ir.operators import op_of
from passes.operators.table import where
from passes.operators.traits import Shape
from passes.types.value_types import is_static
from passes.vectorize.vectorizer import (
    Vectorizer,
    all_axes,
    batched,
    reduced,
    shifted,
    shifted_input,
)
from passes.writing import spelling


@batched(*where(lambda row: row.shape is Shape.REDUCED))
def reduce(node: NodeProto, ctx: Vectorizer) -> None:
    """Axes move by one; where none are given, all axes of a row are meant."""
    by_input = spelling.takes_axes_as_input(op_of(node), ctx.opset)
    ctx.only_rows(node, 1)
    x = node.input[0]
    axes_input = node.input[1] if by_input and len(node.input) > 1 else ""
    if axes_input and _is_empty(ctx, axes_input):
        axes_input = ""
    if axes_input:
        ctx.again(node, [x, shifted_input(ctx, axes_input, x)])
        return
    declared = attributes(node, "axes")
    if declared:
        ctx.again(node, axes=[reduced(ctx, x, axis) for axis in declared])
    elif attribute(node, "noop_with_empty_axes", 0):
        ctx.again(node)
    else:
        _reduce_rows(node, ctx, by_input)


def _is_empty(ctx: Vectorizer, axes: str) -> bool:
    """Return whether no axes are given; where only the run shows that, it is refused."""
    dims = ctx.dims(axes)
    if not isinstance(dims[0], int):
        ctx.refuse("not-constant", f"how many axes {axes!r} holds is unknown", axes)
    return dims[0] == 0


def _reduce_rows(node: NodeProto, ctx: Vectorizer, by_input: bool) -> None:
    """Reduce all of each row. A scalar row gets an axis first: one element is reduced, too."""
    x = node.input[0]
    rank = ctx.rank(x)
    keep = attribute(node, "keepdims", 1) if rank else 0
    if not rank:
        x = spelling.unsqueeze(ctx, x, 1)
    axes = list(all_axes(max(rank, 1)))
    if by_input:
        ctx.again(node, [x, ctx.ints(*axes)], keepdims=keep)
    else:
        ctx.again(node, [x], axes=axes, keepdims=keep)


@batched("ArgMax", "ArgMin")
def arg_reduce(node: NodeProto, ctx: Vectorizer) -> None:
    """The axis, 0 by default, moves by one."""
    ctx.again(node, axis=reduced(ctx, node.input[0], attribute(node, "axis", 0)))


@batched(*where(lambda row: row.along_axis))
def along_axis(node: NodeProto, ctx: Vectorizer) -> None:
    """The axis, -1 by default, moves by one where it counts from the front."""
    ctx.again(node, axis=shifted(attribute(node, "axis", -1)))


@batched("MeanVarianceNormalization")
def mean_variance_normalization(node: NodeProto, ctx: Vectorizer) -> None:
    """The axes, 0, 2 and 3 by default, move by one."""
    axes = attributes(node, "axes") if has(node, "axes") else [0, 2, 3]
    ctx.again(node, axes=[shifted(axis) for axis in axes or []])


@batched("TopK")
def top_k(node: NodeProto, ctx: Vectorizer) -> None:
    """The axis moves; k is the same for all rows."""
    ctx.only_rows(node, 1)
    ctx.again(node, axis=shifted(attribute(node, "axis", -1)))


@batched("Det")
def det(node: NodeProto, ctx: Vectorizer) -> None:
    """The last two axes are the matrix."""
    ctx.again(node)


@batched("LayerNormalization", "RMSNormalization")
def normalization(node: NodeProto, ctx: Vectorizer) -> set[str] | None:
    """The axis moves. A scale or bias of each row is applied afterwards: the operator documents
    define both as a product and a sum with the normalised value."""
    parameters = node.input[1:]
    axis = attribute(node, "axis", -1)
    if not any(map(ctx.carries, parameters)):
        ctx.again(node, axis=shifted(axis))
        return None
    return _apart(node, ctx, axis)


def _apart(node: NodeProto, ctx: Vectorizer, axis: int) -> set[str]:
    """Normalise, then scale, then add the bias."""
    x, scale, *bias = node.input
    rank = ctx.rank(x)
    inner = ctx.dims(x)[axis % rank :]
    elem_type = ctx.elem_type(x)
    if not is_static(inner) or ctx.elem_type(scale) != elem_type:
        ctx.only_rows(node, *range(1, len(node.input)))
    ones = np.ones(
        tuple(int(dim or 0) for dim in inner), helper.tensor_dtype_to_np_dtype(elem_type)
    )
    plain = ctx.fresh(f"{node.output[0]}/normalised")
    ctx.again(
        node,
        inputs=[x, ctx.value(ones, "ones")],
        outputs=[plain, *node.output[1:]],
        axis=shifted(axis) if ctx.carries(x) else axis,
    )
    ctx.note(plain, elem_type, ctx.dims(x), carries=ctx.carries(x))
    result = ctx.op("Mul", ctx.raised(plain, rank), ctx.raised(scale, rank))
    if any(bias):
        result = ctx.op("Add", result, ctx.raised(bias[0], rank))
    ctx.name_as(result, node.output[0])
    return set() if ctx.carries(x) else set(filter(None, node.output[1:]))
