"""LayerNormalization and RMSNormalization, whose scale and bias may be those of each row."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from passes.ir.attributes import attribute
from passes.vectorize.axes import shifted
from passes.vectorize.vectorizer import Vectorizer, batched


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
    if not all(isinstance(dim, int) for dim in inner) or ctx.elem_type(scale) != elem_type:
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
