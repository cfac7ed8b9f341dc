"""Reshape, whose shape may copy a size (0) or leave one to be inferred (-1), and reshapes of rows
that are right for every size, 0 included."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attribute
from passes.ir.versions import ZERO_IS_A_SIZE
from passes.types.value_types import Dim
from passes.vectorize.merging import Size, row_size
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling


def row_shape(ctx: Vectorizer, name: str) -> str:
    """The shape of one row of a value, int64 vector."""
    if not ctx.carries(name):
        return ctx.op("Shape", name)
    return spelling.rest_of_shape(ctx, name, 1)


def grouped(ctx: Vectorizer, value: str, groups: Sequence[Sequence[int]]) -> str:
    """[B, ...] reshaped so that each axis of a row is the product of a group of its axes."""
    dims = ctx.dims(value)
    known = [_known_product([dims[axis] for axis in group]) for group in groups]
    vague = known.count(None)
    if not vague or (vague == 1 and ctx.has_rows()):
        sizes = [-1 if size is None else size for size in known]
        return ctx.op("Reshape", value, ctx.ints(0, *sizes))
    products = [_product(ctx, [row_size(ctx, value, axis) for axis in group]) for group in groups]
    return exactly(ctx, value, [ctx.axis.size, *products])


def _known_product(dims: Sequence[Dim]) -> int | None:
    """The product where it is known and not 0, which a Reshape takes for 'as it was'."""
    known = [dim for dim in dims if isinstance(dim, int) and dim]
    return prod(known) if len(known) == len(dims) else None


def _product(ctx: Vectorizer, sizes: Sequence[Size]) -> Size:
    known = prod(size for size in sizes if isinstance(size, int))
    names = [size for size in sizes if isinstance(size, str)]
    if not names or not known:
        return known
    value, *others = [*names, *([ctx.ints(known)] if known != 1 else [])]
    for other in others:
        value = ctx.op("Mul", value, other)
    return value


def exactly(ctx: Vectorizer, value: str, sizes: Sequence[Size]) -> str:
    """`value` in this very shape, in which a 0 is a size.

    Raises:
        Refused: `may-be-empty` before opset 14, where a Reshape cannot express it.
    """
    if ctx.opset < ZERO_IS_A_SIZE:
        ctx.refuse("may-be-empty", "a Reshape to a size that may be 0 needs opset 14", value)
    parts = [size if isinstance(size, str) else ctx.ints(size) for size in sizes]
    return spelling.reshaped(ctx, value, spelling.joined(ctx, parts))


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
