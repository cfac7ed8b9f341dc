"""The recurrent operators: the new axis is merged into their batch axis."""

from __future__ import annotations

from onnx import NodeProto

from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.operators.cells import BATCH_AXES, RECURRENT
from passes.vectorize.merging import Merging
from passes.vectorize.vectorizer import Vectorizer, batched

#: The batch axis of the outputs Y, Y_h and Y_c, by layout.
_BATCHED_OUTPUTS = ((2, 1, 1), (0, 0, 0))


@batched(*RECURRENT)
def recurrent(node: NodeProto, ctx: Vectorizer) -> None:
    """One sequence an element of the batch; the weights are shared.

    X is [time, batch, ...] or, with layout 1, [batch, time, ...]; states are [directions,
    batch, ...] or [batch, directions, ...].
    """
    layout = attribute(node, "layout", 0)
    axes = dict.fromkeys(BATCH_AXES, 0) if layout else BATCH_AXES
    ctx.only_rows(node, *(place for place in range(len(node.input)) if place not in axes))
    merging = Merging.like(ctx, node.input[0], axes[0])
    inputs = [
        merging.merged(name, axes[place]) if place in axes else name
        for place, name in enumerate(node.input)
    ]
    merging.write(node, inputs, op_of(node).lower(), _BATCHED_OUTPUTS[layout])
