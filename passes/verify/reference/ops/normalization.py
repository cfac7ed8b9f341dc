"""Normalization, in the precision that `stash_type` asks for; LRN, LpNormalization, Softmax."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from passes.verify.executor import Array, CannotRun
from passes.verify.reference.failures import described
from passes.verify.reference.ops.layout import flatten, see_shape
from passes.verify.reference.registry import KernelCall, implements


@implements("LRN")
def lrn(call: KernelCall, x: Array) -> Array:
    """LRN-1 and -13: `x` [N, C, ...], normalised over `size` neighbouring channels."""
    size, channels = call.get("size"), x.shape[1]
    before, after = (size - 1) // 2, size // 2
    squares = np.square(x)
    sums = np.stack(
        [squares[:, max(0, c - before) : c + after + 1].sum(1) for c in range(channels)], 1
    )
    scale = call.get("bias", 1.0) + call.get("alpha", 1e-4) / size * sums
    return np.asarray(x / scale ** call.get("beta", 0.75), x.dtype)


@implements("LpNormalization")
def lp_normalization(call: KernelCall, x: Array) -> Array:
    """LpNormalization-1 and -22: divided by the 1- or 2-norm along `axis`; 0 where it is 0."""
    axis, p = call.get("axis", -1), call.get("p", 2)
    norm = np.abs(x).sum(axis, keepdims=True)
    if p == 2:
        norm = np.sqrt(np.square(x).sum(axis, keepdims=True))
    return np.asarray(np.where(norm == 0, 0, x / norm), x.dtype)


@implements("LayerNormalization", since=17)
def layer_normalization(
    call: KernelCall, x: Array, scale: Array, bias: Array | None = None
) -> tuple[Array, Array, Array]:
    """LayerNormalization-17: over the axes from `axis` on; Mean and InvStdDev in `stash_type`."""
    axes = tuple(range(call.get("axis", -1) % max(x.ndim, 1), x.ndim))
    wide = x.astype(_stashed(call))
    mean = wide.mean(axes, keepdims=True, dtype=wide.dtype)
    spread = _spread(wide - mean, axes, call)
    y = ((wide - mean) / spread).astype(x.dtype) * scale
    return np.asarray(y if bias is None else y + bias, x.dtype), mean, 1 / spread


@implements("RMSNormalization", since=23)
def rms_normalization(call: KernelCall, x: Array, scale: Array) -> Array:
    """RMSNormalization-23: divided by the root of the mean square, in the type of `scale`."""
    axes = tuple(range(call.get("axis", -1) % max(x.ndim, 1), x.ndim))
    wide = x.astype(_stashed(call))
    normal = (wide / _spread(wide, axes, call)).astype(x.dtype)
    return np.asarray(normal.astype(scale.dtype) * scale, scale.dtype)


@implements("GroupNormalization", since=18)
def group_normalization(call: KernelCall, x: Array, scale: Array, bias: Array) -> Array:
    """GroupNormalization-18 and -21: `x` [N, C, ...], scale and bias by group, by channel from 21.

    The variance is the mean of squared deviations: the function body subtracts squares, which loses
    digits. Version 18 computes in the type of `x`.
    """
    by_channel = call.version >= 21
    groups = call.get("num_groups")
    see_shape(x.shape[1:2] if by_channel else (groups,), scale, bias)
    wide = x.astype(_stashed(call) if by_channel else x.dtype)
    wide = wide.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    axes = tuple(range(2, wide.ndim))
    deviation = wide - wide.mean(axes, keepdims=True, dtype=wide.dtype)
    normal = (deviation / _spread(deviation, axes, call)).astype(x.dtype)
    shape = (1, groups, -1 if by_channel else 1, *[1] * (x.ndim - 2))
    return np.asarray(normal * scale.reshape(shape) + bias.reshape(shape), x.dtype).reshape(x.shape)


@implements("InstanceNormalization", since=6)
def instance_normalization(call: KernelCall, x: Array, scale: Array, bias: Array) -> Array:
    """InstanceNormalization-6 and -22: per row and channel, small floats as float, as onnxruntime
    computes them; the document leaves it open."""
    see_shape(x.shape[1:2], scale, bias)
    wide = x if x.dtype.itemsize >= 4 else x.astype(np.float32)
    axes = tuple(range(2, x.ndim))
    each = (1, -1, *[1] * (x.ndim - 2))
    deviation = wide - wide.mean(axes, keepdims=True, dtype=wide.dtype)
    normal = deviation / _spread(deviation, axes, call)
    y = normal * scale.astype(wide.dtype).reshape(each) + bias.astype(wide.dtype).reshape(each)
    return np.asarray(y, x.dtype)


def _stashed(call: KernelCall) -> np.dtype[Any]:
    """The type of the first stage."""
    return helper.tensor_dtype_to_np_dtype(call.get("stash_type", TensorProto.FLOAT))


def _spread(deviation: Array, axes: tuple[int, ...], call: KernelCall) -> Array:
    """The root of the mean square, and of epsilon."""
    squares = (deviation * deviation).mean(axes, keepdims=True, dtype=deviation.dtype)
    return np.asarray(np.sqrt(squares + np.asarray(call.get("epsilon"), deviation.dtype)))


@implements("BatchNormalization", since=7, until=13)
def batch_normalization(
    call: KernelCall, x: Array, scale: Array, bias: Array, mean: Array, var: Array
) -> Array:
    """BatchNormalization-7 and -9: `x` [N, C, ...], statistics per channel [C].

    With `spatial=0` (opsets 7 and 8) there is one per channel and place: [C, ...]. One output
    means inference; more of them mean training, which raises CannotRun.
    """
    if call.outputs > 1:
        raise CannotRun(f"{described(call.node)}: training below opset 14 is not implemented")
    if call.get("spatial", 1):
        see_shape(x.shape[1:2], scale, bias, mean, var)
        result: Array = call.onnx(
            x, scale, bias, mean, var, version=15, spatial=None, momentum=None
        )[0]
        return result
    epsilon = np.asarray(call.get("epsilon"), x.dtype)
    return np.asarray(scale * (x - mean) / np.sqrt(var + epsilon) + bias, x.dtype)


@implements("BatchNormalization", since=14)
def newer_batch_normalization(call: KernelCall, x: Array, *parameters: Array) -> Any:
    """BatchNormalization-14 and -15: statistics per channel [C], else ValueError."""
    see_shape(x.shape[1:2] if x.ndim > 1 else (1,), *parameters)
    return call.onnx(x, *parameters)


@implements("Softmax", "LogSoftmax", "Hardmax", until=12)
def flattened(call: KernelCall, x: Array) -> Array:
    """Softmax-1, -11 and kin (operator documents): `x` float [d0, ..., dn], same shape out.

    The input is taken as a matrix, the dims before `axis` (default 1) as its rows; from
    opset 13 on only the axis itself counts. Raises ValueError for an axis out of range.
    """
    matrix = flatten(call, x)
    if x.size == 0:
        return x.copy()
    # The newest kernel on the last axis: a converted model then gives the same bits.
    result: Array = call.onnx(matrix, version=13, axis=1)[0]
    return result.reshape(x.shape)


@implements("LogSoftmax", since=13)
def log_softmax(call: KernelCall, x: Array) -> Any:
    """LogSoftmax-13: `x` float of any shape, same shape out.

    onnx's kernel writes into an empty input, which may be read-only.
    """
    return x.copy() if x.size == 0 else call.onnx(x)
