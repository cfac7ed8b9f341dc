"""Which nodes give the same bits in every executor, so that they may be computed beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from passes.ir.operators import op_of

Array = npt.NDArray[Any]

# fmt: off
#: Ops that move data, whatever it is.
_MOVING = frozenset(
    {
        "Compress", "Concat", "ConstantOfShape", "DepthToSpace", "Expand", "EyeLike", "Flatten",
        "Gather", "GatherElements", "GatherND", "Identity", "NonZero", "Pad", "Range", "Reshape",
        "ReverseSequence", "Shape", "Size", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
        "Transpose", "Trilu", "Unsqueeze", "Where",
    }
)
#: Ops that compare, and those on truth values.
_COMPARING = frozenset(
    {
        "And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual",
        "Not", "Or", "Xor",
    }
)
#: Ops that are exact on integers.
_WHOLE = frozenset(
    {
        "Abs", "Add", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
        "BitwiseXor", "Clip", "CumSum", "Div", "Max", "Min", "Mod", "Mul", "Neg", "ReduceMax",
        "ReduceMin", "ReduceProd", "ReduceSum", "Sign", "Sub", "Sum",
    }
)
#: Ops whose result IEEE 754 settles: onnxruntime and numpy agree on every bit but those of NaN.
_ROUNDED = frozenset(
    {"Abs", "Add", "Ceil", "Div", "Floor", "Mul", "Neg", "Reciprocal", "Round", "Sqrt", "Sub"}
)
# fmt: on
_SINGLE_AND_DOUBLE = (np.dtype(np.float32), np.dtype(np.float64))
_HALF = (np.dtype(np.float32), np.dtype(np.float16))
#: onnxruntime computes sums and products of integers as doubles.
_BEYOND_DOUBLES = 2**53

FOLDABLE = _MOVING | _COMPARING | _WHOLE | _ROUNDED | {"Cast", "CastLike"}


def may_be_exact(node: NodeProto) -> bool:
    """Whether an op is foldable at all, on some values."""
    return op_of(node) in FOLDABLE


def is_exact(node: NodeProto, inputs: Sequence[Array | None], outputs: Sequence[Array]) -> bool:
    """Whether a node gives these outputs, to the bit, wherever it runs on these inputs."""
    given = [one for one in inputs if one is not None]
    if op_of(node) == "NonZero" and given[0].ndim == 0:
        return False  # of a scalar, onnxruntime gives it another shape
    if op_of(node) in _MOVING or op_of(node) in _COMPARING:
        return op_of(node) != "Range" or given[0].dtype.kind in "iu"
    if op_of(node) in ("Cast", "CastLike"):
        return _casts_exactly(given[0], _cast_to(node, given))
    if all(one.dtype.kind in "iu" for one in given):
        return op_of(node) in _WHOLE and _stays_whole(node, given, outputs)
    return op_of(node) in _ROUNDED and all(one.dtype in _SINGLE_AND_DOUBLE for one in given)


def _stays_whole(node: NodeProto, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
    """Not where C++ leaves the result open, or onnxruntime rounds."""
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
    """The type that a Cast or CastLike gives."""
    if op_of(node) == "CastLike":
        return inputs[1].dtype
    said = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    return np.dtype(helper.tensor_dtype_to_np_dtype(said["to"]))


def _casts_exactly(value: Array, wanted: np.dtype[Any]) -> bool:
    """Not where a number does not fit into the type, and not to and from strings."""
    if value.dtype.kind not in "iufb":
        return False
    if wanted.kind not in "iufb" or _small_float(value.dtype) or _small_float(wanted):
        return value.dtype in _HALF and wanted in _HALF
    if value.dtype.kind == "f" and wanted.kind in "iu":
        info = np.iinfo(wanted)
        whole = np.trunc(value.astype(np.float64))
        # the largest int64 is no double: what rounds to it may not fit
        return bool(np.all((whole >= info.min) & (whole < float(info.max))))
    return True


def _small_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and dtype.itemsize < np.dtype(np.float32).itemsize
