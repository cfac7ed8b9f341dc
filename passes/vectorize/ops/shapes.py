"""Ops that change the shape of a row and move no element between rows."""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from passes.vectorize.axes import attribute, attributes, shifted_input
from passes.vectorize.merging import Merging, over_batch
from passes.vectorize.reshaping import grouped, row_shape
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling

_SHAPE_HAS_BOUNDS = 15


@batched("Transpose")
def transpose(node: NodeProto, at: Vectorizer) -> None:
    """The new axis stays in front; by default the axes of a row are reversed."""
    perm = attributes(node, "perm")
    if perm is None:
        perm = list(reversed(range(at.rank(node.input[0]))))
    at.again(node, perm=[0, *(axis + 1 for axis in perm)])


@batched("Flatten")
def flatten(node: NodeProto, at: Vectorizer) -> None:
    """A row becomes a matrix: the axes in front of `axis`, and the others."""
    x = node.input[0]
    rank = at.rank(x)
    axis = attribute(node, "axis", 1)
    axis = axis + rank if axis < 0 else axis
    at.name_as(grouped(at, x, [range(axis), range(axis, rank)]), node.output[0])


@batched("Squeeze")
def squeeze(node: NodeProto, at: Vectorizer) -> None:
    """Without axes all axes of size 1 go, but never the new one, whatever its size."""
    at.only_rows(node, 1)
    x, axes = [*node.input, ""][:2]
    if axes and at.dims(axes) != (0,):
        at.again(node, [x, shifted_input(at, axes)])
        return
    dims = at.dims(x)
    if not all(isinstance(dim, int) for dim in dims):
        at.refuse("unknown-rank", f"Squeeze of {x!r}: which axes have size 1 is not known", x)
    ones = [index + 1 for index, dim in enumerate(dims) if dim == 1]
    if ones:
        at.again(node, [x, at.author.ints(*ones)])
    else:
        at.name_as(x, node.output[0])


@batched("Unsqueeze")
def unsqueeze(node: NodeProto, at: Vectorizer) -> None:
    """The axes count in the result and move by one."""
    at.only_rows(node, 1)
    at.again(node, [node.input[0], shifted_input(at, node.input[1])])


@batched("Expand")
def expand(node: NodeProto, at: Vectorizer) -> None:
    """The row gets the rank of the result first; the shape lines up from the back.

    A row that has the shape already stays as it is, instead of being copied.
    """
    at.only_rows(node, 1)
    x, shape = node.input
    dims = at.dims(node.output[0])
    if dims == at.dims(x) and all(isinstance(dim, int) for dim in dims):
        at.name_as(x, node.output[0])
    else:
        at.again(node, [at.raised(x, len(dims)), shape])


@batched("Tile")
def tile(node: NodeProto, at: Vectorizer) -> None:
    """The new axis is repeated once."""
    at.only_rows(node, 1)
    x, repeats = node.input
    known = at.constant(repeats)
    if known is not None:
        once = at.author.ints(1, *map(int, known))
    else:
        once = at.op("Concat", at.author.ints(1), repeats, axis=0)
    at.again(node, [x, once])


@batched("Shape")
def shape(node: NodeProto, at: Vectorizer) -> set[str]:
    """The shape of one row, the same for all."""
    x = node.input[0]
    start, end = attribute(node, "start", 0), _end(node)
    if at.author.opset < _SHAPE_HAS_BOUNDS:
        at.name_as(row_shape(at, x), node.output[0])
    elif start >= 0 and (end is None or end >= 0):
        at.again(node, start=start + 1, end=None if end is None else end + 1)
    else:
        rank = at.rank(x)  # bounds that count from the back stop at the axes of the row
        start, end, _ = slice(start, end).indices(rank)
        at.again(node, start=start + 1, end=max(start, end) + 1)
    return set(node.output)


def _end(node: NodeProto) -> int | None:
    return next((one.i for one in node.attribute if one.name == "end"), None)


@batched("Size")
def size(node: NodeProto, at: Vectorizer) -> set[str]:
    """How many elements one row has."""
    x = node.input[0]
    if at.rank(x) == 0:
        at.name_as(at.author.int(1), node.output[0])
    else:
        at.op("ReduceProd", row_shape(at, x), outputs=list(node.output), keepdims=0)
    return set(node.output)


@batched("EyeLike")
def eye_like(node: NodeProto, at: Vectorizer) -> set[str]:
    """Only the shape of a row counts: ones on a diagonal, the same for all rows."""
    x = node.input[0]
    like = spelling.filled(at.author, row_shape(at, x), TensorProto.FLOAT, 0)
    at.again(node, [like], dtype=attribute(node, "dtype", 0) or at.elem_type(x))
    return set(node.output)


@batched("ConstantOfShape", "Range")
def sized_by_values(node: NodeProto, at: Vectorizer) -> None:
    """The operands say how large the result is.

    Raises:
        Refused: `batched-operand`, always.
    """
    at.only_rows(node, *range(len(node.input)))


@batched("Trilu")
def trilu(node: NodeProto, at: Vectorizer) -> None:
    """The last two axes are the matrix."""
    at.only_rows(node, 1)
    at.again(node)


@batched("DepthToSpace", "SpaceToDepth")
def blocks(node: NodeProto, at: Vectorizer) -> None:
    """[N, C, H, W]: the new axis joins N."""
    over_batch(node, at)


@batched("ReverseSequence")
def reverse_sequence(node: NodeProto, at: Vectorizer) -> None:
    """`batch_axis` and `time_axis` are 0 and 1 in some order.

    Shared lengths: the new axis goes behind them for a while. Lengths of each row: it joins
    the axis of the sequences.
    """
    x, lengths = node.input
    made = at.author.fresh("reversed")
    if at.carries(lengths):
        axis = attribute(node, "batch_axis", 1)
        merging = Merging.like(at, x, axis)
        at.again(node, [merging.merged(x, axis), merging.merged(lengths)], [made])
        merging.split(made, node.output[0], axis)
        return
    behind = range(3, at.rank(x) + 1)
    at.again(node, [at.op("Transpose", x, perm=[1, 2, 0, *behind]), lengths], [made])
    at.op("Transpose", made, outputs=list(node.output), perm=[2, 0, 1, *behind])
