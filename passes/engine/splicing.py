"""Applies Edits to a graph: rebuilds node lists, adds constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import GraphProto, NodeProto, TensorProto, helper

from passes.ir.names import Names
from passes.ir.protos import named, replace_all
from passes.ir.scope import Owner
from passes.rule import Edit


def splice(
    owner: Owner, edits: Mapping[int, Edit], constants: Mapping[str, TensorProto]
) -> dict[int, int]:
    """Rebuild a node list with the Edits in place of their nodes, add the constants, and drop the
    types of values that are gone.

    Returns where each Edit begins.
    """
    nodes: list[NodeProto] = []
    starts: dict[int, int] = {}
    covered = {index for edit in edits.values() for index in edit.covered}
    for index, node in enumerate(owner.node):
        edit = edits.get(index)
        if edit is None and index not in covered:
            nodes.append(node)
        if edit is not None:
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
    _name_apart(nodes, [node for edit in edits.values() for node in edit.nodes])
    gone = {name for index in covered for name in owner.node[index].output}
    del owner.node[:]
    owner.node.extend(nodes)
    if covered:
        gone.difference_update(name for node in nodes for name in node.output)
        kept = [value for value in owner.value_info if value.name not in gone]
        replace_all(owner.value_info, kept)
    return starts


def _name_apart(nodes: Sequence[NodeProto], made: Sequence[NodeProto]) -> None:
    """Give the nodes of Edits unique names, which onnxruntime requires within a graph."""
    named = [node for node in made if node.name]
    if not named:
        return
    new = {id(node) for node in made}
    names = Names(node.name for node in nodes if id(node) not in new)
    for node in named:
        node.name = names.fresh(node.name)


def _constant_node(tensor: TensorProto) -> NodeProto:
    """A constant for a function, which has no initializers."""
    value = named(tensor, "")  # onnx's text format cannot read back a name here
    return helper.make_node("Constant", [], [tensor.name], value=value)
