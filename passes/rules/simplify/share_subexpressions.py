"""The rule `share-subexpressions`: what a body computes twice is computed once."""

from __future__ import annotations

from onnx import GraphProto, NodeProto

from passes.analysis.bodies.value_numbers import Numbering, is_identity, names_below, read_as
from passes.ir import scope as scoping
from passes.ir.protos import copied, drop_at
from passes.rule import Edit, NothingToDo, Site, register


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node has bodies."""
    return scoping.holds_graphs(node)


@register("share-subexpressions", considers=considers, optional=True)
def share_subexpressions(site: Site) -> Edit:
    """Compute what a body computes twice once, and read inputs of Identities directly.

    Before, in a body:

        a = Mul (x_t, w)
        b = Mul (x_t, w)
        c = Identity (b)
        t = Add (a, c)

    After:

        a = Mul (x_t, w)
        t = Add (a, a)

    Nodes are the same if they have the same op, attributes and inputs; constants
    if they have the same value. Random nodes, operators of other domains and nodes with bodies are
    left alone. A value that a body returns keeps a node of its own, an Identity if need be:
    onnxruntime cannot
    return an outer value, or one value twice.
    """
    node = copied(site.node)
    count = sum(_shared_in(graph) for _, graph in scoping.subgraphs(node))
    if not count:
        raise NothingToDo
    return Edit((node,), note=f"{count} node{'s' * (count != 1)} shared")


def _shared_in(graph: GraphProto) -> int:
    """Share what one graph computes twice, in place; returns how many nodes went."""
    numbers, below = Numbering(graph), names_below(graph)
    returned = set(scoping.output_names(graph))
    first: dict[int, str] = {}
    same: dict[str, str] = {}
    gone = []
    defined = [*scoping.input_names(graph), *(tensor.name for tensor in graph.initializer)]
    for name in defined:
        if name not in below:
            first.setdefault(numbers.of(name), name)
    for position, node in enumerate(graph.node):
        known = _known_as(node, numbers, first, below)
        if known is None:
            _note_first(node, numbers, first, below)
        elif not (is_identity(node) and node.output[0] in returned):
            same.update(known)
            gone.append(position)
    drop_at(graph.node, set(gone))
    read_as(graph, same)
    return len(gone)


def _known_as(
    node: NodeProto, numbers: Numbering, first: dict[int, str], below: set[str]
) -> dict[str, str] | None:
    """The equal values of the outputs of a node; None where one of them is new."""
    if is_identity(node) and node.input[0] not in below:
        return {node.output[0]: first.setdefault(numbers.of(node.input[0]), node.input[0])}
    outputs = [name for name in node.output if name]
    if not outputs or any(numbers.of(name) not in first for name in outputs):
        return None
    return {name: first[numbers.of(name)] for name in outputs}


def _note_first(
    node: NodeProto, numbers: Numbering, first: dict[int, str], below: set[str]
) -> None:
    for name in node.output:
        if name and name not in below:
            first.setdefault(numbers.of(name), name)
