"""What some operators compute: functions of numpy, and Gemms that are a product of two matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import attribute, number

#: By operator, the function of as many arrays, which broadcast: of two for Max and Min, of floats
#: for Div.
NUMPY: Mapping[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "Div": np.divide,
    "Equal": np.equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Sqrt": np.sqrt,
    "Sub": np.subtract,
    "Where": np.where,
    "Xor": np.logical_xor,
}


def is_plain_gemm(node: NodeProto) -> bool:
    """Return whether a Gemm does not transpose its first matrix, and scales nothing."""
    plain = number(node, "alpha", 1.0) == 1.0 and not attribute(node, "transA", 0)
    return plain and (not gemm_addend(node) or number(node, "beta", 1.0) == 1.0)


def gemm_addend(node: NodeProto) -> str:
    """The addend of a Gemm, "" for none."""
    return node.input[2] if len(node.input) > 2 else ""
