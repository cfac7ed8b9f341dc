"""LayerNormalization and RMSNormalization, whose scale and bias may be those of each row."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, helper

from passes.vectorize.axes import attribute, shifted
from passes.vectorize.vectorizer import Vectorizer, batched


@batched("LayerNormalization", "RMSNormalization")
def normalization(node: NodeProto, at: Vectorizer) -> set[str] | None:
    """The axis moves. A scale or bias of each row is applied behind: the operator documents
    define both as a product and a sum with what was normalised."""
    parameters = node.input[1:]
    axis = attribute(node, "axis", -1)
    if not any(map(at.carries, parameters)):
        at.again(node, axis=shifted(axis))
        return None
    return _apart(node, at, axis)


def _apart(node: NodeProto, at: Vectorizer, axis: int) -> set[str]:
    """Normalise, then scale, then add the bias."""
    x, scale, *bias = node.input
    rank = at.rank(x)
    inner = at.dims(x)[axis % rank :]
    elem_type = at.elem_type(x)
    if not all(isinstance(dim, int) for dim in inner) or at.elem_type(scale) != elem_type:
        at.only_rows(node, *range(1, len(node.input)))
    ones = np.ones(
        tuple(int(dim or 0) for dim in inner), helper.tensor_dtype_to_np_dtype(elem_type)
    )
    plain = at.author.fresh(f"{node.output[0]}/normalised")
    at.again(
        node,
        inputs=[x, at.author.constant(ones, "ones")],
        outputs=[plain, *node.output[1:]],
        axis=shifted(axis) if at.carries(x) else axis,
    )
    at.note(plain, elem_type, at.dims(x), carries=at.carries(x))
    result = at.op("Mul", at.raised(plain, rank), at.raised(scale, rank))
    if any(bias):
        result = at.op("Add", result, at.raised(bias[0], rank))
    at.name_as(result, node.output[0])
    return set() if at.carries(x) else set(filter(None, node.output[1:]))
