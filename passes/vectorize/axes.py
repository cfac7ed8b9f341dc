"""Axes of a row, counted behind the new one."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from onnx import NodeProto, helper

from passes.vectorize.vectorizer import Vectorizer


def shifted(axis: int) -> int:
    """An axis of a row in the batched value; one that counts from the back stays."""
    return axis + 1 if axis >= 0 else axis


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


def shifted_input(at: Vectorizer, name: str) -> str:
    """An input of axes (int64, of any shape), counted behind the new axis."""
    known = at.constant(name)
    if known is not None:
        moved = [shifted(int(axis)) for axis in known.ravel()]
        return at.author.constant(np.array(moved, np.int64).reshape(known.shape), "axes")
    ours = at.op("Cast", name, to=helper.np_dtype_to_tensor_dtype(np.dtype(np.int64)))
    zero, one = (at.author.constant(np.array(value, np.int64), "int") for value in (0, 1))
    return at.op("Where", at.op("Less", ours, zero), ours, at.op("Add", ours, one))


def all_axes(rank: int) -> Iterable[int]:
    """Every axis of a row, in the batched value."""
    return range(1, rank + 1)
