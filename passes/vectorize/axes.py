"""Axes of a row, counted behind the new one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import NodeProto, helper

from passes.vectorize.vectorizer import Vectorizer


def shifted(axis: int) -> int:
    """An axis of a row in the batched value; one that counts from the back stays."""
    return axis + 1 if axis >= 0 else axis


def reduced(at: Vectorizer, name: str, axis: int) -> int:
    """An axis of a row to reduce, in the batched value.

    onnxruntime gives a wrong shape where the value is empty and the axis counts from the back.
    """
    if axis >= 0 or at.axis.nonempty:
        return shifted(axis)
    return axis + at.rank(name) + 1


def attribute(node: NodeProto, name: str, default: int) -> int:
    """An int attribute."""
    return next((one.i for one in node.attribute if one.name == name), default)


def attributes(node: NodeProto, name: str) -> list[int] | None:
    """An attribute of ints, None where it is left out."""
    return next((list(one.ints) for one in node.attribute if one.name == name), None)


def text(node: NodeProto, name: str, default: str) -> str:
    """A string attribute."""
    return next((one.s.decode() for one in node.attribute if one.name == name), default)


def has(node: NodeProto, name: str) -> bool:
    """Whether an attribute is given."""
    return any(one.name == name for one in node.attribute)


def shifted_input(at: Vectorizer, name: str, reduces: str = "") -> str:
    """An input of axes (int64, of any shape), counted behind the new axis.

    `reduces` is the value that a reducer takes them of: see `reduced`.
    """

    def moved(axis: int) -> int:
        return reduced(at, reduces, axis) if reduces else shifted(axis)

    known = at.constant(name)
    if known is not None:
        axes = np.array([moved(int(axis)) for axis in known.ravel()], np.int64)
        return at.author.constant(axes.reshape(known.shape), "axes")
    ours = at.op("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)))
    back = moved(-1) + 1  # what is added to axes that count from the back
    low = at.op("Add", ours, at.author.int(back)) if back else ours
    high = at.op("Add", ours, at.author.int(1))
    return at.op("Where", at.op("Less", ours, at.author.int(0)), low, high)


def all_axes(rank: int) -> Iterable[int]:
    """Every axis of a row, in the batched value."""
    return range(1, rank + 1)
