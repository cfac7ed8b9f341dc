"""Decides which nodes compute the same bits in every executor, so that they may be folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.operators.table import traits_of
from passes.operators.traits import Folds

Array = npt.NDArray[Any]

_SINGLE_AND_DOUBLE = (np.dtype(np.float32), np.dtype(np.float64))
_HALF = (np.dtype(np.float32), np.dtype(np.float16))
#: onnxruntime computes sums and products of integers as doubles.
_BEYOND_DOUBLES = 2**53


def may_be_exact(node: NodeProto) -> bool:
    """Return whether an op is foldable at all, on some values."""
    return traits_of(node).folds is not Folds.NEVER


def is_exact(node: NodeProto, inputs: Sequence[Array | None], outputs: Sequence[Array]) -> bool:
    """Return whether a node gives these outputs, to the bit, wherever it runs on these inputs."""
    present = [array for array in inputs if array is not None]
    if op_of(node) == "NonZero" and present[0].ndim == 0:
        return False  # of a scalar, onnxruntime gives it another shape
    folds = traits_of(node).folds
    if folds is Folds.ANY:
        return op_of(node) != "Range" or present[0].dtype.kind in "iu"
    if op_of(node) in ("Cast", "CastLike"):
        return _casts_exactly(present[0], _cast_to(node, present))
    if all(array.dtype.kind in "iu" for array in present):
        return folds is not Folds.NEVER and _stays_whole(node, present, outputs)
    return folds is Folds.FLOATS and all(array.dtype in _SINGLE_AND_DOUBLE for array in present)


def _stays_whole(node: NodeProto, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
    """Not where C++ leaves the result undefined, or onnxruntime rounds."""
    first, *rest = inputs
    if op_of(node) in ("Div", "Mod") and first.dtype.kind == "i":  # the least one by -1 overflows
        return not (np.any(first == np.iinfo(first.dtype).min) and np.any(rest[0] == -1))
    if op_of(node) == "BitShift":
        return bool(np.all(rest[0] < first.dtype.itemsize * 8))
    if op_of(node) in ("ReduceSum", "ReduceProd"):
        sizes = np.abs(first.astype(np.float64))
        largest = np.prod(np.maximum(sizes, 1)) if op_of(node) == "ReduceProd" else np.sum(sizes)
        return bool(largest < min(_BEYOND_DOUBLES, np.iinfo(outputs[0].dtype).max))
    return True


def _cast_to(node: NodeProto, inputs: Sequence[Array]) -> np.dtype[Any]:
    """The output type of a Cast or CastLike."""
    if op_of(node) == "CastLike":
        return inputs[1].dtype
    return np.dtype(helper.tensor_dtype_to_np_dtype(attribute(node, "to", 0)))


def _casts_exactly(value: Array, dtype: np.dtype[Any]) -> bool:
    """Not where a number does not fit into the type, and not to and from strings."""
    if value.dtype.kind not in "iufb":
        return False
    if dtype.kind not in "iufb" or _small_float(value.dtype) or _small_float(dtype):
        return value.dtype in _HALF and dtype in _HALF
    if value.dtype.kind == "f" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        whole = np.trunc(value.astype(np.float64))
        # the largest int64 is no double: what rounds to it may not fit
        return bool(np.all((whole >= info.min) & (whole < float(info.max))))
    return True


def _small_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and dtype.itemsize < np.dtype(np.float32).itemsize
