"""The types of values, in words for messages."""

from __future__ import annotations

from functools import cache

from onnx import TensorProto, TypeProto


@cache
def element(elem_type: int) -> str:
    """The name of an element type, as `float`; empty where it is unknown."""
    if not elem_type or elem_type not in TensorProto.DataType.values():
        return ""
    return str(TensorProto.DataType.Name(elem_type)).lower()


def describe(kind: TypeProto | None) -> str:
    """A type without its shape: `float`, `seq(float)`, `optional(seq(float))`; empty: unknown."""
    if kind is None:
        return ""
    match kind.WhichOneof("value"):
        case "tensor_type":
            return element(kind.tensor_type.elem_type)
        case "sparse_tensor_type":
            return _wrapped("sparse", element(kind.sparse_tensor_type.elem_type))
        case "sequence_type":
            return _wrapped("seq", describe(kind.sequence_type.elem_type))
        case "optional_type":
            return _wrapped("optional", describe(kind.optional_type.elem_type))
        case "map_type":
            key = element(kind.map_type.key_type)
            return _wrapped("map", f"{key}, {describe(kind.map_type.value_type)}" if key else "")
    return ""


def _wrapped(kind: str, inside: str) -> str:
    return f"{kind}({inside})" if inside else ""
