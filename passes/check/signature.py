"""What a model says about the types of its inputs."""

from __future__ import annotations

from onnx import ModelProto

from passes.check.wording import describe
from passes.errors import BadModel
from passes.ir import scope as scoping


def check_signature(model: ModelProto) -> None:
    """Every input has a type; an output without one gets it from inference."""
    constants = scoping.initializer_names(model.graph)
    for value in model.graph.input:
        if value.name in constants or describe(value.type):
            continue
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            raise BadModel(f"input {value.name!r} has no type", path=scoping.MAIN)
