"""Types and shapes of values, inferred once per model and looked up by scope and name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import onnx
from onnx import FunctionProto, GraphProto, ModelProto, TensorProto, TypeProto, helper

from passes import scope as scoping
from passes.scope import Key, Scope

#: A dim: its size, its symbol, or None where nothing is known.
Dim = int | str | None
_LARGE = 1 << 16  # bytes; inference needs no weight larger than a shape


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
        for at in scope.chain():
            found = self.within(at, name)
            if found is not None:
                return found
        return None

    def within(self, scope: Scope, name: str) -> TypeProto | None:
        """The type of what `scope` itself defines as `name`, None where nothing tells it."""
        return self._by_scope.get(scope.key, {}).get(name)

    @cached_property
    def _by_scope(self) -> Mapping[Key, Mapping[str, TypeProto]]:
        light = _light_copy(self.model)
        tables: dict[Key, dict[str, TypeProto]] = {}
        _tabulate(_inferred(light), "main", (0,), tables)
        _infer_functions(light, tables)
        return tables


def _tabulate(
    model: ModelProto, path: str, key: Key, tables: dict[Key, dict[str, TypeProto]]
) -> None:
    for scope in _every_scope(Scope(path, key, model.graph)):
        assert isinstance(scope.owner, GraphProto)
        tables[scope.key] = _declared(scope.owner)


def _every_scope(scope: Scope) -> Iterator[Scope]:
    yield scope
    for index in range(len(scope.owner.node)):
        if any(True for _ in scoping.subgraphs(scope.owner.node[index])):
            for inner in scope.inner(index):
                yield from _every_scope(inner)


def _declared(graph: GraphProto) -> dict[str, TypeProto]:
    table = {
        tensor.name: tensor_type(tensor.data_type, tuple(tensor.dims))
        for tensor in graph.initializer
    }
    for sparse in graph.sparse_initializer:
        table[sparse.values.name] = tensor_type(sparse.values.data_type, tuple(sparse.dims))
    for value in (*graph.value_info, *graph.output, *graph.input):
        if value.name and is_known(value.type) and value.name not in table:
            table[value.name] = value.type
    return table


def _inferred(model: ModelProto) -> ModelProto:
    """The model with every type that onnx can infer; as it was where inference gives up."""
    try:
        inferred: ModelProto = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return model  # a model that inference rejects still has its declared types
    return inferred


def _light_copy(model: ModelProto) -> ModelProto:
    """A copy without large weights, and without body inputs that name an initializer.

    Inference counts a body's inputs against what the node feeds, which an IR 3 body that lists
    its initializers as inputs would fail.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    tops: list[scoping.Owner] = [copy.graph, *copy.functions]
    for owner in tops:
        for graph in scoping.graphs_below(owner):
            if isinstance(graph, FunctionProto):
                continue
            for tensor in graph.initializer:
                _drop_large(tensor)
            if graph is not copy.graph:
                _drop_constant_inputs(graph)
    return copy


def _drop_large(tensor: TensorProto) -> None:
    if tensor.ByteSize() > _LARGE:
        name, data_type, dims = tensor.name, tensor.data_type, list(tensor.dims)
        tensor.Clear()
        tensor.name, tensor.data_type = name, data_type
        tensor.dims.extend(dims)


def _drop_constant_inputs(graph: GraphProto) -> None:
    constants = scoping.initializer_names(graph)
    kept = [value for value in graph.input if value.name not in constants]
    if len(kept) != len(graph.input):
        del graph.input[:]
        graph.input.extend(kept)


def _infer_functions(model: ModelProto, tables: dict[Key, dict[str, TypeProto]]) -> None:
    """Types inside functions, from what their calls pass, callers before callees."""
    pending = dict(enumerate(model.functions, start=1))
    visited: list[Scope] = [Scope("main", (0,), model.graph)]
    while pending:
        called = {
            position: calls
            for position, function in pending.items()
            if (calls := _calls(function, visited)) and not _called_from(function, pending)
        }
        if not called:
            return  # what is left is never called, or calls itself
        for position, calls in called.items():
            function = pending.pop(position)
            path = scoping.function_label(function)
            body = _function_as_model(model, function, calls, tables)
            _tabulate(_inferred(body), path, (position,), tables)
            visited.append(Scope(path, (position,), function))


def _is_call(node: onnx.NodeProto, function: FunctionProto) -> bool:
    return (node.domain, node.op_type, node.overload) == (
        function.domain,
        function.name,
        function.overload,
    )


def _called_from(function: FunctionProto, pending: Mapping[int, FunctionProto]) -> bool:
    return any(
        _is_call(node, function)
        for other in pending.values()
        if other is not function
        for graph in scoping.graphs_below(other)
        for node in graph.node
    )


def _calls(function: FunctionProto, visited: list[Scope]) -> list[scoping.Place]:
    return [
        place
        for scope in visited
        for place in scoping.walk(scope)
        if _is_call(place.node, function)
    ]


def _function_as_model(
    model: ModelProto,
    function: FunctionProto,
    calls: list[scoping.Place],
    tables: Mapping[Key, Mapping[str, TypeProto]],
) -> ModelProto:
    body = ModelProto(ir_version=model.ir_version, opset_import=function.opset_import)
    body.functions.extend(model.functions)
    body.graph.name = function.name
    body.graph.node.extend(function.node)
    body.graph.value_info.extend(function.value_info)
    for position, name in enumerate(function.input):
        value = body.graph.input.add(name=name)
        agreed = _agreed([_argument(place, position, tables) for place in calls])
        if agreed is not None:
            value.type.CopyFrom(agreed)
    body.graph.output.extend(onnx.ValueInfoProto(name=name) for name in function.output)
    return body


def _argument(
    place: scoping.Place, position: int, tables: Mapping[Key, Mapping[str, TypeProto]]
) -> TypeProto | None:
    if position >= len(place.node.input):
        return None
    name = place.node.input[position]
    for at in place.scope.chain():
        found = tables.get(at.key, {}).get(name)
        if found is not None:
            return found
    return None


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
