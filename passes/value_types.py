"""Types and shapes of values, inferred once per model and looked up by scope and name."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

import onnx
from google.protobuf.message import Message
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
    helper,
)

from passes import scope as scoping
from passes.scope import Key, Place, Scope

#: A dim: its size, its symbol, or None where nothing is known.
Dim = int | str | None
_LARGE = 1 << 16  # bytes; inference needs no weight larger than a shape
_OVERRIDABLE_SINCE = 4  # the IR version from which a caller may feed an initializer
_HIDDEN = "not.to.be.inferred"  # a domain that nobody knows


def dims_of(type_proto: TypeProto | None) -> tuple[Dim, ...] | None:
    """The dims of a tensor type, or None where the rank is unknown."""
    if type_proto is None or not type_proto.tensor_type.HasField("shape"):
        return None
    return tuple(
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
        for dim in type_proto.tensor_type.shape.dim
    )


def elem_type_of(type_proto: TypeProto | None) -> int:
    """The element type of a tensor type, 0 where it is unknown or no tensor."""
    if type_proto is None or not type_proto.HasField("tensor_type"):
        return 0
    return type_proto.tensor_type.elem_type


def tensor_type(elem_type: int, dims: tuple[Dim, ...] | None) -> TypeProto:
    """A tensor type; `dims` None for an unknown rank."""
    made: TypeProto = helper.make_tensor_type_proto(elem_type, dims)
    return made


def is_known(type_proto: TypeProto) -> bool:
    """Whether a type says anything: an empty TypeProto means 'not said'."""
    return type_proto.WhichOneof("value") is not None


@dataclass
class ValueTypes:
    """Types of the values of one model, in every scope; shape inference runs when first asked."""

    model: ModelProto

    def of(self, scope: Scope, name: str) -> TypeProto | None:
        """The type of what `name` means in `scope`, None where nothing tells it."""
        return _look_up(self._by_scope, scope, name)

    def within(self, scope: Scope, name: str) -> TypeProto | None:
        """The type of what `scope` itself defines as `name`, None where nothing tells it."""
        table = self._by_scope.get(scope.key)
        return None if table is None else table.find(name)

    @cached_property
    def _by_scope(self) -> _Tables:
        light = _light_copy(self.model)
        tables: dict[Key, _Table] = {}
        _tabulate(_inferred(light), "main", 0, tables)
        _infer_functions(light, tables)
        return tables


@dataclass
class _Table:
    """The types of what one scope defines, by name; they are read when asked for."""

    graph: GraphProto

    def find(self, name: str) -> TypeProto | None:
        """The type of a name, None where nothing tells it."""
        constant = self._constants.get(name)
        if constant is not None:
            return constant
        value = self._values.get(name)
        return value.type if value is not None and is_known(value.type) else None

    def defines(self, name: str) -> bool:
        """Whether the scope defines a name, of a known type or not."""
        return name in self._values or name in self._defined

    @cached_property
    def _values(self) -> dict[str, ValueInfoProto]:
        graph = self.graph
        found: dict[str, ValueInfoProto] = {}
        for value in (*graph.value_info, *graph.output, *graph.input):  # the last one counts
            name = value.name
            if name not in found or is_known(value.type):
                found[name] = value
        found.pop("", None)
        return found

    @cached_property
    def _constants(self) -> dict[str, TypeProto]:
        dense = self.graph.initializer
        found = {one.name: tensor_type(one.data_type, tuple(one.dims)) for one in dense}
        for sparse in self.graph.sparse_initializer:
            found[sparse.values.name] = tensor_type(sparse.values.data_type, tuple(sparse.dims))
        return found

    @cached_property
    def _defined(self) -> set[str]:
        return scoping.defined(self.graph)


_Tables = Mapping[Key, _Table]


def _look_up(tables: _Tables, scope: Scope, name: str) -> TypeProto | None:
    for at in scope.chain():
        table = tables.get(at.key)
        if table is not None and table.defines(name):
            return table.find(name)  # of an unknown type, it still hides what is outside
    return None


def _tabulate(model: ModelProto, path: str, position: int, tables: dict[Key, _Table]) -> None:
    for scope in _every_scope(Scope(path, (position,), model.graph)):
        assert isinstance(scope.owner, GraphProto)
        tables[scope.key] = _Table(scope.owner)


def _every_scope(scope: Scope) -> Iterator[Scope]:
    yield scope
    for index, node in enumerate(scope.owner.node):
        if scoping.holds_graphs(node):
            for inner in scope.inner(index):
                yield from _every_scope(inner)


_GIVES_UP = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    RuntimeError,
    ValueError,
)


def _inferred(model: ModelProto) -> ModelProto:
    """The model with every type that onnx can infer; as it was where inference gives up."""
    try:
        inferred: ModelProto = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except _GIVES_UP:
        return model  # a model that inference rejects still has its declared types
    return inferred


def _light_copy(model: ModelProto) -> ModelProto:
    """A copy without large weights, overridable defaults and constant inputs of bodies.

    Inference would take a default for the value that the input always has; and it counts a
    body's inputs against what the node feeds, which an IR 3 body that lists its initializers as
    inputs would fail.
    """
    copy = ModelProto()
    _copy_fields(model, copy, without=("graph", "training_info"))
    _copy_fields(model.graph, copy.graph, without=("initializer",))
    defaults = scoping.input_names(model.graph) if model.ir_version >= _OVERRIDABLE_SINCE else []
    _copy_initializers(model.graph, copy.graph, without=frozenset(defaults))
    tops: list[scoping.Owner] = [copy.graph, *copy.functions]
    for owner in tops:
        for graph in scoping.graphs_below(owner):
            if isinstance(graph, GraphProto) and graph is not copy.graph:
                scoping.drop_constant_inputs(graph)
    return copy


def _copy_fields(source: Message, copy: Message, without: Container[str]) -> None:
    for field, value in source.ListFields():
        if field.name in without:
            continue
        if field.is_repeated:
            getattr(copy, field.name).extend(value)
        elif field.message_type is not None:
            getattr(copy, field.name).CopyFrom(value)
        else:
            setattr(copy, field.name, value)


def _copy_initializers(source: GraphProto, copy: GraphProto, without: Container[str]) -> None:
    for tensor in source.initializer:
        if tensor.name in without:
            continue
        if tensor.ByteSize() > _LARGE:
            copy.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        else:
            copy.initializer.append(tensor)


def _infer_functions(model: ModelProto, tables: dict[Key, _Table]) -> None:
    """Types inside functions, from what their calls pass, callers before callees."""
    calls = _calls(model)
    callers = {
        position: {place.scope.key[0] for place in places} for position, places in calls.items()
    }
    try:
        order = list(TopologicalSorter(callers).static_order())
    except CycleError:
        return  # functions that call themselves have no types that inference could find
    calling = set().union(*callers.values())
    for position in order[1:]:  # behind the main graph
        assert isinstance(position, int)
        function = model.functions[position - 1]
        body = _function_as_model(model, function, calls[position], tables)
        if position in calling:
            body.functions.extend(model.functions)
        path = scoping.function_label(function)
        _tabulate(_inferred(body), path, position, tables)


def _calls(model: ModelProto) -> dict[int, list[Place]]:
    """The calls of every function that the main graph reaches, by the function's position."""
    tops = list(scoping.scopes(model))
    positions = {
        _called(function.domain, function.name, function.overload): position
        for position, function in enumerate(model.functions, start=1)
    }
    found: dict[int, list[Place]] = {}
    pending = tops[:1] if positions else []
    while pending:
        for place in scoping.walk(pending.pop()):
            node = place.node
            position = positions.get(_called(node.domain, node.op_type, node.overload))
            if position is not None:
                if position not in found:
                    pending.append(tops[position])
                found.setdefault(position, []).append(place)
    return found


