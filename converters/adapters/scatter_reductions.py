"""Steps of the scatters that reduce what is there with the updates."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto, TensorProto, helper

from passes.converters.steps import adapter_down
from passes.converters.writing.conversion import Conversion
from passes.converters.writing.index_arithmetic import are_distinct, axis_from_front
from passes.ir.operators import op_of
from passes.types.value_types import tensor_type
from passes.writing import spelling

#: What the versions added: an operator each, but for the first letter.
_REDUCTIONS = {16: ("add", "mul"), 18: ("max", "min")}


def unreduced(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """The elements at the indices are gathered, reduced with the updates and written back: at once
    if no two updates have one index, else one after the other, in a Loop."""
    reduction = ctx.attribute(node, "reduction", "none")
    if reduction not in _REDUCTIONS[ctx.version + 1]:
        return [node]
    op = reduction.capitalize()
    data, indices, updates = node.input
    axis = axis_from_front(node, ctx, data, 0) if op_of(node) == "ScatterElements" else None
    if are_distinct(ctx, indices, data, axis):
        reduced = _reduced(ctx, op, data, indices, updates, axis)
        return [ctx.changed(node, inputs=[data, indices, reduced], without=["reduction"])]
    if axis is None:
        indices, updates = _rows(ctx, data, indices, updates)
    return _one_by_one(node, ctx, op, indices, updates, axis)


for _op in ("ScatterElements", "ScatterND"):
    for _version in _REDUCTIONS:
        adapter_down(_op, _version)(unreduced)


def _reduced(
    ctx: Conversion, op: str, data: str, indices: str, updates: str, axis: int | None
) -> str:
    """The values at the indices: along an axis, or at the places that rows of them (None) name."""
    if axis is None:
        return ctx.op(op, ctx.op("GatherND", data, indices), updates)
    return ctx.op(op, ctx.op("GatherElements", data, indices, axis=axis), updates)


def _rows(ctx: Conversion, data: str, indices: str, updates: str) -> tuple[str, str]:
    """Indices (n, depth) and updates (n, ...) of a ScatterND."""
    *batch, depth = ctx.dims_of(indices) or (None,)
    if len(batch) == 1:
        return indices, updates
    tail = (ctx.dims_of(data) or ())[depth:] if isinstance(depth, int) else (None,)
    sizes = [dim for dim in tail if isinstance(dim, int) and dim]
    if not isinstance(depth, int) or len(sizes) < len(tail):
        sentence = f"how ScatterND slices {data!r} at {indices!r} is not known"
        raise ctx.refused("unknown-rank", sentence)
    shapes = [[-1, depth], [-1, *sizes]]
    flat = [
        ctx.op("Reshape", name, ctx.whole(shape, "rows"))
        for name, shape in zip((indices, updates), shapes, strict=True)
    ]
    return flat[0], flat[1]


def _one_by_one(
    node: NodeProto, ctx: Conversion, op: str, indices: str, updates: str, axis: int | None
) -> Sequence[NodeProto]:
    """A Loop along an axis of the indices, the first for rows: within a step no two updates go to
    one place."""
    data, along = node.input[0], axis or 0
    count = spelling.scalar_size(ctx, indices, along)
    names = ("step", "go", "on", "so_far", "behind")
    step, go, on, so_far, behind = (ctx.fresh(f"{node.output[0]}_{name}") for name in names)
    types = {
        step: tensor_type(TensorProto.INT64, ()),
        **dict.fromkeys((go, on), tensor_type(TensorProto.BOOL, ())),
        **dict.fromkeys(
            (so_far, behind), tensor_type(ctx.known_elem_type(data), ctx.dims_of(data))
        ),
    }
    for name, type_ in types.items():
        ctx.made.declare(name, type_)
    inner = ctx.inside()
    place = inner.op("Reshape", step, ctx.whole([1], "one"))
    here, update = (inner.op("Gather", name, place, axis=along) for name in (indices, updates))
    reduced = _reduced(inner, op, so_far, here, update, axis)
    where = {} if axis is None else {"axis": axis}
    inner.op(op_of(node), so_far, here, reduced, outputs=[behind], **where)
    inner.op("Identity", go, outputs=[on])
    values = {name: helper.make_value_info(name, type_) for name, type_ in types.items()}
    body = helper.make_graph(
        inner.nodes,
        "scatter",
        [values[name] for name in (step, go, so_far)],
        [values[name] for name in (on, behind)],
    )
    ctx.made.expanded.add(node.output[0])
    gone = ["axis", "reduction"]
    return [ctx.changed(node, op="Loop", inputs=[count, "", data], without=gone, body=body)]
