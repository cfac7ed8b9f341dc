"""onnx's shape inference, kept from computing with vectors that are no shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import onnx
from onnx import GraphProto, ModelProto

from passes import scope as scoping

_LONG = 1 << 22  # no vector of so many elements is a shape


def infer_shapes(model: ModelProto) -> ModelProto:
    """A copy of the model with every type that onnx can infer.

    onnx takes any vector that is added, subtracted or multiplied for a shape, and makes a dim of
    each element: for 2^31 of them it takes all memory. Where a vector is too long for a shape,
    it does not compute with shapes.

    Raises:
        InferenceError, ValidationError, RuntimeError, ValueError: inference gives up.
    """
    if _holds(model, _large):
        plain: ModelProto = onnx.shape_inference.infer_shapes(model)
        if _holds(plain, _long):
            return plain
    found: ModelProto = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return found


def _large(sizes: Sequence[int]) -> bool:
    return math.prod(sizes) > _LONG


def _long(sizes: Sequence[int]) -> bool:
    return len(sizes) == 1 and sizes[0] > _LONG


def _holds(model: ModelProto, such: Callable[[Sequence[int]], bool]) -> bool:
    """Whether a tensor of such static sizes is declared, in any graph; other sizes count as 1."""
    for graph in scoping.graphs_below(model.graph):
        assert isinstance(graph, GraphProto)
        for value in (*graph.input, *graph.output, *graph.value_info):
            dims = value.type.tensor_type.shape.dim
            if such([max(dim.dim_value, 1) for dim in dims]):
                return True
    return False
