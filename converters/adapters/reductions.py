"""Steps of reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper

from passes.converters.steps import adapter, adapter_down, identical, identical_down
from passes.converters.writing.attribute_inputs import (
    front_axes,
    front_axis,
    ints_as_attribute,
    ints_as_input,
)
from passes.converters.writing.conversion import Conversion, through_float
from passes.ir.operators import op_of
from passes.types.value_types import elem_type_of, tensor_type
from passes.writing import spelling

#: Those whose axes are an input from version 18 on; of ReduceSum they are from 13 on.
_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")


def reduce_axes(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The attribute `axes` becomes the optional second input, int64 (n).

    Without axes all are reduced, as before: the new `noop_with_empty_axes` is 0 by default.
    """
    return ints_as_input(node, ctx, "axes")


def reduce_logarithm_28(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers are no longer allowed: they are reduced in double and rounded towards zero.

    Input and output (any shape) of int32, int64, uint32 or uint64. A value of unknown type is
    taken to be a float; an integer would not pass the checker.
    """
    elem_type = elem_type_of(ctx.type_of(node.input[0]))
    if elem_type not in _NO_LOGARITHM_28:
        return [node]
    return through_float(node, ctx, TensorProto.DOUBLE)


_NO_LOGARITHM_28 = (
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.UINT32,
    TensorProto.UINT64,
)


def reduce_axes_down(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The input `axes` becomes an attribute again, or is removed if it is empty.

    With `noop_with_empty_axes`, and no axes, nothing is reduced: what is squared or made absolute
    before, or a logarithm afterwards, is all that is left.
    """
    (plain,) = ints_as_attribute(node, ctx, "axes")
    noop = ctx.attribute(node, "noop_with_empty_axes", 0)
    axes = ctx.attribute(plain, "axes") or None
    if axes is None and noop:
        return _elementwise(node, ctx)
    return [ctx.changed(plain, axes=axes, without=["noop_with_empty_axes"])]


def _elementwise(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    op, x, output = op_of(node), node.input[0], node.output
    if op in ("ReduceL1", "ReduceL2"):
        return [ctx.node("Abs", [x], output)]
    if op == "ReduceSumSquare":
        return [ctx.node("Mul", [x, x], output)]
    if op == "ReduceLogSum":
        return [ctx.node("Log", [x], output)]
    return [ctx.node("Identity", [x], output)]


for _name in _REDUCTIONS:
    identical(f"Reduce{_name}", 11, 13)
    adapter(f"Reduce{_name}", 18)(reduce_axes)
    adapter_down(f"Reduce{_name}", 18)(reduce_axes_down)
    adapter_down(f"Reduce{_name}", 11)(front_axes)


def of_booleans_19(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Booleans are reduced as 0 and 1; of none at all, the result is beyond these."""
    if ctx.known_elem_type(node.input[0]) != TensorProto.BOOL:
        return [node]
    numbers = ctx.op("Cast", node.input[0], to=TensorProto.INT32)
    found = ctx.copy(node, numbers, *node.input[1:])
    return ctx.last(node, "Greater", found, ctx.number(0, TensorProto.INT32))


def of_bytes_11(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """Integers of 8 bits are reduced as float; of none at all, the result is infinite, and cut."""
    elem_type = ctx.known_elem_type(node.input[0])
    if elem_type not in (TensorProto.INT8, TensorProto.UINT8):
        return [node]
    range_ = np.iinfo(helper.tensor_dtype_to_np_dtype(elem_type))
    found = ctx.copy(node, *ctx.casts(TensorProto.FLOAT, node.input[0]))
    limits = [ctx.number(one, TensorProto.FLOAT) for one in (range_.min, range_.max)]
    return ctx.last(node, "Cast", ctx.op("Clip", found, *limits), to=elem_type)


for _name in ("Max", "Min"):
    identical(f"Reduce{_name}", 12, 20)
    adapter_down(f"Reduce{_name}", 20)(of_booleans_19)
    adapter_down(f"Reduce{_name}", 12)(of_bytes_11)
for _name in ("LogSum", "LogSumExp"):
    adapter(f"Reduce{_name}", 28, exact=False)(reduce_logarithm_28)
    identical_down(f"Reduce{_name}", 28)
identical("ReduceSum", 11)
adapter("ReduceSum", 13)(reduce_axes)
adapter_down("ReduceSum", 13)(reduce_axes_down)
adapter_down("ReduceSum", 11)(front_axes)


def select_last_index(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """With `select_last_index` it counts from the end of what is turned round."""
    plain = ctx.changed(node, without=["select_last_index"])
    if not ctx.attribute(node, "select_last_index", 0):
        return [plain]
    x, axis = node.input[0], ctx.attribute(node, "axis", 0)
    dims = ctx.dims_of(x)
    size = dims[axis] if dims and -len(dims) <= axis < len(dims) else None
    if isinstance(size, int):
        last = ctx.whole(size - 1, "last")
        x = ctx.op("Gather", x, ctx.value(np.arange(size)[::-1], "turned"), axis=axis)
    else:
        length = spelling.scalar_size(ctx, x, axis)
        last = ctx.op("Sub", length, ctx.whole(1, "number"))
        x = ctx.op("Slice", x, *(ctx.whole([one], "limit") for one in (-1, _FIRST, axis, -1)))
    turned = ctx.copy(plain, x)
    return ctx.last(node, "Sub", last, turned)


_FIRST = np.iinfo(np.int64).min  # the end of a Slice that goes back to the first element


for _op in ("ArgMax", "ArgMin"):
    identical(_op, 11, 13)
    identical(_op, 12, because="select_last_index is new; by default the first one wins, as ever")
    adapter_down(_op, 12)(select_last_index)
    adapter_down(_op, 11)(front_axis)


@adapter_down("CumSum", 11, exact=False)
@adapter_down("CumProd", 26)
def cumulative(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """It becomes a Scan along the axis, which is moved first, that carries the sum or product."""
    (x, axis_name), product = node.input, op_of(node) == "CumProd"
    fixed = ctx.constant(axis_name)
    if fixed is None:
        raise ctx.refused("not-constant", f"the axis of {op_of(node)} is only known at run time")
    rank, elem_type = ctx.known_rank(x), ctx.known_elem_type(x)
    perm = list(range(rank))
    perm[0], perm[int(fixed.item())] = perm[int(fixed.item())], perm[0]
    moved = ctx.op("Transpose", x, perm=perm)
    others = ctx.value(np.arange(1, rank), "others")
    sizes = ctx.op("Gather", spelling.shape_of(ctx, moved), others, axis=0)
    start = spelling.filled(ctx, sizes, elem_type, int(product))
    backwards = int(ctx.attribute(node, "reverse", 0))
    length = (ctx.dims_of(moved) or (None,))[0]
    may_be_empty = not (isinstance(length, int) and length)
    if may_be_empty:  # no onnxruntime scans nothing: a first row goes in front
        row_sizes = ctx.op("Concat", ctx.whole([1], "row"), sizes, axis=0)
        row = spelling.filled(ctx, row_sizes, elem_type, int(product))
        moved = ctx.op("Concat", *([moved, row] if backwards else [row, moved]), axis=0)
    before, one, behind, given = (ctx.fresh(f"{node.output[0]}_{name}") for name in _CARRIED)
    type_ = tensor_type(elem_type, (None,) * (rank - 1))
    for name in (before, one):
        ctx.made.declare(name, type_)
    step = ctx.node("Mul" if product else "Add", [before, one], [behind])
    kept = before if ctx.attribute(node, "exclusive", 0) else behind
    body = helper.make_graph(
        [step, ctx.node("Identity", [kept], [given])],
        "cumulative",
        [ValueInfoProto(name=name, type=type_) for name in (before, one)],
        [ValueInfoProto(name=name, type=type_) for name in (behind, given)],
    )
    end, found = (ctx.fresh(f"{node.output[0]}_{name}") for name in ("end", "moved"))
    scan = ctx.node(
        "Scan",
        [start, moved],
        [end, found],
        body=body,
        num_scan_inputs=1,
        scan_input_directions=[backwards],
        scan_output_directions=[backwards],
    )
    ctx.made.expanded.add(end)
    ctx.adopt(scan)
    if may_be_empty:
        found = spelling.part(ctx, found, 0, *((0, -1) if backwards else (1, spelling.LAST)))
    return ctx.last(node, "Transpose", found, perm=perm)


_CARRIED = ("before", "one", "behind", "given")  # what the body of the Scan reads and gives
identical("CumSum", 14)
