"""Values of nodes whose inputs are small constants: indices, shapes and conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper

from passes import scope as scoping

Array = npt.NDArray[Any]
MOST_ELEMENTS = 64
_WHOLE = (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_))
_CASTS = {
    TensorProto.INT64: np.int64,
    TensorProto.INT32: np.int32,
    TensorProto.BOOL: np.bool_,
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
}
_ELEMENTWISE: Mapping[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Not": np.logical_not,
    "Where": np.where,
    "Max": np.maximum,
    "Min": np.minimum,
}
_AXIS_OPS = ("Squeeze", "Unsqueeze", "Gather", "Concat")


def folded(node: NodeProto, value: Callable[[str], Array | None]) -> Array | None:
    """What a node gives, None where that is not known, or not small, or no whole number."""
    if not scoping.is_onnx_domain(node.domain) or len(node.output) != 1 or not node.input:
        return None
    if node.op_type not in _ELEMENTWISE and node.op_type not in (*_AXIS_OPS, "Cast"):
        return None
    inputs = [value(name) if name else None for name in node.input]
    if any(one is None or one.dtype not in _WHOLE for one in inputs):
        return None
    try:
        result = _computed(node, [one for one in inputs if one is not None])
    except (ValueError, IndexError, TypeError):
        return None  # what fails there fails where the model runs
    return result if result is not None and result.size <= MOST_ELEMENTS else None


def _computed(node: NodeProto, inputs: Sequence[Array]) -> Array | None:
    said = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    if node.op_type == "Cast":
        wanted = _CASTS.get(said["to"])
        return None if wanted is None else inputs[0].astype(wanted)
    if node.op_type in _ELEMENTWISE:
        compute = _ELEMENTWISE[node.op_type]
        if said or (node.op_type in ("Max", "Min") and len(inputs) != 2):
            return None  # Add-6 has attributes; Max takes any number of inputs
        with np.errstate(all="ignore"):
            return np.asarray(compute(*inputs))
    return _moved(node.op_type, said, inputs)


def _moved(op_type: str, said: Mapping[str, Any], inputs: Sequence[Array]) -> Array | None:
    axis = int(said.get("axis", 0))
    if op_type == "Gather":
        return np.asarray(np.take(inputs[0], inputs[1].astype(np.int64), axis, mode="raise"))
    if op_type == "Concat":
        return np.concatenate(inputs, axis)
    axes = said.get("axes") if "axes" in said else inputs[1].tolist() if len(inputs) > 1 else None
    if axes is None:
        return np.squeeze(inputs[0]) if op_type == "Squeeze" else None
    change = np.squeeze if op_type == "Squeeze" else np.expand_dims
    return np.asarray(change(inputs[0], tuple(axes)))
