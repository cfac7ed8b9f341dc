"""Writes axes of a row, counted after the new leading one."""

from __future__ import annotations

import numpy as np
from onnx import helper

from passes.vectorize.vectorizer import Vectorizer


def shifted(axis: int) -> int:
    """An axis of a row in the batched value; one that counts from the back stays."""
    return axis + 1 if axis >= 0 else axis


def reduced(ctx: Vectorizer, name: str, axis: int) -> int:
    """An axis of a row to reduce, in the batched value.

    onnxruntime gives a wrong shape where the value is empty and the axis counts from the back.
    """
    if axis >= 0 or ctx.axis.nonempty:
        return shifted(axis)
    return axis + ctx.rank(name) + 1


def shifted_input(ctx: Vectorizer, name: str, reduces: str = "") -> str:
    """Return an input of axes (int64, of any shape), counted after the new axis.

    `reduces` is the value that a reducer takes them of: see `reduced`.
    """

    def counted(axis: int) -> int:
        return reduced(ctx, reduces, axis) if reduces else shifted(axis)

    known = ctx.constant(name)
    if known is not None:
        axes = np.array([counted(int(axis)) for axis in known.ravel()], np.int64)
        return ctx.value(axes.reshape(known.shape), "axes")
    ours = ctx.op("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)))
    back = counted(-1) + 1  # what is added to axes that count from the back
    low = ctx.op("Add", ours, ctx.int(back)) if back else ours
    high = ctx.op("Add", ours, ctx.int(1))
    return ctx.op("Where", ctx.op("Less", ours, ctx.int(0)), low, high)


def all_axes(rank: int) -> range:
    """Every axis of a row, in the batched value."""
    return range(1, rank + 1)
