"""Steps of the recurrent operators."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import NodeProto

from passes.converters.steps import adapter_down, identical
from passes.converters.writing.conversion import Conversion
from passes.operators.cells import BATCH_AXES, RECURRENT


def time_first(node: NodeProto, ctx: Conversion) -> Sequence[NodeProto]:
    """`layout` is gone: what has the batch first is transposed, and Y and the states back."""
    if not ctx.attribute(node, "layout", 0):
        return [ctx.changed(node, without=["layout"])]
    inputs = [
        ctx.op("Transpose", name, perm=[1, 0, 2]) if name and BATCH_AXES.get(place) else name
        for place, name in enumerate(node.input)
    ]
    outputs = [ctx.fresh(f"{name}_time_first") if name else "" for name in node.output]
    ctx.adopt(ctx.changed(node, inputs=inputs, outputs=outputs, without=["layout"]))
    perms = [[2, 0, 1, 3], [1, 0, 2], [1, 0, 2]]  # Y (time, direction, batch, hidden), states
    for name, output, perm in zip(outputs, node.output, perms, strict=False):
        if output:
            ctx.op("Transpose", name, outputs=[output], perm=perm)
    return []


for _op in RECURRENT:
    identical(_op, 14, because="layout is new, and 0, time first, is what version 7 does")
    adapter_down(_op, 14)(time_first)
    identical(_op, 22)
