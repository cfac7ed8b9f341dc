"""The declarations of graphs: their inputs and outputs, and the types of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import onnx
from onnx import (
    FunctionProto,
    GraphProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

from passes.check.survey import Survey
from passes.errors import BadModel
from passes.ir.operators import CONTROL_FLOW, op_of
from passes.ir.scope import Key, Scope
from passes.types.value_types import Dims, describe, dims_of, element

_MOST = 1 << 40  # elements


@dataclass(frozen=True)
class Declaration:
    """The content of a declared type.

    `kind`: the type in words, without the shape, empty if it is unknown. `dims`: the shape,
    None if the rank or a size is unknown. `odd`: no tensor can have this type.
    """

    kind: str
    dims: Dims | None
    odd: bool = False


@dataclass(frozen=True)
class GraphDeclarations:
    """The head of a graph or function, read once.

    `taken`: the inputs that the caller feeds, which name no initializer. `returned`: the outputs.
    `kinds`: the types of what is declared, in words, without the shape, and of what the bodies of
    nodes return; empty: unknown.
    """

    taken: Sequence[str]
    returned: Sequence[str]
    kinds: dict[str, str]
    _declared: Mapping[str, Declaration]
    _constants: Mapping[str, TensorProto | SparseTensorProto]

    def returned_kind(self, position: int) -> str:
        """The type of what is returned at a position; empty where there is none, or it is
        unknown."""
        if position >= len(self.returned):
            return ""
        return self.kinds.get(self.returned[position], "")

    def dims(self, name: str) -> Dims | None:
        """The shape that a value is declared with, where all its sizes are static; else None."""
        if name in self._constants:
            return tuple(self._constants[name].dims)
        return self._declared[name].dims if name in self._declared else None


Headings = Mapping[Key, GraphDeclarations]


def read_headings(found: Survey) -> Headings:
    """The headings of all graphs, by the keys of their scopes.

    Raises:
        BadModel: a graph declares an element type that onnx does not know, or more elements than
            any machine can hold, which is garbage on which arithmetic overflows.
    """
    headings = {scope.key: _read(scope) for scope in found.scopes}
    for place in reversed(found.places):  # inner nodes first
        if op_of(place.node) in CONTROL_FLOW and place.bodies:
            bodies = [headings[body.key] for body in place.bodies]
            first = int(op_of(place.node) == "Loop")  # after the condition
            _add_returned(headings[place.scope.key].kinds, place.node.output[:], bodies, first)
    return headings


def _add_returned(
    kinds: dict[str, str], outputs: Sequence[str], bodies: Sequence[GraphDeclarations], first: int
) -> None:
    """Add the types of a node's outputs that are not declared, but that all its bodies declare."""
    for position, name in enumerate(outputs, first):
        if name and not kinds.get(name):
            known = {body.returned_kind(position) for body in bodies}
            kinds[name] = known.pop() if len(known) == 1 else ""


def _read(scope: Scope) -> GraphDeclarations:
    graph = scope.owner
    if isinstance(graph, FunctionProto):
        return GraphDeclarations(graph.input[:], graph.output[:], {}, {}, {})
    declared: dict[str, Declaration] = {}
    # if a name is declared twice, the first declaration with a type counts
    taken = _list("input", graph.input, declared, scope)
    returned = _list("output", graph.output, declared, scope)
    _list("value", graph.value_info, declared, scope)
    kinds = {name: says.kind for name, says in declared.items()}
    constants = _constants(graph)
    if constants:
        taken = [name for name in taken if name not in constants]
        kinds.update({name: _element(tensor) for name, tensor in constants.items()})
    return GraphDeclarations(taken, returned, kinds, declared, constants)


def _constants(graph: GraphProto) -> dict[str, TensorProto | SparseTensorProto]:
    found: dict[str, TensorProto | SparseTensorProto] = {
        tensor.name: tensor for tensor in graph.initializer[:]
    }
    for sparse in graph.sparse_initializer[:]:
        found[sparse.values.name] = sparse
    return found


def _element(tensor: TensorProto | SparseTensorProto) -> str:
    values = tensor.values if isinstance(tensor, SparseTensorProto) else tensor
    return element(values.data_type)


def _list(
    what: str, values: Sequence[ValueInfoProto], declared: dict[str, Declaration], scope: Scope
) -> list[str]:
    """The names of these values; adds their declarations."""
    names = []
    for value in values[:]:
        name = value.name
        names.append(name)
        says = _declaration(value.type.SerializeToString())
        if says.odd:
            _complain(what, value, scope)
        if name not in declared or not declared[name].kind:
            declared[name] = says
    return names


@lru_cache(1 << 14)
def _declaration(content: bytes) -> Declaration:
    """The declaration of a type; by its bytes, since most values share their type with others."""
    kind = TypeProto.FromString(content)
    dims = dims_of(kind)
    known = None if dims is None or any(isinstance(dim, str | None) for dim in dims) else dims
    odd = bool(_unknown_element(kind)) or _elements(kind) > _MOST
    return Declaration(describe(kind), known, odd)


def _complain(what: str, value: ValueInfoProto, scope: Scope) -> None:
    unknown = _unknown_element(value.type)
    if unknown and what != "value":
        raise BadModel(
            f"{what} {value.name!r} has element type {unknown}, which the installed onnx "
            f"{onnx.__version__} does not know",
            path=scope.path,
        )
    if _elements(value.type) > _MOST:
        sizes = [dim.dim_value for dim in value.type.tensor_type.shape.dim if dim.dim_value]
        raise BadModel(
            f"{what} {value.name!r} has static sizes {sizes}, more elements than any machine can "
            "hold",
            path=scope.path,
        )


def _elements(kind: TypeProto) -> int:
    return math.prod(max(dim.dim_value, 1) for dim in kind.tensor_type.shape.dim)


def _unknown_element(kind: TypeProto) -> int:
    """The element type of a tensor, also inside sequences and optionals, that onnx does not know;
    0 where there is none."""
    while True:
        match kind.WhichOneof("value"):
            case "sequence_type":
                kind = kind.sequence_type.elem_type
            case "optional_type":
                kind = kind.optional_type.elem_type
            case "tensor_type":
                elem_type = kind.tensor_type.elem_type
                return 0 if element(elem_type) else elem_type
            case _:
                return 0
