"""Sizes that a model declares and contradicts by what it computes."""

from __future__ import annotations

from onnx import FunctionProto

from passes.analysis.integers.integers import Integers
from passes.engine.site import Site
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.protos import copied
from passes.ir.scope import Place
from passes.types.declarations import declarations, without_sizes
from passes.verify.signature import describe_type


def as_computed(model: Model) -> tuple[Model, list[str]] | None:
    """A copy that declares the sizes that are computed where the model declares others, and a
    sentence on each such value; None if there is none."""
    bare = Model(without_sizes(model.proto), model.path)
    copy, notes = copied(model.proto), list[str]()
    pairs = zip(declarations(bare.proto), declarations(copy), strict=True)
    for (scope, _), (_, values) in pairs:
        nodes = scope.owner.node
        if not nodes or isinstance(scope.outermost.owner, FunctionProto):
            continue
        opset = bare.opset_at(scope)
        place = Place(nodes[0], 0, scope)
        integers = Integers(Site(bare, place, opset, opset, Names(()), bare.types))
        for value in values:
            declared = describe_type(value.type)
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                size = integers.size(value.name, axis) if dim.HasField("dim_value") else None
                if size is not None and size.number is not None:
                    dim.dim_value = size.number
            if (computed := describe_type(value.type)) != declared:
                notes.append(
                    f"{scope.path}: {value.name!r} is declared {declared}, but {computed} is "
                    "computed, which is declared in its place"
                )
    return (Model(copy, model.path), notes) if notes else None
