"""Ops that look elements up by their place in a row, or put them there."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto, TensorProto

from passes.vectorize.axes import attribute, shifted
from passes.vectorize.vectorizer import Vectorizer, batched
from passes.writing import spelling


@batched("Gather")
def gather(node: NodeProto, at: Vectorizer) -> None:
    """Each row looks up in its own data, or all in the same."""
    data, indices = node.input
    axis = attribute(node, "axis", 0)
    at.name_as(taken(at, data, indices, axis), node.output[0])


def taken(at: Vectorizer, data: str, indices: str, axis: int) -> str:
    """Gather along an axis of a row; at least one of `data` and `indices` carries the axis."""
    rank = at.rank(data)
    axis = axis + rank if axis < 0 else axis
    if not at.carries(indices):
        return at.op("Gather", data, indices, axis=axis + 1)
    count = at.rank(indices)
    if not at.carries(data):
        found = at.op("Gather", data, indices, axis=axis)
        return _moved(at, found, axis, 0, rank + count)  # [before, B, indices, behind]
    wanted = spelling.unsqueeze(at.author, _int64(at, indices), -1)
    places = _moved(at, data, axis + 1, 1, rank + 1)
    found = at.op("GatherND", places, wanted, batch_dims=1)  # [B, indices, before, behind]
    if not (axis and count):
        return found
    behind = 1 + count + axis
    perm = [0, *range(1 + count, behind), *range(1, 1 + count), *range(behind, rank + count)]
    return at.op("Transpose", found, perm=perm)


def _int64(at: Vectorizer, indices: str) -> str:
    if at.elem_type(indices) == TensorProto.INT64:
        return indices
    return at.op("Cast", indices, to=TensorProto.INT64)


def _moved(at: Vectorizer, value: str, source: int, target: int, rank: int) -> str:
    """`value` with one of its axes at another place."""
    if source == target:
        return value
    perm = [axis for axis in range(rank) if axis != source]
    perm.insert(target, source)
    return at.op("Transpose", value, perm=perm)


@batched("GatherElements")
def gather_elements(node: NodeProto, at: Vectorizer) -> None:
    """Data and indices have one rank and do not broadcast."""
    data, indices = node.input
    axis = attribute(node, "axis", 0)
    if at.rank(data) == 1 and not at.carries(data):
        at.op("Gather", data, indices, outputs=list(node.output), axis=0)
    else:
        at.again(node, [at.spread(data), at.spread(indices)], axis=shifted(axis))


@batched("GatherND")
def gather_nd(node: NodeProto, at: Vectorizer) -> None:
    """The new axis is one more batch axis of the op."""
    data, indices = node.input
    batch = attribute(node, "batch_dims", 0)
    if at.carries(data) or batch:
        at.again(node, [at.spread(data), at.spread(indices)], batch_dims=batch + 1)
    else:
        at.again(node)


@batched("ScatterElements")
def scatter_elements(node: NodeProto, at: Vectorizer) -> None:
    """All operands have one rank and do not broadcast."""
    axis = shifted(attribute(node, "axis", 0))
    at.again(node, [at.spread(name) for name in node.input], axis=axis)


@batched("ScatterND")
def scatter_nd(node: NodeProto, at: Vectorizer) -> None:
    """Places get the number of their row in front."""
    data, indices, updates = (at.spread(name) for name in node.input)
    at.again(node, [data, _with_row(at, indices, at.rank(node.input[1])), updates])


def _with_row(at: Vectorizer, indices: str, rank: int) -> str:
    """[B, ..., K] to [B, ..., 1 + K]: the row in front of each place; `rank` is that of a row."""
    numbers = spelling.arange(at.author, at.axis.size)
    numbers = spelling.unsqueeze_axes(at.author, numbers, range(1, rank + 1))
    lead = at.op("Slice", at.op("Shape", indices), at.author.ints(0), at.author.ints(-1))
    shape = at.op("Concat", lead, at.author.ints(1), axis=0)
    return at.op("Concat", at.op("Expand", numbers, shape), indices, axis=-1)


@batched("OneHot")
def one_hot(node: NodeProto, at: Vectorizer) -> None:
    """Values of each row are looked up where the shared op says 1 or 0."""
    at.only_rows(node, 1)
    indices, depth, values = node.input
    axis = attribute(node, "axis", -1)
    there = shifted(axis) if at.carries(indices) else axis
    if not at.carries(values):
        at.again(node, axis=there)
        return
    wanted = [_int64(at, indices), _int64(at, depth)]
    bits = at.author.constant(np.array([0, 1], np.int64), "bits")
    hot = at.op("OneHot", *wanted, bits, axis=there)
    dims = at.dims(node.output[0])
    at.note(hot, TensorProto.INT64, dims, carries=at.carries(indices))
    at.name_as(taken(at, values, hot, 0), node.output[0])


@batched("Compress")
def compress(node: NodeProto, at: Vectorizer) -> None:
    """The condition must be shared; without an axis the elements of a row are one list."""
    at.only_rows(node, 1)
    x, condition = node.input
    axis = next((one.i for one in node.attribute if one.name == "axis"), None)
    if axis is None:
        at.again(node, [at.op("Flatten", x, axis=1), condition], axis=1)
    else:
        at.again(node, axis=shifted(axis))


@batched("NonZero", "Unique")
def counted(node: NodeProto, at: Vectorizer) -> None:
    """How much comes out depends on the values of a row.

    Raises:
        Refused: `batched-operand`, always.
    """
    at.only_rows(node, 0)
