"""Reshapes of rows that are right for every size, 0 included."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from passes.ir.versions import ZERO_IS_A_SIZE
from passes.types.value_types import Dim
from passes.vectorize.merging import Size, row_size
from passes.vectorize.vectorizer import Vectorizer
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
