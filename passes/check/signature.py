"""What graphs say about the types of their inputs and outputs."""

from __future__ import annotations

import math
from collections.abc import Iterable

import onnx
from onnx import FunctionProto, ModelProto, TypeProto, ValueInfoProto

from passes import scope as scoping
from passes.check.wording import describe, element
from passes.errors import BadModel
from passes.scope import Scope

_MOST = 1 << 40  # elements


def check_signature(model: ModelProto) -> None:
    """Every input has a type; an output without one gets it from inference."""
    constants = scoping.initializer_names(model.graph)
    for value in model.graph.input:
        if value.name in constants or describe(value.type):
            continue
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            raise BadModel(f"input {value.name!r} has no type", path=scoping.MAIN)


def check_declared(scopes: Iterable[Scope]) -> None:
    """What graphs declare has an element type that onnx knows, and a size that there can be.

    Sizes of more than any machine can hold are garbage, and arithmetic on them overflows.
    """
    for scope in scopes:
        owner = scope.owner
        if isinstance(owner, FunctionProto):
            continue
        for what, values in (
            ("input", owner.input),
            ("output", owner.output),
            ("value", owner.value_info),
        ):
            for value in values[:]:
                if what != "value":
                    _check_element_type(what, value, scope)
                _check_size(what, value, scope)


def _check_element_type(what: str, value: ValueInfoProto, scope: Scope) -> None:
    declared = _innermost(value.type)
    if declared and not element(declared):
        raise BadModel(
            f"{what} {value.name!r} has element type {declared}, which the installed onnx "
            f"{onnx.__version__} does not know",
            path=scope.path,
        )


def _check_size(what: str, value: ValueInfoProto, scope: Scope) -> None:
    dims = value.type.tensor_type.shape.dim
    if dims and math.prod([max(dim.dim_value, 1) for dim in dims]) > _MOST:
        sizes = [dim.dim_value for dim in dims if dim.dim_value]
        raise BadModel(
            f"{what} {value.name!r} has static sizes {sizes}, more elements than any machine can "
            "hold",
            path=scope.path,
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
