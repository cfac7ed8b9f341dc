"""Fixes symbolic dims of a whole model: the one change of its signature that a user may ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import FunctionProto, ModelProto, TensorShapeProto, TypeProto, ValueInfoProto

from passes import scope as scoping
from passes.errors import PassesError
from passes.model import Model
from passes.scope import Owner


class UnknownDim(PassesError):
    """The model has no symbolic dim of the name that was to be fixed."""


def parsed(text: str) -> tuple[str, int]:
    """The name and the size of `batch=4`.

    Raises:
        ValueError: it is not of that form, or the size is negative.
    """
    name, _, size = text.rpartition("=")
    if not name or not size.isdecimal():
        raise ValueError(f"{text!r} is not of the form NAME=SIZE")
    return name, int(size)


def with_fixed_dims(model: Model, sizes: Mapping[str, int]) -> Model:
    """A model with these symbolic dims fixed everywhere, in bodies and functions too.

    Raises:
        UnknownDim: no input of the model has a dim of that name; those that there are are named.
    """
    known = dict.fromkeys(
        dim.dim_param
        for value in model.proto.graph.input
        for shape in _shapes(value.type)
        for dim in shape.dim
        if dim.dim_param
    )
    for name in sizes:
        if name not in known:
            there = ", ".join(known) or "none"
            raise UnknownDim(f"no input has a dim called {name!r}; there are: {there}")
    proto = ModelProto()
    proto.CopyFrom(model.proto)
    for _, top in scoping.owners(proto):
        for owner in scoping.graphs_below(top):
            for value in _declared(owner):
                _fix(value.type, sizes)
    return Model(proto, model.path)


def _declared(owner: Owner) -> Iterator[ValueInfoProto]:
    yield from owner.value_info
    if not isinstance(owner, FunctionProto):
        yield from owner.input
        yield from owner.output


def _fix(type_proto: TypeProto, sizes: Mapping[str, int]) -> None:
    for shape in _shapes(type_proto):
        for dim in shape.dim:
            if dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]


def _shapes(type_proto: TypeProto) -> Iterator[TensorShapeProto]:
    """The shapes that a type speaks of, in sequences and optionals too."""
    kind = type_proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield getattr(type_proto, kind).shape
    elif kind in ("sequence_type", "optional_type"):
        yield from _shapes(getattr(type_proto, kind).elem_type)
    elif kind == "map_type":
        yield from _shapes(type_proto.map_type.value_type)
