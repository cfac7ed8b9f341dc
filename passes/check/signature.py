"""What graphs say about the types of their inputs and outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable

import onnx
from onnx import FunctionProto, ModelProto, TypeProto

from passes import scope as scoping
from passes.check.wording import describe, element
from passes.errors import BadModel
from passes.scope import Owner, Place

_MOST = 1 << 40  # elements


def check_signature(model: ModelProto) -> None:
    """Every input has a type; an output without one gets it from inference."""
    constants = scoping.initializer_names(model.graph)
    for value in model.graph.input:
        if value.name in constants or describe(value.type):
            continue
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            raise BadModel(f"input {value.name!r} has no type", path=scoping.MAIN)


def check_element_types(model: ModelProto, places: Iterable[Place]) -> None:
    """Every element type that is declared is one that onnx knows; of bodies at `places` too."""
    _check_declared(model.graph, scoping.MAIN)
    for place in places:
        for inner in place.scope.inner(place.index):
            _check_declared(inner.owner, inner.path)


def _check_declared(owner: Owner, path: str) -> None:
    if isinstance(owner, FunctionProto):
        return
    for what, values in (("input", owner.input), ("output", owner.output)):
        for value in values:
            declared = _innermost(value.type)
            if declared and not element(declared):
                raise BadModel(
                    f"{what} {value.name!r} has element type {declared}, which the installed onnx "
                    f"{onnx.__version__} does not know",
                    path=path,
                )


def check_sizes(model: ModelProto, places: Iterable[Place]) -> None:
    """No tensor is declared larger than a machine can hold; of bodies at `places` too.

    Such sizes are garbage, and arithmetic on them overflows.
    """
    _check_sizes(model.graph, scoping.MAIN)
    for place in places:
        for inner in place.scope.inner(place.index):
            _check_sizes(inner.owner, inner.path)


def _check_sizes(owner: Owner, path: str) -> None:
    if isinstance(owner, FunctionProto):
        return
    values = (("input", owner.input), ("output", owner.output), ("value", owner.value_info))
    for what, listed in values:
        for value in listed:
            dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            if math.prod(max(dim, 1) for dim in dims) > _MOST:
                raise BadModel(
                    f"{what} {value.name!r} has static sizes {[dim for dim in dims if dim]}, more "
                    "elements than any machine can hold",
                    path=path,
                )


def _innermost(kind: TypeProto) -> int:
    """The element type of a tensor, also inside sequences and optionals; 0 where there is none."""
    while True:
        match kind.WhichOneof("value"):
            case "sequence_type":
                kind = kind.sequence_type.elem_type
            case "optional_type":
                kind = kind.optional_type.elem_type
            case "tensor_type":
                return kind.tensor_type.elem_type
            case _:
                return 0
