"""Attention and its rotary embedding: the new axis is merged into their batch."""

from __future__ import annotations

from onnx import NodeProto

from passes.vectorize.merging import Merging, over_batch
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling

_MASK = 3
_MASK_RANK = 4  # batch, heads, queries, keys


@batched("Attention")
def attention(node: NodeProto, ctx: Vectorizer) -> None:
    """Each element of the batch attends by itself; a mask may be shared, by heads or by all."""
    merging = Merging.like(ctx, node.input[0])
    inputs = [
        _mask(node, merging, name) if place == _MASK and name else merging.merged(name)
        for place, name in enumerate(node.input)
    ]
    merging.write(node, inputs, "attention")


def _mask(node: NodeProto, merging: Merging, name: str) -> str:
    """A mask that is not one for all has the merged axis in front."""
    ctx = merging.ctx
    dims = ctx.dims(name)
    by_batch = len(dims) == _MASK_RANK and dims[0] != 1
    known = dims[0] is not None and dims[0] == ctx.dims(node.input[0])[0]
    if by_batch and known:
        return merging.merged(name)
    if by_batch or (ctx.carries(name) and merging.rows != 1):
        ctx.refuse("batched-operand", f"the mask {name!r} may not be one for each element", name)
    if not ctx.carries(name):
        return name
    if len(dims) == _MASK_RANK:
        return merging.merged(name)
    missing = _MASK_RANK - 1 - len(dims)
    return spelling.unsqueeze_axes(ctx, name, range(1, 1 + missing))


@batched("RotaryEmbedding")
def rotary_embedding(node: NodeProto, ctx: Vectorizer) -> None:
    """The caches are looked up by position, or have a batch axis where there are no positions."""
    by_position = len(node.input) > _MASK and bool(node.input[_MASK])
    over_batch(node, ctx, {0, _MASK} if by_position else {0, 1, 2})
