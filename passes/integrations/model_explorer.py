"""Node data for Model Explorer: what was done at each node of a model, as a text and a colour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from model_explorer.node_data_builder import GraphNodeData, ModelNodeData, NodeDataResult
from model_explorer_onnx.main import ONNXAdapter
from onnx import FunctionProto

from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import Place, Scope, walk_model
from passes.reports.report import Record, Report

#: The colours of nodes that were rewritten and verified, rewritten only, and refused.
_VERIFIED, _REWRITTEN, _REFUSED = "#b6e3c2", "#fbe5a3", "#f4c7c3"

#: The nodes that Model Explorer shows: the id of the graph and the name of an output to the id.
_Shown = Mapping[tuple[str, str], str]


def node_data(model: str | PathLike[str], report: Report) -> str:
    """The JSON that Model Explorer loads beside the model at a path, which a command was run on.

    A loop that Model Explorer does not show, as it is in the body of a body, is told of at the node
    around it.

    Raises:
        BadModel: the model cannot be read.
    """
    places = {place.path: place for place in walk_model(Model.load(Path(model)).proto)}
    loops = {output: place for place in places.values() for output in place.node.output}
    graphs = ONNXAdapter().convert(str(model), {})["graphs"]
    shown = {
        (graph.id, one.value): node.id
        for graph in graphs
        for node in graph.nodes
        for each in node.outputsMetadata
        for one in each.attrs
        if one.key == "__tensor_tag"
    }
    found: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in [*report.rewrites, *report.telling]:
        place = places.get(record.path) or places.get(record.loop) or loops.get(record.value)
        at = None if place is None else _node(place, graphs[0].id, shown)
        if at is not None:
            found[at[0]][at[1]].append(record)
    name = f"passes {report.command}"
    data = {
        graph: GraphNodeData({node: _result(records) for node, records in nodes.items()}, name)
        for graph, nodes in found.items()
    }
    return str(ModelNodeData(data).to_json_string(indent=2))


def _node(place: Place, main: str, shown: _Shown) -> tuple[str, str] | None:
    """The ids of the graph and of the node by which a place, or the one around it, is shown."""
    holder = place.scope.holder
    graph = _graph(place.scope, main, shown)
    for output in place.node.output:
        if (graph, output) in shown:
            return graph, shown[graph, output]
    return None if holder is None else _node(holder, main, shown)


def _graph(scope: Scope, main: str, shown: _Shown) -> str:
    """The id of the graph in which the nodes of a scope are: the branches of an If are in the one
    around it."""
    holder = scope.holder
    if holder is not None:
        around = _graph(holder.scope, main, shown)
        if op_of(holder.node) == "If":
            return around
        return f"{shown.get((around, holder.node.output[0]), '')}/{scope.key[-1]}"
    owner = scope.owner
    if not isinstance(owner, FunctionProto):
        return main
    parts = ["[function]" + owner.domain, owner.name, *filter(None, [owner.overload])]
    return "::".join(parts)


def _result(records: Sequence[Record]) -> NodeDataResult:
    """The text and the colour of a node."""
    texts, colors = [], set()
    for one in records:
        if one.outcome == "refused":
            texts.append(f"{one.rule}: {one.code} ({one.sentence})")
            colors.add(_REFUSED)
        else:
            verdict = "not verified" if one.checked is None else one.checked.verdict
            texts.append(f"{one.rule}: {verdict}")
            colors.add(_VERIFIED if verdict == "verified" else _REWRITTEN)
    color = next(one for one in (_REWRITTEN, _VERIFIED, _REFUSED) if one in colors)
    return NodeDataResult("; ".join(dict.fromkeys(texts)), color)
