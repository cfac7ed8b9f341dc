"""One iteration of a loop, written out: the body's nodes with names of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

from passes import scope as scoping
from passes.author import Author

#: The metadata that says which iteration a node was written for.
ITERATION_KEY = "passes.iteration"


@dataclass(frozen=True)
class SharedBody:
    """A body whose weights, at every depth, stand outside, where all iterations read them."""

    graph: GraphProto
    constants: tuple[TensorProto, ...]

    @classmethod
    def of(cls, body: GraphProto, author: Author) -> SharedBody:
        """Move the dense initializers of `body` and of what it nests out of it."""
        graph = GraphProto()
        graph.CopyFrom(body)
        constants: list[TensorProto] = []
        for inner in scoping.graphs_below(graph):
            assert isinstance(inner, GraphProto)
            constants += _moved_out(inner, author)
        return cls(graph, tuple(constants))


def _moved_out(graph: GraphProto, author: Author) -> list[TensorProto]:
    """The initializers of one graph, renamed; the graph captures them now."""
    mapping = {tensor.name: author.fresh(tensor.name) for tensor in graph.initializer}
    if not mapping:
        return []
    moved = []
    for tensor in graph.initializer:
        copy = TensorProto()
        copy.CopyFrom(tensor)
        copy.name = mapping[tensor.name]
        moved.append(copy)
    del graph.initializer[:]
    kept = [value for value in graph.input if value.name not in mapping]
    del graph.input[:]
    graph.input.extend(kept)
    annotations = [one for one in graph.quantization_annotation if one.tensor_name not in mapping]
    del graph.quantization_annotation[:]
    graph.quantization_annotation.extend(annotations)
    scoping.rename_captures(graph, mapping)
    return moved


@dataclass(frozen=True)
class Iteration:
    """The nodes of one iteration, what the body's outputs are called, and types of its values."""

    nodes: list[NodeProto]
    outputs: list[str]
    value_info: list[ValueInfoProto]


def write_iteration(
    author: Author, body: GraphProto, inputs: Mapping[str, str], tag: str
) -> Iteration:
    """Clone the body's nodes: `inputs` says what its inputs are called outside, `tag` (`it3`)
    ends the new names."""
    mapping = dict(inputs)
    nodes = []
    for node in body.node:
        copy = NodeProto()
        copy.CopyFrom(node)
        scoping.rename_free(copy, mapping)
        for position, name in enumerate(node.output):
            if name:
                mapping[name] = author.names.fresh(f"{name}/{tag}")
                copy.output[position] = mapping[name]
        if copy.name:
            copy.name = f"{copy.name}/{tag}"
        copy.metadata_props.add(key=ITERATION_KEY, value=tag)
        nodes.append(copy)
    infos = [_renamed(value, mapping) for value in body.value_info if value.name in mapping]
    outputs = [mapping.get(name, name) for name in scoping.output_names(body)]
    return Iteration(nodes, outputs, infos)


def _renamed(value: ValueInfoProto, mapping: Mapping[str, str]) -> ValueInfoProto:
    copy = ValueInfoProto()
    copy.CopyFrom(value)
    copy.name = mapping[value.name]
    return copy
