"""Quantization, large numbers and NaN included, and DequantizeLinear below opset 19."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from onnx import helper

from passes.types.dtypes import is_float
from passes.verify.executor import Array
from passes.verify.reference.ops.layout import see_shape
from passes.verify.reference.registry import KernelCall, implements

#: Far beyond what any whole type holds, and within int32 after the zero point is added.
_FAR = 1 << 30


@implements("QuantizeLinear", since=10)
def quantize_linear(call: KernelCall, x: Array, scale: Array, zero: Array | None = None) -> Any:
    """QuantizeLinear-10 to -25: x / scale + zero, rounded to even and saturated.

    onnx's kernel casts to int32, which quotients that are larger, infinite or NaN overflow. The
    document leaves NaN open: it becomes what Cast makes of it, so that it is the same written out.
    ValueError unless scale and zero point have one shape.
    """
    _see_zero(scale, zero)
    with np.errstate(all="ignore"):
        (y,) = call.onnx(x, scale, zero)
        if is_float(y.dtype):
            return (y,)
        scale = _spread(scale, x, call)
        if precision := call.get("precision", 0):
            dtype = helper.tensor_dtype_to_np_dtype(precision)
            x, scale = x.astype(dtype), scale.astype(dtype)
        quotient = (x / scale).astype(np.float64)
    limits = ml_dtypes.iinfo(y.dtype)
    y = np.where(quotient > _FAR, np.asarray(limits.max, y.dtype), y)
    y = np.where(quotient < -_FAR, np.asarray(limits.min, y.dtype), y)
    with np.errstate(all="ignore"):
        unknown = np.asarray(np.nan, np.float32).astype(y.dtype)
    return (np.where(np.isnan(quotient), unknown, y),)


@implements("DynamicQuantizeLinear")
def dynamic_quantize_linear(call: KernelCall, x: Array) -> tuple[Array, Array, Array]:
    """DynamicQuantizeLinear-11: as by the function body of the document, also where `x` has NaN."""
    low, high = (np.asarray(of(x, initial=0), np.float32) for of in (np.min, np.max))
    with np.errstate(all="ignore"):
        scale = (high - low) / np.float32(255)
        zero = np.rint(np.clip(-low / scale, 0, 255)).astype(np.uint8)
        quotient = np.rint(x / scale) + zero.astype(np.float32)
        y = np.clip(quotient, 0, 255).astype(np.uint8)
    return y, scale, zero


def _spread(scale: Array, x: Array, call: KernelCall) -> Array:
    """The scale of each element, in a shape that broadcasts to that of `x`."""
    block = call.get("block_size", 0)
    if scale.size == 1 or not block:
        return _along(scale, x, call)
    axis = call.get("axis", 1)
    return np.take(np.repeat(scale, block, axis), range(x.shape[axis]), axis)


@implements("QLinearMatMul", "QLinearConv")
def quantized_product(call: KernelCall, *operands: Array | None) -> Any:
    """QLinearMatMul and QLinearConv: NotImplementedError where NaN is quantized, as where the sum
    is 0 and its scale infinite: onnx's kernels make 0 of it, onnxruntime the smallest number."""
    try:
        with np.errstate(all="ignore", invalid="raise"):
            return call.onnx(*operands)
    except FloatingPointError:
        raise NotImplementedError("the document leaves open what NaN is quantized to") from None


def _see_zero(scale: Array, zero: Array | None) -> None:
    if zero is not None and not scale.size == zero.size == 1:
        see_shape(scale.shape, zero)


@implements("DequantizeLinear", since=19)
def newer_dequantize_linear(
    call: KernelCall, x: Array, scale: Array, zero: Array | None = None
) -> Any:
    """DequantizeLinear-19 and later: ValueError unless scale and zero point have one shape."""
    _see_zero(scale, zero)
    return call.onnx(x, scale, zero)


@implements("DequantizeLinear", since=10, until=18)
def dequantize_linear(call: KernelCall, x: Array, scale: Array, zero: Array | None = None) -> Array:
    """DequantizeLinear-10 and -13: (x - zero) * scale, float32.

    `x` int8, uint8 or int32; `scale` and `zero` one number, or (from 13) one per place of
    `axis` (default 1). Raises ValueError where they do not fit.
    """
    _see_zero(scale, zero)
    whole = x.astype(np.int64)
    if zero is not None:
        whole = whole - _along(zero.astype(np.int64), x, call)
    return np.asarray(whole.astype(np.float32) * _along(scale, x, call), np.float32)


def _along(values: Array, x: Array, call: KernelCall) -> Array:
    if values.size == 1:
        return values.reshape(())
    axis = call.get("axis", 1)
    if not -x.ndim <= axis < x.ndim or values.shape != (x.shape[axis],):
        raise ValueError(f"scales of shape {values.shape} do not fit axis {axis} of {x.shape}")
    shape = [1] * x.ndim
    shape[axis] = -1
    return values.reshape(shape)
