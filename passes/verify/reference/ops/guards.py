"""Kernels of onnx that answer where the operator's document, and onnxruntime, refuse.

Each one checks its operands, then leaves the work to onnx's kernel.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from passes.ir.operators import op_of
from passes.types.dtypes import is_float
from passes.verify.executor import Array
from passes.verify.reference.ops.layout import normalized, see_room
from passes.verify.reference.registry import ByFunctionBody, KernelCall, implements


@implements("Range")
def range_of(call: KernelCall, start: Array, limit: Array, delta: Array) -> Any:
    """Range-11 and later: CannotRun for more numbers than there need be room for."""
    if start.size == limit.size == delta.size == 1 and delta.item():
        steps = (limit.item() - start.item()) / delta.item()
        if np.isfinite(steps):
            see_room(call, [max(0, int(steps))])
    return call.onnx(start, limit, delta)


@implements("ConstantOfShape")
def constant_of_shape(call: KernelCall, sizes: Array) -> Any:
    """ConstantOfShape-9 and later: CannotRun for more elements than there need be room for."""
    see_room(call, sizes.reshape(-1).tolist())
    return call.onnx(sizes)


@implements("TopK", since=10)
def top_k(call: KernelCall, x: Array, k: Array) -> Any:
    """TopK-10 to -24: ValueError for a negative `k` (int64, shape [1]), or one above the size.

    The document leaves NaN open: it comes first, among the smallest as among the largest, as in
    Min and Max; onnx's kernel puts it after the smallest.
    """
    if not 0 <= int(k.reshape(()).item()) <= x.shape[call.get("axis", -1)]:
        raise ValueError(f"k is {k.item()} of sizes {x.shape}")
    if call.get("largest", 1) or not is_float(x.dtype) or not np.isnan(x).any():
        return call.onnx(x, k)
    values, indices = call.onnx(-x, k, largest=1)
    return -values, indices


@implements("Tile", since=6)
def tile(call: KernelCall, x: Array, repeats: Array) -> Any:
    """Tile-6 and -13: ValueError unless there is one repeat, not negative, per dimension."""
    if repeats.shape != (x.ndim,) or (repeats < 0).any():
        raise ValueError(f"repeats {repeats.tolist()} for {x.ndim} dimensions")
    see_room(call, [*x.shape, *repeats.tolist()])
    return call.onnx(x, repeats)


@implements("Reshape", since=5)
def reshape(call: KernelCall, x: Array, shape: Array) -> Any:
    """Reshape-5 and later: ValueError for dims below -1."""
    if (shape < -1).any():
        raise ValueError(f"dims below -1 in {shape.tolist()}")
    return call.onnx(x, shape)


@implements("ReverseSequence")
def reverse_sequence(call: KernelCall, x: Array, lengths: Array) -> Any:
    """ReverseSequence-10: ValueError unless there is one length in 0..time per row."""
    rows, most = x.shape[call.get("batch_axis")], x.shape[call.get("time_axis")]
    if lengths.shape != (rows,) or (lengths < 0).any() or (lengths > most).any():
        raise ValueError(f"lengths {lengths.tolist()} for {rows} rows of {most}")
    return call.onnx(x, lengths)


@implements("Slice", since=10)
def slice_(
    call: KernelCall,
    x: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
) -> Any:
    """Slice-10 to -13: ValueError for axes that are out of range or named twice, and unless there
    are as many starts, ends, axes and steps."""
    given = [len(one) for one in (starts, ends, axes, steps) if one is not None]
    if len(set(given)) > 1:
        raise ValueError(f"starts, ends, axes and steps of lengths {given}")
    if axes is not None:
        normalized([int(axis) for axis in axes], x.ndim)
    return call.onnx(x, starts, ends, axes, steps)


@implements("Attention")
def attention(call: KernelCall, q: Array, k: Array, v: Array, *others: Array | None) -> Any:
    """Attention-23 and later: ByFunctionBody where scores may overflow.

    onnx's kernel makes zeros of a row whose scores all are -inf; by the document's function body,
    and in onnxruntime, only the mask does that, and the softmax of such scores is NaN. ValueError
    where the mask of version 23 does not broadcast: version 24 fills up one that is too short.
    """
    mask, *rest = others or (None,)
    keys = [k, *(past for past in rest[:1] if past is not None)]
    query, *large = (np.abs(x.astype(np.float64)).max(initial=1) for x in [q, *keys])
    added = 0 if mask is None else np.abs(mask.astype(np.float64))
    added = np.max(added, where=np.isfinite(added), initial=0)
    most = query * max(large) * q.shape[-1] * max(1, call.get("scale", 1)) + added
    if not most <= float(ml_dtypes.finfo(q.dtype).max):
        raise ByFunctionBody
    if call.version < 24 and mask is not None:
        total = sum(x.shape[-2] for x in keys)
        mask = np.broadcast_to(mask, (*mask.shape[:-1], total))
    return call.onnx(q, k, v, mask, *rest)


@implements("MatMul")
def matmul(call: KernelCall, a: Array, b: Array) -> Any:
    """MatMul-1 and later: ValueError for operands without dimensions."""
    if not a.ndim or not b.ndim:
        raise ValueError(f"operands are {a.ndim}-d and {b.ndim}-d")
    return product(a, b) if a.dtype == b.dtype else call.onnx(a, b)


def product(a: Array, b: Array) -> Array:
    """Return the product of matrices, rounded alike wherever the operands are located in memory,
    without leaving out terms: BLAS may skip what is multiplied by 0, also a NaN or an infinity."""
    if a.dtype.kind == "O" and min(a.ndim, b.ndim) > 1 and a.size:  # terms in place of numbers
        return np.asarray(a.flat[0].product(a, b))
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if a.dtype.kind == "f" and not (_is_finite(a) and _is_finite(b)):
        rows, columns = np.atleast_2d(a), b if b.ndim > 1 else b[:, np.newaxis]
        if rows.shape[-1] != columns.shape[-2]:  # einsum broadcasts them
            raise ValueError(f"matrices of shapes {a.shape} and {b.shape} have no product")
        wide = np.promote_types(a.dtype, np.float32)  # in which numpy adds float16 up, too
        with np.errstate(all="ignore"):
            found = np.einsum("...ij,...jk->...ik", rows.astype(wide), columns.astype(wide))
            found = found.astype(a.dtype)
        lost = [axis for axis, one in ((-2, a), (-1, b)) if one.ndim == 1]
        return np.asarray(np.squeeze(found, tuple(lost)))
    found = np.matmul(a, b)
    return np.asarray(found).astype(a.dtype, copy=False)  # numpy multiplies bfloat16 as float32


def _is_finite(array: Array) -> bool:
    return bool(np.isfinite(array).all())


@implements("EyeLike", "Trilu")
def matrix_only(call: KernelCall, x: Array, *more: Array | None) -> Any:
    """EyeLike-9, Trilu-14: ValueError unless EyeLike's input is 2-d, Trilu's at least 2-d."""
    if x.ndim < 2 or (x.ndim > 2 and op_of(call.node) == "EyeLike"):
        raise ValueError(f"the input is {x.ndim}-d")
    return call.onnx(x, *more)


@implements("SplitToSequence")
def split_to_sequence(call: KernelCall, x: Array, split: Array | None = None) -> Any:
    """SplitToSequence-11 and -24: ValueError for parts that are negative or do not add up."""
    length = x.shape[call.get("axis", 0)]
    if split is not None and ((split < 0).any() or (split.ndim and split.sum() != length)):
        raise ValueError(f"parts {split.tolist()} of an axis of {length}")
    return call.onnx(x, split)


@implements("HannWindow", "HammingWindow", "BlackmanWindow")
def window(call: KernelCall, size: Array) -> Any:
    """HannWindow-17 and kin: ValueError for a negative size."""
    if (size < 0).any():
        raise ValueError(f"the size is {size.tolist()}")
    return call.onnx(size)


@implements("STFT")
def stft(call: KernelCall, signal: Array, step: Array, *more: Array | None) -> Any:
    """STFT-17: ValueError for a step below 1."""
    if int(step.item()) < 1:
        raise ValueError(f"the step is {step.item()}")
    return call.onnx(signal, step, *more)


@implements("SequenceInsert")
def sequence_insert(
    call: KernelCall, sequence: list[Any], element: Array, position: Array | None = None
) -> tuple[list[Any]]:
    """SequenceInsert-11: IndexError unless the position lies in -n..n, where n is the end.

    onnx's kernel takes the position modulo n: n means its front, and nothing fits into none.
    """
    count = len(sequence)
    place = count if position is None else int(position.item())
    if not -count <= place <= count:
        raise IndexError(f"position {place} in a sequence of {count}")
    place += count if place < 0 else 0
    return ([*sequence[:place], element, *sequence[place:]],)


@implements("PRelu", since=7)
def prelu(call: KernelCall, x: Array, slope: Array) -> Array:
    """PRelu-7 to -16: `slope` is broadcast to `x` from the right, ValueError if it does not."""
    return np.asarray(np.where(x < 0, x * np.broadcast_to(slope, x.shape), x), x.dtype)
