"""Computes the results of nodes on small constants, indices, shapes and conditions, and on sums of
sizes.

One table for both: of sums, it computes with arrays of `Affine`, as objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from passes.ir.draft import Draft
from passes.ir.operators import Registry, op_of
from passes.operators.exactness import Array
from passes.operators.functions import NUMPY
from passes.operators.table import TRAITS
from passes.operators.traits import Values

MOST_ELEMENTS = 64
_WHOLE = (np.dtype(np.int64), np.dtype(np.int32), np.dtype(np.bool_))
_CASTS = {
    TensorProto.INT64: np.int64,
    TensorProto.INT32: np.int32,
    TensorProto.BOOL: np.bool_,
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
}
#: Quotients and roots of whole numbers are none.
_ELEMENTWISE = {op: function for op, function in NUMPY.items() if TRAITS[op].values is Values.EXACT}
#: What computes other operators, from their names, attributes and inputs.
_OTHERS: Registry[Callable[[str, Mapping[str, Any], Sequence[Array]], Array | None]] = Registry()


def folded(node: NodeProto | Draft, value: Callable[[str], Array | None]) -> Array | None:
    """The output of a node; None where it is unknown, large, or not of integers."""
    if op_of(node) not in _ELEMENTWISE and op_of(node) not in _OTHERS:
        return None
    if len(node.output) != 1 or not node.input:
        return None
    inputs = []
    for name in node.input:
        operand = value(name) if name else None
        if operand is None or operand.dtype not in _WHOLE:
            return None
        inputs.append(operand)
    result = result_of(node, inputs)
    return result if result is not None and result.size <= MOST_ELEMENTS else None


def result_of(node: NodeProto | Draft, inputs: Sequence[Array]) -> Array | None:
    """Return the result of a node on integers, or on sums, as objects; None if it fails, or is
    known only at run time."""
    try:
        return _computed(node, inputs)
    except (ValueError, IndexError, TypeError):
        return None


def _computed(node: NodeProto | Draft, inputs: Sequence[Array]) -> Array | None:
    declared = {
        attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute
    }
    if op_of(node) in _OTHERS:
        return _OTHERS[op_of(node)](op_of(node), declared, inputs)
    if op_of(node) in _ELEMENTWISE:
        compute = _ELEMENTWISE[op_of(node)]
        if declared or (op_of(node) in ("Max", "Min") and len(inputs) != 2):
            return None  # Add-6 has attributes; Max takes any number of inputs
        with np.errstate(all="ignore"):
            return np.asarray(compute(*inputs))
    return None


@_OTHERS.enter("Cast")
def _cast(op: str, attributes: Mapping[str, Any], inputs: Sequence[Array]) -> Array | None:
    dtype = _CASTS.get(attributes["to"])
    return None if dtype is None else inputs[0].astype(dtype)


@_OTHERS.enter("Div", "Mod")
def _divided(op: str, attributes: Mapping[str, Any], inputs: Sequence[Array]) -> Array | None:
    """The quotient, cut towards 0, or the remainder; None where it fails or is not defined.

    onnxruntime replaces a product with 1 / x by a quotient by x, of integers too, so no quotient
    whose numerator is a constant should be left.
    """
    number, by = inputs
    if number.dtype == np.object_:
        number, by = number.astype(np.int64), by.astype(np.int64)
    if number.dtype == np.bool_ or np.any(by == 0) or np.any(by == -1):
        return None
    if op == "Mod":
        return np.asarray((np.fmod if attributes.get("fmod") else np.mod)(number, by))
    rounded_down = ((number < 0) != (by < 0)) & (number % by != 0)
    return None if attributes else np.asarray(number // by + rounded_down.astype(number.dtype))


@_OTHERS.enter("Gather")
def _gathered(op: str, attributes: Mapping[str, Any], inputs: Sequence[Array]) -> Array | None:
    axis = int(attributes.get("axis", 0))
    return np.asarray(np.take(inputs[0], inputs[1].astype(np.int64), axis, mode="raise"))


@_OTHERS.enter("Concat")
def _joined(op: str, attributes: Mapping[str, Any], inputs: Sequence[Array]) -> Array | None:
    return np.concatenate(inputs, int(attributes.get("axis", 0)))


@_OTHERS.enter("Reshape")
def _reshaped(op: str, attributes: Mapping[str, Any], inputs: Sequence[Array]) -> Array | None:
    sizes = [int(size) for size in inputs[1]] if len(inputs) > 1 else [0]
    return np.reshape(inputs[0], sizes) if all(sizes) else None  # 0 copies a size


@_OTHERS.enter("Squeeze", "Unsqueeze")
def _with_axes(op: str, attributes: Mapping[str, Any], inputs: Sequence[Array]) -> Array | None:
    given = inputs[1].astype(np.int64).tolist() if len(inputs) > 1 else None
    axes = attributes.get("axes", given)
    if not axes:  # an empty list means every axis of size 1 to onnxruntime, and none elsewhere
        return np.squeeze(inputs[0]) if op == "Squeeze" and axes is None else None
    change = np.squeeze if op == "Squeeze" else np.expand_dims
    return np.asarray(change(inputs[0], tuple(axes)))


#: The operators whose outputs are known if their inputs are.
FOLDED = frozenset((*_OTHERS, *_ELEMENTWISE))
