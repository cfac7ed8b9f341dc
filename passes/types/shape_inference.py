"""onnx's shape inference, kept from computing with what are no shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import onnx
from onnx import GraphProto, ModelProto, TensorShapeProto

from passes.ir import scope as scoping

_LONG = 1 << 22  # no vector of so many elements is a shape


def infer_shapes(model: ModelProto) -> ModelProto:
    """A copy of the model with every type that onnx can infer.

    onnx takes any vector that is added, subtracted or multiplied for a shape, and makes a dim of
    each element: for 2^31 of them it takes all memory. Where a vector is too long for a shape,
    it does not compute with shapes. A negative size, which some exporters write where it is not
    known, is left out: onnx would compute with it, and Slice would end the process.

    Raises:
        InferenceError, ValidationError, RuntimeError, ValueError: inference gives up.
    """
    declared = _sizes(model)
    if any(map(_negative, declared)):
        model = _without_negative(model)
    if any(map(_large, declared)):
        plain: ModelProto = onnx.shape_inference.infer_shapes(model)
        if any(map(_long, _sizes(plain))):
            return plain
    found: ModelProto = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return found


def objection(model: ModelProto, *, check_types: bool = False) -> str:
    """What onnx's inference finds wrong with a model, as a runtime would when it loads it.

    "" where it finds nothing wrong. `check_types`: inputs have to be of the types that the
    operators take, too.
    """
    if any(map(_negative, _sizes(model))):
        model = _without_negative(model)
    try:
        onnx.shape_inference.infer_shapes(model, check_types, strict_mode=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        first, *_ = str(error).splitlines() or [""]  # what comes later may only follow from it
        return first.rpartition("] ")[2].strip().rstrip(".") or "it is not valid"
    return ""


def _large(sizes: Sequence[int]) -> bool:
    return math.prod(max(size, 1) for size in sizes) > _LONG


def _long(sizes: Sequence[int]) -> bool:
    return len(sizes) == 1 and sizes[0] > _LONG


def _negative(sizes: Sequence[int]) -> bool:
    return min(sizes, default=0) < 0


def _sizes(model: ModelProto) -> list[list[int]]:
    """The static sizes of each tensor that is declared, in any graph; other sizes count as 0."""
    return [[dim.dim_value for dim in shape.dim] for shape in _declared(model)]


def _without_negative(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    for shape in _declared(copy):
        for dim in shape.dim:
            if dim.dim_value < 0:
                dim.ClearField("dim_value")
    return copy


def _declared(model: ModelProto) -> Iterator[TensorShapeProto]:
    """The shapes of all tensors that are declared, in any graph."""
    for graph in scoping.graphs_below(model.graph):
        assert isinstance(graph, GraphProto)
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield value.type.tensor_type.shape
