"""Sizes that a model declares and contradicts by what it computes."""

from __future__ import annotations

from onnx import FunctionProto

from passes.analysis.bodies.kept_sizes import with_kept_sizes
from passes.analysis.integers.integers import Integers
from passes.engine.site import Site
from passes.ir.model import Model
from passes.ir.protos import copied
from passes.types.inference import declarations, without_sizes
from passes.types.signature import describe_type


def as_computed(model: Model) -> tuple[Model, list[str]] | None:
    """A copy that declares the sizes that are computed where the model declares others, and a
    sentence on each such value; None if there is none."""
    bare = with_kept_sizes(without_sizes(model.proto))
    copy, notes = copied(model.proto), list[str]()
    pairs = zip(declarations(bare.proto), declarations(copy, outputs=True), strict=True)
    for (scope, _), (_, values) in pairs:
        if isinstance(scope.outermost.owner, FunctionProto):
            continue
        integers = Integers(Site.of_graph(bare, scope))
        for value in values:
            declared = describe_type(value.type)
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                size = integers.fixed_size(value.name, axis)
                if dim.HasField("dim_value") and size is not None:
                    dim.dim_value = size
            if (computed := describe_type(value.type)) != declared:
                notes.append(
                    f"{scope.path}: {value.name!r} is declared {declared}, but {computed} is "
                    "computed, which is declared in its place"
                )
    return (Model(copy, model.path), notes) if notes else None
