"""The types that graphs declare of their values."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import FunctionProto, ModelProto, TypeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.scope import Scope
from passes.types.inference import light_copy
from passes.types.type_tables import every_scope
from passes.types.value_types import Dims, is_static, shapes_below


def declarations(
    proto: ModelProto, *, outputs: bool = False
) -> Iterator[tuple[Scope, list[ValueInfoProto]]]:
    """Yield the declared values of each graph and function, except the signature of the model, of
    which `outputs` are yielded on demand."""
    for top in scoping.scopes(proto):
        for scope in every_scope(top):
            owner = scope.owner
            values = list(owner.value_info)
            if owner is proto.graph:
                values += proto.graph.output if outputs else []
            elif not isinstance(owner, FunctionProto):
                values += [*owner.input, *owner.output]
            yield scope, values


def without_sizes(proto: ModelProto) -> ModelProto:
    """A light copy that declares no sizes but those of the inputs of the model, ranks alone."""
    plain = light_copy(proto)
    for _, values in declarations(plain, outputs=True):
        for value in values:
            for shape in shapes_below(value.type):
                for dim in shape.dim:
                    dim.Clear()
    return plain


def write_sizes(kind: TypeProto, dims: Dims | None) -> None:
    """Declare those of the dims of a tensor that are sizes, where none is declared."""
    if dims is None or not kind.HasField("tensor_type"):
        return
    shape = kind.tensor_type.shape
    if not kind.tensor_type.HasField("shape") and is_static(dims):
        shape.SetInParent()
        for _ in dims:
            shape.dim.add()
    if len(shape.dim) != len(dims):
        return  # a rank that is mistaken
    for own, known in zip(shape.dim, dims, strict=True):
        if isinstance(known, int) and not own.HasField("dim_value"):
            own.dim_value = known
