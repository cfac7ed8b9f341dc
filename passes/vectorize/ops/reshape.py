"""Reshape: its shape may copy a size (0) or leave one to be inferred (-1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attribute
from passes.ir.versions import ZERO_IS_A_SIZE
from passes.vectorize.reshaping import row_shape
from passes.vectorize.vectorizer import Vectorizer, batched

_INFERRED = -1


@batched("Reshape")
def reshape(node: NodeProto, ctx: Vectorizer) -> None:
    """The new axis comes first, and stays as it was."""
    ctx.only_rows(node, 1)
    x, shape = node.input
    fixed = _fixed(node, ctx)
    if fixed is not None and (_INFERRED not in fixed or ctx.has_rows()):
        _to_constant(node, ctx, fixed)
    elif ctx.has_rows():
        exact = attribute(node, "allowzero", 0)
        lead = ctx.axis.size if exact else ctx.ints(0)
        ctx.again(node, [x, ctx.op("Concat", lead, shape, axis=0)])
    else:
        _to_computed(node, ctx)


def _fixed(node: NodeProto, ctx: Vectorizer) -> list[int] | None:
    """The shape where it is constant, with -1 only where inference cannot find the size."""
    known = ctx.constant(node.input[1])
    if known is None:
        return None
    sizes = [int(size) for size in known]
    if _INFERRED in sizes and (ctx.axis.unguarded or not ctx.axis.nonempty):
        found = ctx.dims(node.output[0])[sizes.index(_INFERRED)]
        if isinstance(found, int) and found > 0:
            sizes[sizes.index(_INFERRED)] = found
    return sizes


def _to_constant(node: NodeProto, ctx: Vectorizer, sizes: Sequence[int]) -> None:
    """A 0 copies the dim at its place, so that it does for the new axis, too."""
    x = node.input[0]
    if attribute(node, "allowzero", 0) and 0 in sizes:
        ctx.again(node, [x, ctx.op("Concat", ctx.axis.size, ctx.ints(*sizes), axis=0)])
    elif ctx.opset < ZERO_IS_A_SIZE:
        ctx.again(node, [x, ctx.ints(0, *sizes)])
    else:
        ctx.again(node, [x, ctx.ints(0, *sizes)], allowzero=None)


def _to_computed(node: NodeProto, ctx: Vectorizer) -> None:
    """The inferred size is computed if there are no rows, since it cannot be inferred from them.

    Where there are rows the -1 stays, and fails where it fails in a row.
    """
    x, shape = node.input
    if ctx.opset < ZERO_IS_A_SIZE and not _has_elements(ctx, x):
        ctx.refuse("may-be-empty", "a Reshape to a size that may be 0 needs opset 14", x)
    row = row_shape(ctx, x)
    sizes = shape if attribute(node, "allowzero", 0) else _without_zeros(ctx, x, shape, row)
    inferred = ctx.op("Equal", sizes, ctx.ints(_INFERRED))
    others = ctx.op("Where", inferred, ctx.ints(1), sizes)
    left = ctx.op("Div", _total(ctx, row), ctx.op("Max", _total(ctx, others), ctx.ints(1)))
    empty = ctx.op("Equal", ctx.axis.size, ctx.ints(0))
    resolved = ctx.op("Where", ctx.op("And", empty, inferred), left, sizes)
    inputs = [x, ctx.op("Concat", ctx.axis.size, resolved, axis=0)]
    if ctx.opset < ZERO_IS_A_SIZE:
        # The axis itself may be 0 there: it is copied.
        ctx.again(node, [x, ctx.op("Concat", ctx.ints(0), resolved, axis=0)])
    else:
        ctx.again(node, inputs, allowzero=1)


def _has_elements(ctx: Vectorizer, name: str) -> bool:
    return all(isinstance(dim, int) and dim > 0 for dim in ctx.dims(name))


def _without_zeros(ctx: Vectorizer, x: str, shape: str, row: str) -> str:
    """Return the shape with the sizes of the row in place of zeros."""
    (length,) = ctx.dims(shape)
    if not isinstance(length, int):
        ctx.refuse("unknown-rank", f"the rank that {shape!r} asks for is unknown", shape)
    missing = length - ctx.rank(x)
    if missing > 0:
        ones = ctx.value(np.ones(missing, np.int64), "ones")
        row = ctx.op("Concat", row, ones, axis=0)
    elif missing < 0:
        row = ctx.op("Slice", row, ctx.ints(0), ctx.ints(length))
    return ctx.op("Where", ctx.op("Equal", shape, ctx.ints(0)), row, shape)


def _total(ctx: Vectorizer, sizes: str) -> str:
    """The product of sizes, int64 [1]; 1 for none."""
    one = ctx.ints(1)
    return ctx.op("ReduceProd", ctx.op("Concat", one, sizes, axis=0), keepdims=1)
