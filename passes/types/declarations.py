"""The types that graphs declare of their values."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import FunctionProto, ModelProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.ir.scope import Scope
from passes.types.type_tables import every_scope
from passes.types.value_types import shapes_below


def declarations(proto: ModelProto) -> Iterator[tuple[Scope, list[ValueInfoProto]]]:
    """Yield the declared values of each graph and function, except the inputs of the model."""
    for top in scoping.scopes(proto):
        for scope in every_scope(top):
            owner = scope.owner
            values = list(owner.value_info)
            if not isinstance(owner, FunctionProto):
                values += owner.output if owner is proto.graph else [*owner.input, *owner.output]
            yield scope, values


def without_sizes(proto: ModelProto) -> ModelProto:
    """A copy that declares no sizes but those of the inputs of the model, ranks alone."""
    plain = copied(proto)
    for _, values in declarations(plain):
        for value in values:
            for shape in shapes_below(value.type):
                for dim in shape.dim:
                    dim.Clear()
    return plain
