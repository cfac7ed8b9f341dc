"""Models that are invalid by the letter and run all the same, written as they are meant."""

from __future__ import annotations

from onnx import GraphProto, ModelProto

from passes.ir import scope as scoping
from passes.ir.repeated import replace_all

#: A domain of which there is one version, known to onnxruntime without an import.
_UNVERSIONED = "com.microsoft"
_ONLY_VERSION = 1


def as_meant(proto: ModelProto) -> tuple[ModelProto, list[str]] | None:
    """A copy that is valid where `proto` is not, and a sentence on each thing that was mended;
    None where there is nothing of the kind.

    onnxruntime sorts the nodes of the main graph (those of a body have to be in order), and takes
    operators of its own domain without an import.
    """
    copy = ModelProto()
    copy.CopyFrom(proto)
    notes = [*_sort(copy.graph), *_import(copy)]
    return (copy, notes) if notes else None


def _sort(graph: GraphProto) -> list[str]:
    """Put the nodes in order, each as early as its operands and the order that was allow."""
    import networkx

    makers = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    order = networkx.DiGraph()
    order.add_nodes_from(range(len(graph.node)))
    for index, node in enumerate(graph.node):
        read = (makers[name] for name in scoping.free_names(node) if name in makers)
        order.add_edges_from((maker, index) for maker in read)
    if all(maker < index for maker, index in order.edges):
        return []
    try:
        placed = list(networkx.lexicographical_topological_sort(order))
    except networkx.NetworkXUnfeasible:
        return []  # a cycle, which is said where the model is checked
    replace_all(graph.node, [graph.node[index] for index in placed])
    return ["the nodes of the main graph are not in order and were sorted, as onnxruntime does"]


def _import(model: ModelProto) -> list[str]:
    """Add the import that operators of the main graph, or of its bodies, lack."""
    if any(entry.domain == _UNVERSIONED for entry in model.opset_import):
        return []
    graphs = scoping.graphs_below(model.graph)
    if not any(node.domain == _UNVERSIONED for graph in graphs for node in graph.node):
        return []
    model.opset_import.add(domain=_UNVERSIONED, version=_ONLY_VERSION)
    return [f"there is no opset import for domain {_UNVERSIONED!r}; version 1 was taken"]
