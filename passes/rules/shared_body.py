"""A body prepared for being written out many times: what never changes stands outside, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import GraphProto, NodeProto, SparseTensorProto, TensorAnnotation, TensorProto, helper

from passes import scope as scoping
from passes.author import Author
from passes.constant_nodes import constant_tensor
from passes.repeated import replace_all


@dataclass(frozen=True)
class SharedBody:
    """A body whose weights, at every depth, stand outside, where all iterations read them.

    `constants` are its initializers and Constant nodes, `nodes` the Constant nodes that are no
    dense tensors: sparse ones, and attributes of the function around. `annotations` tell how
    the constants are quantized.
    """

    graph: GraphProto
    constants: tuple[TensorProto, ...]
    nodes: tuple[NodeProto, ...]
    annotations: tuple[TensorAnnotation, ...]

    @classmethod
    def of(cls, body: GraphProto, author: Author, visible: Callable[[str], bool]) -> SharedBody:
        """Move what is constant out of a copy of `body`.

        `visible` says what means something where the body's nodes will stand: what the bodies
        nested in it call so is renamed, for it would hide that.
        """
        graph = GraphProto()
        graph.CopyFrom(body)
        for node in graph.node:
            for _, inner in scoping.subgraphs(node):
                _uncover(inner, author, visible)
        moved = _Moved(author, [], [], [])
        moved.take(graph, nested=False)
        return cls(graph, tuple(moved.constants), tuple(moved.nodes), tuple(moved.annotations))


def _uncover(graph: GraphProto, author: Author, visible: Callable[[str], bool]) -> None:
    names = {name for owner in scoping.graphs_below(graph) for name in scoping.defined(owner)}
    if any(map(visible, names)):
        scoping.rename_all(graph, lambda name: author.names.fresh(name) if visible(name) else name)


@dataclass(frozen=True)
class _Moved:
    author: Author
    constants: list[TensorProto]
    nodes: list[NodeProto]
    annotations: list[TensorAnnotation]

    def take(self, graph: GraphProto, nested: bool) -> None:
        """Move the constants of a graph, which captures them now, innermost bodies first."""
        for node in graph.node:
            for _, inner in scoping.subgraphs(node):
                self.take(inner, nested=True)
        names = [tensor.name for tensor in graph.initializer]
        names += [sparse.values.name for sparse in graph.sparse_initializer]
        names += [node.output[0] for node in graph.node if _is_constant(node)]
        if not names:
            return
        mapping = {name: self.author.fresh(name) for name in names}
        self._move(graph, mapping)
        kept = [value for value in graph.input if value.name not in mapping]
        replace_all(graph.input, kept)
        self._move_annotations(graph, mapping)
        returned = [name for name in scoping.output_names(graph) if name in mapping]
        scoping.rename_captures(graph, mapping)
        if nested:
            _return_as_own(graph, {mapping[name]: name for name in returned})

    def _move(self, graph: GraphProto, mapping: dict[str, str]) -> None:
        for tensor in graph.initializer:
            copy = TensorProto()
            copy.CopyFrom(tensor)
            copy.name = mapping[tensor.name]
            self.constants.append(copy)
        for sparse in graph.sparse_initializer:
            self.nodes.append(_sparse_constant(sparse, mapping[sparse.values.name]))
        for node in filter(_is_constant, graph.node):
            self._move_node(node, mapping[node.output[0]])
        rest = [node for node in graph.node if not _is_constant(node)]
        replace_all(graph.node, rest)
        del graph.initializer[:]
        del graph.sparse_initializer[:]

    def _move_node(self, node: NodeProto, name: str) -> None:
        copy = NodeProto()
        copy.CopyFrom(node)
        copy.output[0] = name
        tensor = constant_tensor(copy)
        if tensor is None:
            self.nodes.append(copy)
        else:
            self.constants.append(tensor)

    def _move_annotations(self, graph: GraphProto, mapping: dict[str, str]) -> None:
        kept = []
        for one in graph.quantization_annotation:
            copy = TensorAnnotation()
            copy.CopyFrom(one)
            for entry in copy.quant_parameter_tensor_names:
                entry.value = mapping.get(entry.value, entry.value)
            if one.tensor_name in mapping:
                copy.tensor_name = mapping[one.tensor_name]
                self.annotations.append(copy)
            else:
                kept.append(copy)
        replace_all(graph.quantization_annotation, kept)


def _is_constant(node: NodeProto) -> bool:
    return node.op_type == "Constant" and scoping.is_onnx_domain(node.domain)


def _sparse_constant(sparse: SparseTensorProto, name: str) -> NodeProto:
    value = SparseTensorProto()
    value.CopyFrom(sparse)
    value.values.name = ""
    return helper.make_node("Constant", [], [name], sparse_value=value)


def _return_as_own(graph: GraphProto, returned: dict[str, str]) -> None:
    """Nodes for the outputs that are outer values now, which onnxruntime cannot return."""
    for outer, name in returned.items():
        graph.node.append(helper.make_node("Identity", [outer], [name]))
    for value in graph.output:
        value.name = returned.get(value.name, value.name)
