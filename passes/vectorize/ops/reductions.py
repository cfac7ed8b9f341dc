"""Ops along axes of a row: reducers, running sums, softmaxes, normalizations, TopK."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.attributes import attribute, attributes, has
from passes.ir.operators import op_of
from passes.operators.table import where
from passes.operators.traits import Shape
from passes.vectorize.axes import all_axes, reduced, shifted, shifted_input
from passes.vectorize.vectorizer import Vectorizer, batched
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
