"""What Edits do to a graph: node lists rebuilt, constants added, unread weights dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import GraphProto, NodeProto, TensorProto, helper

from passes.ir import scope as scoping
from passes.ir.names import Names
from passes.ir.repeated import replace_all
from passes.ir.scope import Owner
from passes.rule import Edit


def splice(
    owner: Owner, edits: Mapping[int, Edit], constants: Mapping[str, TensorProto]
) -> tuple[set[str], dict[int, int]]:
    """Rebuild a node list with the Edits in the place of their nodes, and add the constants.

    Answers with what the nodes that went have read, where their Edits tidy, and with where each
    Edit begins.
    """
    nodes: list[NodeProto] = []
    starts: dict[int, int] = {}
    spare: set[str] = set()
    covered = {index for edit in edits.values() for index in edit.covered}
    for tidy in edits.values():
        if tidy.tidies:
            gone = (owner.node[index] for index in tidy.covered)
            spare.update(name for node in gone for name in node.input)
    for index, node in enumerate(owner.node):
        edit = edits.get(index)
        if edit is None and index not in covered:
            nodes.append(node)
        if edit is not None:
            if edit.tidies:
                spare.update(scoping.free_names(node))
            starts[index] = len(nodes)
            nodes.extend(edit.nodes)
            owner.value_info.extend(edit.value_info)
            if isinstance(owner, GraphProto):
                owner.quantization_annotation.extend(edit.annotations)
    if isinstance(owner, GraphProto):
        owner.initializer.extend(constants.values())
    else:
        nodes = [_constant_node(tensor) for tensor in constants.values()] + nodes
        starts = {index: start + len(constants) for index, start in starts.items()}
    _tell_apart(nodes, [node for edit in edits.values() for node in edit.nodes])
    del owner.node[:]
    owner.node.extend(nodes)
    return spare, starts


def _tell_apart(nodes: Sequence[NodeProto], made: Sequence[NodeProto]) -> None:
    """Give those that Edits made names of their own: onnxruntime wants that within a graph."""
    named = [node for node in made if node.name]
    if not named:
        return
    new = {id(node) for node in made}
    names = Names(node.name for node in nodes if id(node) not in new)
    for node in named:
        node.name = names.fresh(node.name)


def drop_unread(graph: GraphProto, names: set[str], listed: bool) -> None:
    """Drop those of the named initializers that nothing reads, and that no caller can give.

    `listed`: the graph is of IR 3, where initializers are inputs too, and constant all the same.
    """
    unread = names.intersection(tensor.name for tensor in graph.initializer)
    if not unread:
        return
    unread -= scoping.all_reads(graph.node)
    unread.difference_update(scoping.output_names(graph))
    unread.difference_update(
        entry.value
        for annotation in graph.quantization_annotation
        for entry in annotation.quant_parameter_tensor_names
    )
    if listed:
        replace_all(graph.input, [one for one in graph.input if one.name not in unread])
    unread.difference_update(scoping.input_names(graph))
    if unread:
        kept = [tensor for tensor in graph.initializer if tensor.name not in unread]
        replace_all(graph.initializer, kept)


def list_initializers(owner: Owner) -> None:
    """Up to IR 3, every initializer must also be an input, in bodies too."""
    for graph in scoping.graphs_below(owner):
        if isinstance(graph, GraphProto):
            listed = set(scoping.input_names(graph))
            graph.input.extend(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                for tensor in graph.initializer
                if tensor.name not in listed
            )


def _constant_node(tensor: TensorProto) -> NodeProto:
    """A constant for a function, which has no initializers."""
    value = TensorProto()
    value.CopyFrom(tensor)
    value.name = ""  # onnx's text format cannot read back a name here
    return helper.make_node("Constant", [], [tensor.name], value=value)