def _called(domain: str, name: str, overload: str) -> tuple[str, str, str]:
    return "" if scoping.is_onnx_domain(domain) else domain, name, overload


def _function_as_model(
    model: ModelProto, function: FunctionProto, calls: list[Place], tables: _Tables
) -> ModelProto:
    body = ModelProto(ir_version=model.ir_version, opset_import=function.opset_import)
    body.opset_import.add(domain=_HIDDEN, version=1)
    body.graph.name = function.name
    body.graph.node.extend(function.node)
    _settle_attributes(body.graph, function, [place.node for place in calls])
    body.graph.value_info.extend(function.value_info)
    for position, name in enumerate(function.input):
        value = body.graph.input.add(name=name)
        agreed = _agreed([_argument(place, position, tables) for place in calls])
        if agreed is not None:
            value.type.CopyFrom(agreed)
    body.graph.output.extend(ValueInfoProto(name=name) for name in function.output)
    return body


def _argument(place: Place, position: int, tables: _Tables) -> TypeProto | None:
    given = place.node.input
    return _look_up(tables, place.scope, given[position]) if position < len(given) else None


def _settle_attributes(graph: GraphProto, function: FunctionProto, calls: list[NodeProto]) -> None:
    """Write what the calls agree on in place of references to attributes.

    Inference reads a reference as 0: where the calls differ, the node is hidden from it.
    """
    for owner in scoping.graphs_below(graph):
        for node in owner.node:
            for attribute in [one for one in node.attribute if one.ref_attr_name]:
                given = [_given(call, function, attribute.ref_attr_name) for call in calls]
                if given[0] is None or any(one != given[0] for one in given):
                    node.domain = _HIDDEN
                else:
                    name = attribute.name
                    attribute.CopyFrom(given[0])
                    attribute.name = name


def _given(call: NodeProto, function: FunctionProto, name: str) -> AttributeProto | None:
    """What a call says of an attribute; None where its own caller says it, or nobody."""
    said = {one.name: one for one in (*function.attribute_proto, *call.attribute)}
    found = said.get(name)
    return None if found is None or found.ref_attr_name else found


def _agreed(types: list[TypeProto | None]) -> TypeProto | None:
    """What all calls agree on: the type, without the dims that differ."""
    first, *rest = types
    if first is None or any(other is None for other in rest):
        return None
    if all(other == first for other in rest):
        return first
    elem_types = {elem_type_of(one) for one in types}
    if len(elem_types) != 1 or 0 in elem_types:
        return None
    shapes = [dims_of(one) for one in types]
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes) or len({len(shape) for shape in known}) != 1:
        return tensor_type(elem_types.pop(), None)
    dims = tuple(
        column[0] if len(set(column)) == 1 else None for column in zip(*known, strict=True)
    )
    return tensor_type(elem_types.pop(), dims)
