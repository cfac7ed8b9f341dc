"""Types of a body's values that inference cannot tell once a constant stands outside."""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.rule import Site
from passes.rules.hoist.lifting import constants_of
from passes.types.value_types import INFERRED, dims_of

#: Of axes, sizes and indices onnx's inference wants the values, in the body itself.
_WHOLE = (TensorProto.INT64, TensorProto.INT32)


def write_types(site: Site, node: NodeProto) -> None:
    """Write down, in the bodies of `node`, the types of what nodes compute from their constants.

    `node` is a copy of the site's; where that has other nodes than as it was read, nothing is
    known of it.
    """
    inner = site.scope.inner(site.place.index)
    read = site.scope.owner.node[site.place.index]
    if _ops_of(read) == _ops_of(node):
        for scope, (_, graph) in zip(inner, scoping.subgraphs(node), strict=True):
            _write(site, scope, graph, frozenset())


def _ops_of(node: NodeProto) -> list[str]:
    graphs = [graph for _, graph in scoping.subgraphs(node)]
    return [
        op_of(one) for top in graphs for graph in scoping.graphs_below(top) for one in graph.node
    ]


def _write(site: Site, scope: Scope, graph: GraphProto, outer: frozenset[str]) -> None:
    own = {name for name, kind in constants_of(graph).items() if _is_whole(kind)}
    known = (outer - scoping.defined(graph)) | own
    if own:
        _complete(site, scope, graph)
    said = {value.name for value in (*graph.value_info, *graph.output)}
    for index, node in enumerate(graph.node):
        if scoping.holds_graphs(node):
            for below, (_, body) in zip(scope.inner(index), scoping.subgraphs(node), strict=True):
                _write(site, below, body, known)
        if known.isdisjoint(node.input):
            continue
        for name in node.output:
            told = site.types.within(scope, name) if name and name not in said else None
            if told is not None and dims_of(told) is not None:
                graph.value_info.append(ValueInfoProto(name=name, type=_declared(told)))


def _complete(site: Site, scope: Scope, graph: GraphProto) -> None:
    """Declare what the body returns: where it never runs, nothing else tells its shape."""
    for value in graph.output:
        complete(value, site.types.within(scope, value.name))


def complete(value: ValueInfoProto, told: TypeProto | None) -> None:
    """Declare what is told of a value, where that says more than is declared."""
    declared, known = dims_of(value.type), dims_of(told)
    if told is not None and known is not None and (declared is None or None in declared):
        value.type.CopyFrom(_declared(told))


def _is_whole(constant: TensorProto | NodeProto) -> bool:
    return isinstance(constant, TensorProto) and constant.data_type in _WHOLE


def _declared(told: TypeProto) -> TypeProto:
    """A type without the names that inference made up."""
    copy = TypeProto()
    copy.CopyFrom(told)
    for dim in copy.tensor_type.shape.dim:
        if dim.dim_param.startswith(INFERRED):
            dim.ClearField("dim_param")
    return copy
