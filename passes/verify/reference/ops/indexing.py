"""The gathers, the scatters, OneHot: places out of range are errors. Also Unique."""

from __future__ import annotations

import numpy as np

from passes.types.dtypes import is_float
from passes.verify.executor import Array
from passes.verify.reference.ops.layout import normalized, see_room, see_shape
from passes.verify.reference.registry import KernelCall, implements


@implements("Gather")
def gather(call: KernelCall, data: Array, indices: Array) -> Array:
    """Gather-1 to -13: the elements of `indices` along one axis, of any rank.

    Raises IndexError outside of -n..n-1, also if the result is empty.
    """
    (axis,) = normalized([call.get("axis")], data.ndim)
    _see_range(indices, data.shape[axis])
    return np.asarray(np.take(data, indices, axis))


@implements("GatherElements")
def gather_elements(call: KernelCall, data: Array, indices: Array) -> Array:
    """GatherElements-11 and -13: `indices` has the rank of `data` and may be smaller in it.

    Raises IndexError outside of -n..n-1, ValueError for another rank.
    """
    return np.asarray(data[_places(call, data, indices)])


@implements("GatherND")
def gather_nd(call: KernelCall, data: Array, indices: Array) -> Array:
    """GatherND-11 to -13: the last axis of `indices` holds indices into the axes after
    `batch_dims`.

    Raises IndexError outside of -n..n-1, ValueError for shapes that do not fit.
    """
    batch = call.get("batch_dims", 0)
    if not 0 <= batch < min(data.ndim, indices.ndim):
        raise ValueError(f"batch_dims {batch} do not fit {data.ndim} and {indices.ndim} dimensions")
    depth, rest = indices.shape[-1], indices.ndim - 1 - batch
    if data.shape[:batch] != indices.shape[:batch] or not 1 <= depth <= data.ndim - batch:
        raise ValueError(f"indices of shape {indices.shape} for data of shape {data.shape}")
    rows = (index.reshape(*index.shape, *[1] * rest) for index in np.indices(indices.shape[:batch]))
    return np.asarray(data[(*rows, *np.moveaxis(indices, -1, 0))])


@implements("Unique")
def unique(call: KernelCall, x: Array) -> tuple[Array, ...]:
    """Unique-11: of all elements if there is no `axis`; unsorted, by their first places."""
    axis = call.get("axis")
    found, *places = np.unique(x, True, True, True, axis=axis)
    first, inverse, counts = (np.asarray(one, np.int64).reshape(-1) for one in places)
    if not call.get("sorted", 1):
        order = np.argsort(first)
        rank = np.argsort(order)
        found = np.take(found, order, axis=0 if axis is None else axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return np.asarray(found), first, inverse, counts


@implements("Scatter", since=9, until=10)
@implements("ScatterElements")
def scatter_elements(call: KernelCall, data: Array, indices: Array, updates: Array) -> Array:
    """Scatter-9 and ScatterElements-11 to -18: `updates` has the shape of `indices`; of several
    for one place the last wins, unless there is a `reduction`.

    Raises IndexError outside of -n..n-1, ValueError for shapes that do not fit.
    """
    if updates.shape != indices.shape:
        raise ValueError(f"updates of shape {updates.shape} for indices of shape {indices.shape}")
    places = _places(call, data, indices)
    if call.get("reduction", "none") != "none":
        return np.asarray(call.onnx(data, indices, updates)[0])
    result: Array = data.copy()
    result[places] = updates
    return result


@implements("ScatterND")
def scatter_nd(call: KernelCall, data: Array, indices: Array, updates: Array) -> Array:
    """ScatterND-11 to -18: the last axis of `indices` holds places, each with its update; of
    several for one place the last wins, unless there is a `reduction`.

    Raises IndexError outside of -n..n-1, ValueError for shapes that do not fit.
    """
    *rows, depth = indices.shape
    if depth > data.ndim or updates.shape != (*rows, *data.shape[depth:]):
        raise ValueError(
            f"updates of shape {updates.shape} for indices of shape {indices.shape} "
            f"and data of shape {data.shape}"
        )
    if call.get("reduction", "none") != "none":
        return np.asarray(call.onnx(data, indices, updates)[0])
    result: Array = data.copy()
    result[tuple(np.moveaxis(indices, -1, 0))] = updates
    return result


@implements("OneHot")
def one_hot(call: KernelCall, indices: Array, depth: Array, values: Array) -> Array:
    """OneHot-9 and -11: `depth` is one number of any type, shape [] or [1].

    Fractions of indices, and of the depth, are cut off (cast to int64). Indices outside of
    -depth..depth-1 give a row of the off value. Raises ValueError for a depth below 1 and other
    values than two.
    """
    see_shape((2,), values)
    if is_float(indices.dtype):
        indices = indices.astype(np.int64)
    count = int(np.asarray(depth).reshape(()).item())
    if count < 1:
        raise ValueError(f"depth is {count}")
    rank = indices.ndim + 1
    (axis,) = normalized([call.get("axis")], rank)
    wrapped = np.where(indices < 0, indices + count, indices)
    shape = [1] * rank
    shape[axis] = count
    hot = np.expand_dims(wrapped, axis) == np.arange(count).reshape(shape)
    return np.asarray(np.where(hot, values[1], values[0]))


def _places(call: KernelCall, data: Array, indices: Array) -> tuple[Array, ...]:
    """The place in `data` of every entry of `indices`, as one index array per axis."""
    if indices.ndim != data.ndim or data.ndim == 0:
        raise ValueError(f"indices are {indices.ndim}-d, data is {data.ndim}-d")
    (axis,) = normalized([call.get("axis")], data.ndim)
    _see_range(indices, data.shape[axis])
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return tuple(places)


@implements("Expand", since=8)
def expand(call: KernelCall, x: Array, shape: Array) -> Array:
    """Expand-8 and -13; onnx's kernel multiplies by one, and so changes complex -0.0 and Inf."""
    sizes = np.broadcast_shapes(x.shape, tuple(int(size) for size in shape))
    see_room(call, sizes)
    return np.broadcast_to(x, sizes).copy()


def _see_range(indices: Array, size: int) -> None:
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise IndexError(f"indices must lie in {-size}..{size - 1}")
