"""Comparison of models up to names."""

from __future__ import annotations

import hashlib
import itertools

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.ir.scope import Owner
from passes.types.value_types import INFERRED, shapes_below


def digest_up_to_names(model: ModelProto) -> bytes:
    """SHA-256, equal for models that differ in the names of values, nodes and symbolic dims at
    most."""
    copy = copied(model)
    _anonymize(copy)
    return hashlib.sha256(copy.SerializeToString(deterministic=True)).digest()


def _anonymize(model: ModelProto) -> None:
    """Number all values and nodes, so that only structure, types and constants are left."""
    counter = itertools.count()
    graph = model.graph
    # no file has such names: a body may define a v1 of its own

    def fresh(_: str) -> str:
        return f"\0{next(counter)}"

    mapping = {name: fresh(name) for name in _in_order(graph)}
    for node in graph.node:
        scoping.rename_free(node, mapping)
        for position, name in enumerate(node.output):
            node.output[position] = mapping.get(name, name)
        for _, inner in scoping.subgraphs(node):
            scoping.rename_all(inner, fresh)
    ends: list[ValueInfoProto] = [*graph.input, *graph.output]
    for value in ends:
        value.name = mapping[value.name]
    for tensor in graph.initializer:
        tensor.name = mapping[tensor.name]
    symbols: dict[str, str] = {}
    for owner in scoping.graphs_below(graph):
        _drop_labels(owner)
        if isinstance(owner, GraphProto):
            for value in (*owner.input, *owner.output, *owner.value_info):
                _number_symbols(value.type, symbols)


def _number_symbols(kind: TypeProto, symbols: dict[str, str]) -> None:
    """Number the symbolic dims of a type; those that inference made up stay recognizable, as the
    reference executor takes them for unknown."""
    for dim in (dim for shape in shapes_below(kind) for dim in shape.dim):
        symbol = str(dim.dim_param)  # bytes, where it is no UTF-8
        if symbol:
            made_up = INFERRED if symbol.startswith(INFERRED) else ""
            dim.dim_param = symbols.setdefault(symbol, f"{made_up}\0{len(symbols)}")


def _drop_labels(owner: Owner) -> None:
    """Names, docs and metadata of a graph and its nodes: an Edit names them after its site."""
    labelled: list[GraphProto | NodeProto] = [*owner.node]
    if isinstance(owner, GraphProto):
        labelled.append(owner)
    for labelled_item in labelled:
        labelled_item.ClearField("name")
        labelled_item.ClearField("doc_string")
        labelled_item.ClearField("metadata_props")


def _in_order(graph: GraphProto) -> list[str]:
    """The names of a region in an order that does not depend on them."""
    names = scoping.input_names(graph) + [tensor.name for tensor in graph.initializer]
    names += [name for node in graph.node for name in node.output if name]
    names += [value.name for value in graph.output]
    return list(dict.fromkeys(names))
