"""Ops that change the shape of a row and move no element between rows."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.ir.attributes import attribute, attributes
from passes.ir.versions import SHAPE_HAS_BOUNDS
from passes.types.value_types import is_static
from passes.vectorize.merging import Merging, over_batch
from passes.vectorize.ops.reshape import grouped, row_shape
from passes.vectorize.vectorizer import Vectorizer, batched, shifted_input
from passes.writing import spelling


@batched("Transpose")
def transpose(node: NodeProto, ctx: Vectorizer) -> None:
    """The new axis stays in front; by default the axes of a row are reversed."""
    perm = attributes(node, "perm")
    if perm is None:
        perm = list(reversed(range(ctx.rank(node.input[0]))))
    ctx.again(node, perm=[0, *(axis + 1 for axis in perm)])


@batched("Flatten")
def flatten(node: NodeProto, ctx: Vectorizer) -> None:
    """A row becomes a matrix: the axes before `axis`, and the others."""
    x = node.input[0]
    rank = ctx.rank(x)
    axis = attribute(node, "axis", 1)
    axis = axis + rank if axis < 0 else axis
    ctx.name_as(grouped(ctx, x, [range(axis), range(axis, rank)]), node.output[0])


@batched("Squeeze")
def squeeze(node: NodeProto, ctx: Vectorizer) -> None:
    """Without axes all axes of size 1 go, but never the new one, whatever its size."""
    ctx.only_rows(node, 1)
    x, axes = [*node.input, ""][:2]
    if axes and ctx.dims(axes) != (0,):
        ctx.again(node, [x, shifted_input(ctx, axes)])
        return
    dims = ctx.dims(x)
    if not is_static(dims):
        ctx.refuse("unknown-rank", f"Squeeze of {x!r}: which axes have size 1 is unknown", x)
    ones = [index + 1 for index, dim in enumerate(dims) if dim == 1]
    if ones:
        ctx.again(node, [x, ctx.ints(*ones)])
    else:
        ctx.name_as(x, node.output[0])


@batched("CumProd", "CumSum", "Unsqueeze")
def with_axes(node: NodeProto, ctx: Vectorizer) -> None:
    """The axes are an input; they move by one, and those of Unsqueeze count in the result."""
    ctx.only_rows(node, 1)
    ctx.again(node, [node.input[0], shifted_input(ctx, node.input[1])])


@batched("Expand")
def expand(node: NodeProto, ctx: Vectorizer) -> None:
    """The row gets the rank of the result first; the shape lines up from the back.

    A row that has the shape already stays as it is, instead of being copied.
    """
    ctx.only_rows(node, 1)
    x, shape = node.input
    dims = ctx.dims(node.output[0])
    if dims == ctx.dims(x) and is_static(dims):
        ctx.name_as(x, node.output[0])
    else:
        ctx.again(node, [ctx.raised(x, len(dims)), shape])


@batched("Tile")
def tile(node: NodeProto, ctx: Vectorizer) -> None:
    """The new axis is repeated once."""
    ctx.only_rows(node, 1)
    x, repeats = node.input
    known = ctx.constant(repeats)
    if known is not None:
        once = ctx.ints(1, *map(int, known))
    else:
        once = ctx.op("Concat", ctx.ints(1), repeats, axis=0)
    ctx.again(node, [x, once])


@batched("Shape")
def shape(node: NodeProto, ctx: Vectorizer) -> set[str]:
    """The shape of one row, the same for all."""
    x = node.input[0]
    start, end = attribute(node, "start", 0), attribute(node, "end", None)
    if ctx.opset < SHAPE_HAS_BOUNDS:
        ctx.name_as(row_shape(ctx, x), node.output[0])
    elif start >= 0 and (end is None or end >= 0):
        ctx.again(node, start=start + 1, end=None if end is None else end + 1)
    else:
        rank = ctx.rank(x)  # bounds that count from the back stop at the axes of the row
        start, end, _ = slice(start, end).indices(rank)
        ctx.again(node, start=start + 1, end=max(start, end) + 1)
    return set(node.output)


@batched("Size")
def size(node: NodeProto, ctx: Vectorizer) -> set[str]:
    """Compute the number of elements in one row."""
    x = node.input[0]
    if ctx.rank(x) == 0:
        ctx.name_as(ctx.int(1), node.output[0])
    else:
        ctx.op("ReduceProd", row_shape(ctx, x), outputs=list(node.output), keepdims=0)
    return set(node.output)


@batched("EyeLike")
def eye_like(node: NodeProto, ctx: Vectorizer) -> set[str]:
    """Only the shape of a row counts: ones on a diagonal, the same for all rows."""
    x = node.input[0]
    like = spelling.filled(ctx, row_shape(ctx, x), TensorProto.FLOAT, 0)
    ctx.again(node, [like], dtype=attribute(node, "dtype", 0) or ctx.elem_type(x))
    return set(node.output)


@batched("ConstantOfShape", "Range")
def sized_by_values(node: NodeProto, ctx: Vectorizer) -> None:
    """The size of the result depends on the values of the operands.

    Raises:
        Refused: `batched-operand`, always.
    """
    ctx.only_rows(node, *range(len(node.input)))


@batched("Trilu")
def trilu(node: NodeProto, ctx: Vectorizer) -> None:
    """The last two axes are the matrix."""
    ctx.only_rows(node, 1)
    ctx.again(node)


@batched("DepthToSpace", "SpaceToDepth")
def blocks(node: NodeProto, ctx: Vectorizer) -> None:
    """[N, C, H, W]: the new axis joins N."""
    over_batch(node, ctx)


@batched("ReverseSequence")
def reverse_sequence(node: NodeProto, ctx: Vectorizer) -> None:
    """`batch_axis` and `time_axis` are 0 and 1 in some order.

    Shared lengths: the new axis is moved after them for a while. Lengths of each row: it joins
    the axis of the sequences.
    """
    x, lengths = node.input
    result = ctx.fresh("reversed")
    if ctx.carries(lengths):
        axis = attribute(node, "batch_axis", 1)
        merging = Merging.like(ctx, x, axis)
        ctx.again(node, [merging.merged(x, axis), merging.merged(lengths)], [result])
        merging.split(result, node.output[0], axis)
        return
    behind = range(3, ctx.rank(x) + 1)
    ctx.again(node, [ctx.op("Transpose", x, perm=[1, 2, 0, *behind]), lengths], [result])
    ctx.op("Transpose", result, outputs=list(node.output), perm=[2, 0, 1, *behind])
