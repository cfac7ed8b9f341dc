"""Types and shapes of values: read, written, and in words for messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TypeGuard

from onnx import TensorProto, TensorShapeProto, TypeProto, helper

#: A dim: its size, its symbol, or None where nothing is known.
Dim = int | str | None
Dims = tuple[Dim, ...]
#: The prefix of dims that shape inference makes up.
INFERRED = "unk__"
#: The types of floats that operators in general take.
FLOATS = frozenset(
    {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
)


def dims_of(type_proto: TypeProto | None) -> Dims | None:
    """The dims of a tensor type, or None where the rank is unknown.

    A negative number, which some exporters write, is no size: it means unknown.
    """
    if type_proto is None or not type_proto.tensor_type.HasField("shape"):
        return None
    return tuple(_dim(dim) for dim in type_proto.tensor_type.shape.dim)


def _dim(dim: TensorShapeProto.Dimension) -> Dim:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None


def is_static(dims: Iterable[Dim] | None) -> TypeGuard[tuple[int, ...]]:
    """Return whether the rank and all sizes are known, as numbers."""
    return dims is not None and all(isinstance(dim, int) for dim in dims)


def elem_type_of(type_proto: TypeProto | None) -> int:
    """The element type of a tensor type, 0 where it is unknown or no tensor."""
    if type_proto is None or not type_proto.HasField("tensor_type"):
        return 0
    return type_proto.tensor_type.elem_type


def has_elements(type_proto: TypeProto | None) -> bool:
    """Return whether a type is one of tensors whose sizes are known, none of them 0."""
    dims = dims_of(type_proto)
    return dims is not None and all(isinstance(dim, int) and dim > 0 for dim in dims)


def may_be_equal(one: Dims | None, other: Dims | None) -> bool:
    """Return whether two shapes may be the same when the model runs."""
    if one is None or other is None:
        return True
    return len(one) == len(other) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int))
        for a, b in zip(one, other, strict=True)
    )


def tensor_type(elem_type: int, dims: Dims | None) -> TypeProto:
    """A tensor type; `dims` None for an unknown rank."""
    proto: TypeProto = helper.make_tensor_type_proto(elem_type, dims)
    return proto


def shapes_below(type_proto: TypeProto) -> Iterator[TensorShapeProto]:
    """The shapes that a type speaks of, in sequences and optionals too."""
    kind = type_proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(type_proto, kind).shape
    elif kind in ("sequence_type", "optional_type"):
        yield from shapes_below(getattr(type_proto, kind).elem_type)
    elif kind == "map_type":
        yield from shapes_below(type_proto.map_type.value_type)


def is_known(type_proto: TypeProto) -> bool:
    """Return whether a type is known: an empty TypeProto means that it is not."""
    return type_proto.WhichOneof("value") is not None


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
