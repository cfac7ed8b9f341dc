"""Copies of models with other tensors: those that are replaced or left out are never copied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from passes.ir.operators import HOLDERS, ops_of
from passes.ir.protos import copy_fields

#: What takes the place of a tensor: itself if it stays, None if it is left out.
Put = Callable[[TensorProto], TensorProto | None]
#: What is done to a copied graph in the end, given the graph and the copy.
Finish = Callable[[GraphProto, GraphProto], None]
_SPECIAL = HOLDERS | {"Constant"}


def constants(graph: GraphProto) -> Iterator[TensorProto]:
    """Yield the tensors of initializers and Constants, in bodies, too."""
    yield from graph.initializer[:]
    nodes = graph.node[:]
    for position in _special(ops_of(nodes)):
        yield from _constants(nodes[position])


def _special(ops: Sequence[str]) -> list[int]:
    """The positions of Constants and of nodes that may have bodies."""
    return [at for at, op in enumerate(ops) if op in _SPECIAL or "::" in op]


def _constants(node: NodeProto) -> Iterator[TensorProto]:
    for one in node.attribute[:]:
        if one.HasField("t"):
            yield one.t
        elif one.HasField("g"):
            yield from constants(one.g)
        for graph in one.graphs[:]:
            yield from constants(graph)


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
    Constant is left out with its tensor. Bodies in which tensors change are finished, before the
    graphs around them."""
    copy_fields(graph, copy, ("initializer", "node"))
    copy.initializer.extend(new for new in map(put, graph.initializer[:]) if new is not None)
    nodes, same = graph.node[:], 0
    for position in _special(ops_of(nodes)):
        if any(put(one) is not one for one in _constants(nodes[position])):
            copy.node.extend(nodes[same:position])
            same = position + 1
            _add_changed(nodes[position], copy, put, finish)
    copy.node.extend(nodes[same:])
    finish(graph, copy)


def _add_changed(node: NodeProto, copy: GraphProto, put: Put, finish: Finish) -> None:
    """Add a Constant or a node with bodies, with the tensors that it gets."""
    made = NodeProto()
    copy_fields(node, made, ("attribute",))
    for one in node.attribute[:]:
        attribute = made.attribute.add()
        copy_fields(one, attribute, ("t", "g", "graphs"))
        if one.HasField("t"):
            new = put(one.t)
            if new is None:
                return
            attribute.t.CopyFrom(new)
        if one.HasField("g"):
            add_graph(one.g, attribute.g, put, finish)
        for graph in one.graphs[:]:
            add_graph(graph, attribute.graphs.add(), put, finish)
    copy.node.append(made)
