"""Models that are invalid by the specification but run, written as they are meant."""

from __future__ import annotations

from onnx import AttributeProto, GraphProto, ModelProto, TypeProto

from passes.ir import scope as scoping
from passes.ir.attributes import has_references
from passes.ir.graph_index import GraphIndex
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import CONTRIB, import_contrib
from passes.ir.protos import copied, replace_all
from passes.ir.scope import Place
from passes.ir.versions import NEGATIVE_AXES, SCAN_HAS_AXES
from passes.loops.form import LoopForm
from passes.types.inference import ValueTypes
from passes.types.value_types import dims_of


def as_meant(proto: ModelProto) -> tuple[ModelProto, list[str]] | None:
    """A copy that is valid where `proto` is not, and a sentence on each repair;
    None where there is nothing to repair.

    onnxruntime sorts the nodes of the main graph (those of a body have to be in order), and accepts
    operators of its own domain without an import.
    """
    copy = copied(proto)
    notes = [*_sort(copy.graph), *_import(copy)]
    return (copy, notes) if notes else None


def _sort(graph: GraphProto) -> list[str]:
    """Sort the nodes, each as early as its operands and the original order allow."""
    import networkx

    producers = GraphIndex(graph).positions
    order = networkx.DiGraph()
    order.add_nodes_from(range(len(graph.node)))
    for index, node in enumerate(graph.node):
        read = (producers[name] for name in scoping.free_names(node) if name in producers)
        order.add_edges_from((producer, index) for producer in read)
    if all(producer < index for producer, index in order.edges):
        return []
    try:
        placed = list(networkx.lexicographical_topological_sort(order))
    except networkx.NetworkXUnfeasible:
        return []  # a cycle, which is reported where the model is checked
    replace_all(graph.node, [graph.node[index] for index in placed])
    return ["the nodes of the main graph are not in order and were sorted, as onnxruntime does"]


def _import(model: ModelProto) -> list[str]:
    """Add the import that operators of the main graph, or of its bodies, lack."""
    if not import_contrib(model):
        return []
    return [f"there is no opset import for domain {CONTRIB!r}; version 1 was taken"]


def with_front_axes(model: Model) -> ModelProto:
    """A copy in which Scans count axes from the front, as they must before opset 11, where the rank
    of a tensor is known; elsewhere they stay."""
    copy = copied(model.proto)
    types = ValueTypes(model.proto)
    for place in scoping.walk_model(copy):
        opset = model.opset_at(place.scope)
        if op_of(place.node) == "Scan" and SCAN_HAS_AXES <= opset < NEGATIVE_AXES:
            _turn(place, opset, types)
    return copy


def _turn(place: Place, opset: int, types: ValueTypes) -> None:
    if has_references(place.node):
        return  # the caller of the function says what belongs to which axis
    form = LoopForm.from_node(place.node, opset)
    inner = next(one for one in place.scope.inner(place.index) if one.key[-1] == "body")
    names = {
        "scan_input_axes": [scanned.body_input for scanned in form.scanned],
        "scan_output_axes": [collected.body_output for collected in form.collected],
    }
    for attribute in place.node.attribute:
        if attribute.name in names and any(axis < 0 for axis in attribute.ints):
            elements = [types.of(inner, name) for name in names[attribute.name]]
            _turn_all(attribute, elements)


def _turn_all(attribute: AttributeProto, elements: list[TypeProto | None]) -> None:
    for position, known in enumerate(elements):
        dims = dims_of(known)
        if dims is not None:
            attribute.ints[position] %= len(dims) + 1
