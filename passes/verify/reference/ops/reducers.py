"""Reductions of integers, and over nothing."""

from __future__ import annotations

import warnings

import numpy as np

from passes.verify.executor import Array
from passes.verify.reference.registry import KernelCall, implements


@implements("ReduceLogSum", "ReduceLogSumExp")
def logarithms(call: KernelCall, x: Array, *axes: Array | None) -> Array:
    """ReduceLogSum and ReduceLogSumExp, whose inputs may be integers up to version 18.

    Integers are reduced as doubles and cut off, as onnxruntime does.
    """
    if not x.ndim:
        # onnx's own stumbles over a scalar.
        return np.asarray(logarithms(call, x.reshape(1), *axes)).reshape(())
    if x.dtype.kind not in "iu":
        result: Array = call.onnx(x, *axes)[0]
        return result
    exact: Array = call.onnx(x.astype(np.float64), *axes)[0]
    return exact.astype(x.dtype)


@implements("ReduceSumSquare")
def sum_square(call: KernelCall, x: Array, *axes: Array | None) -> Array:
    """ReduceSumSquare: the type of the input is kept."""
    result: Array = call.onnx(x, *axes)[0]
    return np.asarray(result, x.dtype)


@implements("ReduceMean")
def mean(call: KernelCall, x: Array, *axes: Array | None) -> Array:
    """ReduceMean: 0 over an empty axis, which the documents leave open, as in onnxruntime."""
    if _keeps_all(call, axes):
        return x
    with warnings.catch_warnings():
        # numpy warns of the mean of nothing.
        warnings.simplefilter("ignore", RuntimeWarning)
        result: Array = call.onnx(x, *axes)[0]
    return result if x.size or not result.size else np.zeros_like(result)


@implements("ReduceSum", since=13)
def total(call: KernelCall, x: Array, *axes: Array | None) -> Array:
    """ReduceSum-13: onnx's kernel adds 0 where nothing is reduced, which makes 0.0 of -0.0."""
    result: Array = x if _keeps_all(call, axes) else call.onnx(x, *axes)[0]
    return result


def _keeps_all(call: KernelCall, axes: tuple[Array | None, ...]) -> bool:
    """Return whether no axis is reduced."""
    given = axes[0] if axes else None
    return bool(call.get("noop_with_empty_axes", 0)) and (given is None or not given.size)
