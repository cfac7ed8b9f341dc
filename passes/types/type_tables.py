"""The types that onnx infers in a model, as tables by scope and name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import onnx
from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.scope import Key, Scope
from passes.types.shape_inference import infer_shapes
from passes.types.value_types import elem_type_of, is_known, tensor_type


@dataclass
class TypeTable:
    """The types of what one scope defines, by name; they are read on demand."""

    graph: GraphProto

    def find(self, name: str) -> TypeProto | None:
        """The type of a name, None if it is unknown."""
        constant = self._constants.get(name)
        if constant is not None:
            return constant
        value = self._values.get(name)
        return value.type if value is not None and is_known(value.type) else None

    def defines(self, name: str) -> bool:
        """Return whether the scope defines a name, of a known type or not."""
        return name in self._values or name in self._defined

    @property
    def known(self) -> dict[str, TypeProto]:
        """The types of all names whose type is known."""
        values = {name: value.type for name, value in self._values.items() if is_known(value.type)}
        return values | self._constants

    def elem_types(self) -> Iterator[tuple[str, int]]:
        """The names of all tensors whose type is known, each with its element type."""
        for name, value in self._values.items():
            yield name, elem_type_of(value.type)
        for tensor in self.graph.initializer:
            yield tensor.name, tensor.data_type

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
        found = {tensor.name: tensor_type(tensor.data_type, tuple(tensor.dims)) for tensor in dense}
        for sparse in self.graph.sparse_initializer:
            found[sparse.values.name] = tensor_type(sparse.values.data_type, tuple(sparse.dims))
        return found

    @cached_property
    def _defined(self) -> set[str]:
        return scoping.defined(self.graph)


Tables = Mapping[Key, TypeTable]


def look_up(tables: Tables, scope: Scope, name: str) -> TypeProto | None:
    for enclosing in scope.chain():
        table = tables.get(enclosing.key)
        if table is not None and table.defines(name):
            return table.find(name)  # even with an unknown type, it shadows what is outside
    return None


def tabulate(model: ModelProto, path: str, position: int, tables: dict[Key, TypeTable]) -> None:
    for scope in every_scope(Scope(path, (position,), model.graph)):
        assert isinstance(scope.owner, GraphProto)
        tables[scope.key] = TypeTable(scope.owner)


def every_scope(scope: Scope) -> Iterator[Scope]:
    """The scope and those of all bodies below."""
    yield scope
    for index, node in enumerate(scope.owner.node):
        if scoping.holds_graphs(node):
            for inner in scope.inner(index):
                yield from every_scope(inner)


_GIVES_UP = (
    onnx.shape_inference.InferenceError,
    onnx.checker.ValidationError,
    RuntimeError,
    ValueError,
)


def inferred(model: ModelProto) -> ModelProto:
    """The model with every type that onnx can infer; as it was where inference gives up."""
    try:
        return infer_shapes(model)
    except _GIVES_UP:
        return model  # a model that inference rejects still has its declared types
