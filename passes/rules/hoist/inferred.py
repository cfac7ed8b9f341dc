"""Types of a body's values that inference cannot find once a constant is outside."""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from passes.bodies.lifting import constants_of
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied
from passes.ir.scope import Scope
from passes.rule import Site
from passes.types.value_types import INFERRED, dims_of

#: onnx's inference needs the values of axes, sizes and indices in the body itself.
_WHOLE = (TensorProto.INT64, TensorProto.INT32)


def write_types(site: Site, node: NodeProto) -> None:
    """Write down, in the bodies of `node`, the types of what nodes compute from their constants.

    `node` is a copy of the site's; nothing is written where its operators differ from the
    original's.
    """
    inner = site.scope.inner(site.place.index)
    read = site.scope.owner.node[site.place.index]
    if _ops_of(read) == _ops_of(node):
        for scope, (_, graph) in zip(inner, scoping.subgraphs(node), strict=True):
            _write(site, scope, graph, frozenset())


def _ops_of(node: NodeProto) -> list[str]:
    graphs = [graph for _, graph in scoping.subgraphs(node)]
    return [
        op_of(inner)
        for top in graphs
        for graph in scoping.graphs_below(top)
        for inner in graph.node
    ]


def _write(site: Site, scope: Scope, graph: GraphProto, outer: frozenset[str]) -> None:
    own = {name for name, kind in constants_of(graph).items() if _is_whole(kind)}
    known = (outer - scoping.defined(graph)) | own
    if own:
        _complete(site, scope, graph)
    declared = {value.name for value in (*graph.value_info, *graph.output)}
    for index, node in enumerate(graph.node):
        if scoping.holds_graphs(node):
            for below, (_, body) in zip(scope.inner(index), scoping.subgraphs(node), strict=True):
                _write(site, below, body, known)
        if known.isdisjoint(node.input):
            continue
        for name in node.output:
            found = site.types.within(scope, name) if name and name not in declared else None
            if found is not None and dims_of(found) is not None:
                graph.value_info.append(ValueInfoProto(name=name, type=_declared(found)))


def _complete(site: Site, scope: Scope, graph: GraphProto) -> None:
    """Declare what the body returns: where it never runs, its shape is otherwise unknown."""
    for value in graph.output:
        complete(value, site.types.within(scope, value.name))


def complete(value: ValueInfoProto, inferred: TypeProto | None) -> None:
    """Declare the inferred type of a value if it is more precise than the declared one."""
    declared, known = dims_of(value.type), dims_of(inferred)
    if inferred is not None and known is not None and (declared is None or None in declared):
        value.type.CopyFrom(_declared(inferred))


def _is_whole(constant: TensorProto | NodeProto) -> bool:
    return isinstance(constant, TensorProto) and constant.data_type in _WHOLE


def _declared(inferred: TypeProto) -> TypeProto:
    """A type without the names that inference made up."""
    copy = copied(inferred)
    for dim in copy.tensor_type.shape.dim:
        if dim.dim_param.startswith(INFERRED):
            dim.ClearField("dim_param")
    return copy
