"""Steps of Softmax, LogSoftmax and Hardmax, and of losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from onnx import NodeProto, ValueInfoProto, helper

from passes.converters.steps import adapter, adapter_down, expanded, identical
from passes.converters.writing.attribute_inputs import front_axis
from passes.converters.writing.conversion import Conversion
from passes.ir.operators import op_of
from passes.ir.versions import SOFTMAX_OF_ONE_AXIS, ZERO_IS_A_SIZE
from passes.operators.table import where
from passes.types.value_types import Dims
from passes.writing import spelling


def one_axis(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It runs along `axis` only, where it ran over all axes from `axis` on; the default moved.

    Version 11 sees the input as a matrix (d_0*...*d_axis-1, d_axis*...*d_n) and takes its rows.
    One axis is enough where all others of a row have size 1; else the input really becomes that
    matrix, and its shape is restored, whatever its rank. Before opset 14 a Reshape cannot restore
    an empty axis: there an If hands on what may be empty.
    """
    axis = _only_axis(node, ctx)
    if axis is not None:
        return [ctx.changed(node, axis=axis)]
    if ctx.site.target >= ZERO_IS_A_SIZE or _has_elements(ctx.dims_of(node.input[0])):
        _by_rows(node, ctx, node.output[0])
        return []
    return _unless_empty(node, ctx, lambda inner, output: _by_rows(node, inner, output))


def all_axes(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It runs over all axes from `axis` on, seen as one: what has more to it moves that axis last.

    Where the rank is unknown, the input becomes (before, axis, behind) in between, and what may be
    empty is handed on by an If, as no Reshape before opset 14 can restore an empty axis.
    """
    axis: int = ctx.attribute(node, "axis", -1)
    dims = ctx.dims_of(node.input[0])
    if dims is None:
        if axis == -1:
            return [ctx.changed(node, axis=-1)]
        return _unless_empty(node, ctx, lambda inner, to: _in_the_middle(node, inner, axis, to))
    axis = _place(node, ctx, axis, dims)
    if all(dim == 1 for dim in dims[axis + 1 :]):
        return [ctx.changed(node, axis=axis)]
    order = list(range(len(dims)))
    order[axis], order[-1] = order[-1], axis
    there = ctx.op("Transpose", node.input[0], perm=order)
    last = ctx.copy(node, there, axis=len(dims) - 1)
    return ctx.last(node, "Transpose", last, perm=order)


def _in_the_middle(node: NodeProto, ctx: Conversion, axis: int, output: str) -> None:
    """The op along an axis of a value of unknown rank, which is not empty."""
    x = node.input[0]
    shape = spelling.shape_of(ctx, x)
    size = ctx.op("Gather", shape, ctx.whole([axis], "axis"))
    zero, rest = (ctx.whole([one], "size") for one in (0, -1))
    matrix = ctx.op("Flatten", x, axis=axis)
    parts = ctx.op("Concat", zero, size, rest, axis=0)
    there = ctx.op("Transpose", ctx.op("Reshape", matrix, parts), perm=[0, 2, 1])
    last = ctx.copy(node, there, axis=2)
    ctx.op("Reshape", ctx.op("Transpose", last, perm=[0, 2, 1]), shape, outputs=[output])


def _by_rows(node: NodeProto, ctx: Conversion, output: str) -> None:
    """The op on the rows of the matrix that its input becomes, in the shape of its input."""
    x = node.input[0]
    matrix = ctx.node("Flatten", [x])
    matrix.attribute.extend(attribute for attribute in node.attribute if attribute.name == "axis")
    rows = ctx.copy(node, ctx.adopt(matrix), axis=-1)
    shape = spelling.shape_of(ctx, x)
    if ctx.site.target >= ZERO_IS_A_SIZE:
        ctx = ctx.later(ZERO_IS_A_SIZE)
    spelling.reshaped(ctx, rows, shape, [output])


def _unless_empty(
    node: NodeProto, ctx: Conversion, write: Callable[[Conversion, str], None]
) -> Sequence[NodeProto]:
    """Nodes that compute a name if there are elements; without any, the input is the output."""
    x, output = node.input[0], node.output[0]
    rows, empty = ctx.fresh(f"{output}_some"), ctx.fresh(f"{output}_none")
    some = ctx.op("Greater", ctx.op("Size", x), ctx.whole(0, "zero"))
    known = ValueInfoProto(type=ctx.type_of(x))
    inner, other = ctx.inside(), ctx.inside()
    write(inner, rows)
    other.op("Identity", x, outputs=[empty])
    branches = {}
    for branch, name, written in (("then_branch", rows, inner), ("else_branch", empty, other)):
        graph = helper.make_graph(written.nodes, branch, [], [known])
        graph.output[0].name = name
        branches[branch] = graph
    ctx.made.expanded.add(output)
    return [ctx.node("If", [some], [output], **branches)]


for _op in sorted(where(lambda row: row.along_axis == SOFTMAX_OF_ONE_AXIS)):
    identical(_op, 11)  # a negative axis is new
    adapter(_op, 13)(one_axis)
    adapter_down(_op, 13)(all_axes)
    adapter_down(_op, 11)(front_axis)


def _only_axis(node: NodeProto, ctx: Conversion) -> int | None:
    """The one axis along which a row of the matrix runs, None where there may be several."""
    if ctx.refers(node, "axis"):
        return None
    axis: int = ctx.attribute(node, "axis", 1)
    dims = ctx.dims_of(node.input[0])
    if dims is None:
        return -1 if axis == -1 else None
    first = _place(node, ctx, axis, dims)
    wide = [one for one in range(first, len(dims)) if dims[one] != 1]
    if len(wide) > 1:
        return None
    return axis if not wide or wide == [first] else wide[0]


def _place(node: NodeProto, ctx: Conversion, axis: int, dims: Dims) -> int:
    if not -len(dims) <= axis < len(dims):
        raise ctx.refused("invalid-node", f"axis {axis} of {op_of(node)} is none of {dims}")
    return axis % len(dims)


def _has_elements(dims: Dims | None) -> bool:
    """Return whether no axis may be empty."""
    return dims is not None and all(isinstance(dim, int) and dim > 0 for dim in dims)


identical("NegativeLogLikelihoodLoss", 13, 22)
identical("SoftmaxCrossEntropyLoss", 13)
expanded("NegativeLogLikelihoodLoss", 12)
expanded("SoftmaxCrossEntropyLoss", 12)
