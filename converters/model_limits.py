"""Finds types of a model itself, not of its nodes, that an older opset lacks."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TypeProto

_SEQUENCES, _OPTIONALS = 11, 15


def limits(model: ModelProto, target: int) -> list[str]:
    """Sentences on the inputs and outputs of the main graph that `target` cannot declare."""
    found = []
    for what, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            for kind, opset in _needed(value.type):
                if target < opset:
                    found.append(
                        f"the {what} {value.name!r} is {kind}, which came with opset {opset}"
                    )
                    break
    return found


def _needed(type_: TypeProto) -> Iterator[tuple[str, int]]:
    """Yield the kinds of a type, and the first opset with operators for it; of nested ones the
    newest first."""
    if type_.HasField("optional_type"):
        yield "an optional", _OPTIONALS
        yield from _needed(type_.optional_type.elem_type)
    if type_.HasField("sequence_type"):
        yield "a sequence", _SEQUENCES
        yield from _needed(type_.sequence_type.elem_type)
