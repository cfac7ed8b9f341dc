"""Copies of models with other tensors: those that are replaced or left out are never copied."""

from __future__ import annotations

from collections.abc import Callable, Collection

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from passes.ir.operators import op_of
from passes.ir.places import holds_graphs
from passes.ir.protos import copy_fields

#: What takes the place of a tensor: itself if it stays, None if it is left out.
Put = Callable[[TensorProto], TensorProto | None]
#: What is done to a copied graph in the end, given the graph and the copy.
Finish = Callable[[GraphProto, GraphProto], None]


def with_tensors(model: ModelProto, put: Put, without: Collection[str] = ()) -> ModelProto:
    """A copy of a model with other initializers and Constants in its main graph and bodies, and
    without some fields of the model."""
    copy = ModelProto()
    copy_fields(model, copy, ("graph", *without))
    add_graph(model.graph, copy.graph, put)
    return copy


def add_graph(
    graph: GraphProto, copy: GraphProto, put: Put, finish: Finish = lambda graph, copy: None
) -> None:
    """Add to a copy what a graph has, with other initializers and Constants, in bodies, too; a
    Constant is left out with its tensor. Bodies are finished before the graphs around them."""
    copy_fields(graph, copy, ("initializer", "node"))
    for tensor in graph.initializer[:]:
        new = put(tensor)
        if new is not None:
            copy.initializer.append(new)
    for node in graph.node[:]:
        if not node.attribute:  # quicker than to find none in it
            copy.node.append(node)
        elif holds_graphs(node):
            _add_holder(node, copy.node.add(), put, finish)
        elif op_of(node) == "Constant":
            _add_constant(node, copy, put)
        else:
            copy.node.append(node)
    finish(graph, copy)


def _add_holder(node: NodeProto, copy: NodeProto, put: Put, finish: Finish) -> None:
    copy_fields(node, copy, ("attribute",))
    for one in node.attribute[:]:
        made = copy.attribute.add()
        copy_fields(one, made, ("g", "graphs"))
        if one.HasField("g"):
            add_graph(one.g, made.g, put, finish)
        for graph in one.graphs[:]:
            add_graph(graph, made.graphs.add(), put, finish)


def _add_constant(node: NodeProto, copy: GraphProto, put: Put) -> None:
    for one in node.attribute[:]:
        new = put(one.t) if one.HasField("t") else one.t
        if new is None:
            return
        if new is not one.t:
            made = copy.node.add()
            copy_fields(node, made, ("attribute",))
            attribute = made.attribute.add()
            copy_fields(one, attribute, ("t",))
            attribute.t.CopyFrom(new)
            return
    copy.node.append(node)
