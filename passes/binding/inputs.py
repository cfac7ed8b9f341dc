"""Binds the inputs of a model to what its user knows of them: sizes, shapes and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, numpy_helper

from passes.binding.dims import (
    declare_sizes,
    dims_of_inputs,
    fix,
    refuse_unknown,
    size_of,
    unite,
)
from passes.binding.values import Stored, as_array, printed
from passes.engine.full_check import full_objection
from passes.errors import DoesNotFit, nearest
from passes.ir import scope as scoping
from passes.ir.live import drop_unread
from passes.ir.model import Model
from passes.ir.protos import copied, replace_all
from passes.ir.versions import FREE_INITIALIZERS
from passes.types import signature
from passes.types.inference import write_sizes

_T = TypeVar("_T")
#: The most characters of a value in a report.
_LONG = 60
#: A shape that is given for an input: None leaves a dim as it is.
Shape = tuple[int | None, ...]


class UnknownInput(DoesNotFit):
    """The model has no input of the name that was to be bound."""


class CannotBind(DoesNotFit, ValueError):
    """A size or value given for an input contradicts the model's declaration, or another one
    given."""


def parsed_shape(text: str) -> tuple[str, Shape]:
    """The name and the shape of `input=1,?,576`.

    Raises:
        ValueError: it is not of that form, or a size is no int64.
    """
    name, _, sizes = text.rpartition("=")
    dims = [size.strip() for size in sizes.split(",")]
    if not name or not all(dim == "?" or dim.isdecimal() for dim in dims):
        raise ValueError(f"{text!r} is not of the form NAME=SIZE,SIZE,... (? leaves a dim open)")
    return name, tuple(None if dim == "?" else size_of(dim) for dim in dims)


@dataclass(frozen=True)
class Binding:
    """Facts given about inputs: sizes of their symbolic dims, or other dims equal to these;
    shapes of some, values of others."""

    sizes: Mapping[str, int | str] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Stored] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.sizes or self.shapes or self.values)

    def __str__(self) -> str:
        shapes = {
            name: ",".join("?" if size is None else f"{size}" for size in shape)
            for name, shape in self.shapes.items()
        }
        values = {name: _shortened(f"{printed(value)}") for name, value in self.values.items()}
        given = (("--dim", self.sizes), ("--shape", shapes), ("--set", values))
        return " ".join(
            f"{flag} {name}={one}" for flag, all_ in given for name, one in all_.items()
        )

    def and_(self, other: Binding) -> Binding:
        """Return the union of both.

        Raises:
            CannotBind: they contradict one another.
        """
        return Binding(
            _joined("the dim", self.sizes, other.sizes),
            _joined("the shape of", self.shapes, other.shapes),
            _joined("the input", self.values, other.values),
        )

    def fitting(self, model: Model) -> Binding:
        """Return the facts about those dims and inputs that exist in a model."""
        dims = dims_of_inputs(model)
        inputs = {value.name for value in signature.feedable(model.proto)}
        return Binding(
            {
                name: size
                for name, size in self.sizes.items()
                if name in dims and (isinstance(size, int) or size in dims)
            },
            {name: shape for name, shape in self.shapes.items() if name in inputs},
            {name: value for name, value in self.values.items() if name in inputs},
        )

    def of(self, model: Model) -> Model:
        """A model with its inputs bound: those with a value are constants.

        Raises:
            UnknownDim: no input has a dim of a name.
            UnknownInput: there is no input of a name; the sentence has the nearest.
            DoesNotFit: a dim is declared equal to itself.
            CannotBind: a shape or value is not one that the input can have.
        """
        if twice := [name for name in self.shapes if name in self.values]:
            raise CannotBind(f"the input {twice[0]!r} is given a shape and a value")
        names = [*self.sizes, *(size for size in self.sizes.values() if isinstance(size, str))]
        refuse_unknown(names, dims_of_inputs(model))
        proto = copied(model.proto)
        graph = proto.graph
        kept, sizes = unite(proto, self.sizes)
        inputs = {value.name: value for value in signature.feedable(proto)}
        for name in (*self.shapes, *self.values):
            if name not in inputs:
                near = nearest(name, inputs)
                raise UnknownInput(f"the model has no input {name!r}; {near}")
        for name, shape in self.shapes.items():
            _declare(inputs[name], shape, sizes)
        constants = [_constant(inputs[name], one, sizes) for name, one in self.values.items()]
        if proto.ir_version >= FREE_INITIALIZERS:
            replace_all(graph.input, [one for one in graph.input if one.name not in self.values])
        for constant in constants:
            _replace(graph, constant)
        unread = set(self.values) - scoping.all_reads(graph.node)
        drop_unread(graph, unread, proto.ir_version < FREE_INITIALIZERS)
        fix(model, proto, {name: sizes.get(one, one) for name, one in kept.items()} | sizes)
        return Model(proto, model.path)

    def described(self, original: Model, bound: Model) -> Iterator[str]:
        """A sentence on each input and output that is not what it was."""
        graph, other = original.proto.graph, bound.proto.graph
        constants = {
            name: _shortened(f"the constant {printed(value)}")
            for name, value in self.values.items()
        }
        inputs = (graph.input, {**_types(other.input), **constants})
        for values, types in (inputs, (graph.output, _types(other.output))):
            for value in values:
                before = signature.describe_type(value.type)
                after = types.get(value.name, before)
                if after != before:
                    yield f"{value.name}: {before} -> {after}"


def as_given(original: Model, bound: Model) -> Model:
    """The original model, but for its signature, which is that of `bound`: what is constant there
    is so here, too."""
    proto = copied(original.proto)
    for mine, other in (
        (proto.graph.input, bound.proto.graph.input),
        (proto.graph.output, bound.proto.graph.output),
    ):
        replace_all(mine, list(other))
    inputs = {value.name for value in original.proto.graph.input}
    for tensor in bound.proto.graph.initializer:
        if tensor.name in inputs:
            _replace(proto.graph, tensor)
    return Model(proto, original.path)


def with_sizes(proto: ModelProto, given: Model) -> tuple[ModelProto, Model]:
    """An outcome with the sizes that inference finds declared, and the original as it is given
    with those of the outputs; both as they are where there is nothing to find."""
    sized = copied(proto)
    outputs = declare_sizes(sized)
    if sized == proto or (full_objection(Model(sized)) and not full_objection(Model(proto))):
        return proto, given
    original = copied(given.proto)
    for value in original.graph.output:
        write_sizes(value.type, outputs.get(value.name))
    return sized, Model(original, given.path)


def _types(values: Iterable[ValueInfoProto]) -> dict[str, str]:
    return {value.name: signature.describe_type(value.type) for value in values}


def _shortened(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."


def _joined(what: str, left: Mapping[str, _T], right: Mapping[str, _T]) -> dict[str, _T]:
    """Both mappings; what both name is the same, in its type, too."""
    for name, value in right.items():
        if name in left and repr(left[name]) != repr(value):
            given = f"is fixed to {printed(left[name])} and to {printed(value)}"
            raise CannotBind(f"{what} {name!r} {given}")
    return {**left, **right}


def _declare(value: ValueInfoProto, shape: Sequence[int | None], sizes: dict[str, int]) -> None:
    """Declare a shape of an input, in place, and note the sizes of the dims that have a name."""
    declared = signature.describe_type(value.type)
    given = f"[{','.join('?' if size is None else str(size) for size in shape)}]"
    misfit = f"the input {value.name!r} is {declared}, {given if shape else 'a scalar'} is given"
    if not value.type.HasField("tensor_type"):
        raise CannotBind(f"the input {value.name!r} is {declared}, no tensor")
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        tensor.shape.SetInParent()
        for _ in shape:
            tensor.shape.dim.add()
    if len(tensor.shape.dim) != len(shape):
        raise CannotBind(misfit)
    for dim, size in zip(tensor.shape.dim, shape, strict=True):
        if size is None:
            continue
        if dim.dim_param:
            if sizes.setdefault(dim.dim_param, size) != size:
                both = f"{sizes[dim.dim_param]} and to {size}"
                raise CannotBind(f"the dim {dim.dim_param!r} is fixed to {both} by {value.name!r}")
        elif dim.HasField("dim_value") and dim.dim_value not in (size, -1):
            raise CannotBind(misfit)
        else:
            dim.dim_value = size


def _constant(value: ValueInfoProto, given: Stored, sizes: dict[str, int]) -> TensorProto:
    """The constant that an input becomes."""
    if not value.type.HasField("tensor_type"):
        _declare(value, (), sizes)
    try:
        array = as_array(given, value.type)
    except ValueError as error:
        raise CannotBind(f"the input {value.name!r} {error}") from error
    _declare(value, array.shape, sizes)
    return numpy_helper.from_array(array, value.name)


def _replace(graph: GraphProto, tensor: TensorProto) -> None:
    """Let a graph have this initializer, instead of one of the same name."""
    kept = [one for one in graph.initializer if one.name != tensor.name]
    replace_all(graph.initializer, [*kept, tensor])
    sparse = [one for one in graph.sparse_initializer if one.values.name != tensor.name]
    replace_all(graph.sparse_initializer, sparse)
