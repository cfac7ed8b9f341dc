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

    What is done in a body that Model Explorer does not show is told of at the node around it.

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
        around = () if place is None else (place, *place.scope.holders())
        ids = (_ids(one, graphs[0].id, shown) for one in around)
        if (known := next(filter(None, ids), None)) is not None:
            found[known[0]][known[1]].append(record)
    name = f"passes {report.command}"
    plain = {"hideInAggregatedStatsTable": True, "hideInChildrenStatsTable": True}  # of numbers
    data = {
        graph: GraphNodeData({id_: _result(each) for id_, each in nodes.items()}, name, **plain)
        for graph, nodes in found.items()
    }
    return str(ModelNodeData(data).to_json_string(indent=2))


def _ids(place: Place, main: str, shown: _Shown) -> tuple[str, str] | None:
    """The ids of the graph and of the node that show a place; None if no node does."""
    graph, prefix = _inside(place.scope, main, shown)
    for name in place.node.output:
        for tag in (f"{prefix}{name}_if_", f"{prefix}{name}"):
            if (graph, tag) in shown:
                return graph, shown[graph, tag]
    return None


def _inside(scope: Scope, main: str, shown: _Shown) -> tuple[str, str]:
    """The id of the graph that shows the nodes of a scope, and what their names begin with: those
    of the branches of an If are in the graph around it."""
    if scope.holder is not None:
        graph, node = _ids(scope.holder, main, shown) or ("", "")
        name = f"{node}/{scope.key[-1]}"
        return (graph, f"{name}/") if op_of(scope.holder.node) == "If" else (name, "")
    owner = scope.owner
    if not isinstance(owner, FunctionProto):
        return main, ""
    parts = ["[function]" + owner.domain, owner.name, *filter(None, [owner.overload])]
    return "::".join(parts), ""


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
