"""Bodies that onnxruntime cannot load or run as they are: nested too deeply for a file, in Ifs that
it inlines, or collecting strings that it moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto, helper

from passes.ir import scope as scoping
from passes.ir.model import DEEPEST
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.ir.versions import HAS_WHERE
from passes.loops.form import LoopForm
from passes.operators.table import traits_of
from passes.rule import Edit, Refused, Site
from passes.types.value_types import elem_type_of
from passes.writing import spelling
from passes.writing.author import Author

MOST = 99  # a model itself is on level 0
_BODY = 3
_DECLARED = 1  # what declares a value holds its type
_TENSOR = 3  # in a type: the tensor, its shape, a dim


def fitting_depth(site: Site, edit: Edit) -> Edit:
    """An Edit that can be read back from a file, where it is nested as deep as its site.

    Raises:
        Refused: `too-deep`.
    """
    bodies = sum(1 for _ in site.scope.chain()) - 1
    depth = max(map(_depth_of_node, edit.nodes), default=0)
    if 1 + _BODY * bodies + depth > MOST:
        raise too_deep(site)
    return edit


def too_deep(site: Site) -> Refused:
    """The refusal of what would be nested too deeply."""
    return site.refused("too-deep", f"bodies would be nested too deeply for a file: {DEEPEST}")


def _depth_of_node(node: NodeProto) -> int:
    """The levels of messages that a node is, including itself, as far as it holds bodies."""
    graphs = [graph for _, graph in scoping.subgraphs(node)]
    return _BODY + max(map(depth_below, graphs)) if graphs else 1


def depth_below(graph: GraphProto) -> int:
    """The levels below a graph."""
    values = (*graph.input, *graph.output, *graph.value_info)
    declared = max((_DECLARED + _depth_of_type(value.type) for value in values), default=0)
    return max([declared, *map(_depth_of_node, graph.node)])


def _depth_of_type(kind: TypeProto) -> int:
    """The levels of messages that a type is, including itself."""
    which = kind.WhichOneof("value")
    if which in ("sequence_type", "optional_type"):
        return 2 + _depth_of_type(getattr(kind, which).elem_type)
    return 1 + _TENSOR


def with_explicit_conditions(site: Site, edit: Edit) -> Edit:
    """An Edit whose Loops in a branch have an explicit condition, if they carry nothing.

    The branch may be one of the Edit, or the one it is spliced into; a function may be called in
    one.
    """
    if not any(map(scoping.holds_graphs, edit.nodes)):
        return edit
    opened = _may_be_opened(site.scope)
    if next(_silent(edit.nodes, opened), None) is None:
        return edit
    author = Author.at(site)
    nodes = [copied(node) if scoping.holds_graphs(node) else node for node in edit.nodes]
    for loop in list(_silent(nodes, opened)):
        rank = LoopForm.from_node(loop, site.target).condition_rank
        replace_all(loop.input, [loop.input[0], spelling.true(author, rank)])
    return replace(edit, nodes=tuple(nodes), initializers=(*edit.initializers, *author.constants))


def _may_be_opened(scope: scoping.Scope) -> bool:
    """Return whether a graph may be inlined as the branch of an If, or with one."""
    if scope.holder is None:
        return isinstance(scope.owner, FunctionProto)
    return op_of(scope.holder.node) == "If"


def _silent(nodes: Sequence[NodeProto], opened: bool) -> Iterator[NodeProto]:
    """The Loops, innermost first, that have at most a trip count; `opened`: the nodes may be
    inlined."""
    for node in nodes:
        if not scoping.holds_graphs(node):
            continue
        for _, graph in scoping.subgraphs(node):
            yield from _silent(graph.node, op_of(node) == "If")
        if opened and op_of(node) == "Loop" and not any(node.input[1:]):
            yield node


def with_own_strings(site: Site, edit: Edit) -> Edit:
    """Return an Edit that copies strings which it would only pass on, in such a Loop."""
    if site.scope.outer is None:
        return edit
    handed = [node for node in edit.nodes if _hands_on_text(site, node)]
    if not handed or site.target < HAS_WHERE or not _is_emptied(site):
        return edit
    producers = {name: node for node in edit.nodes for name in node.output}
    texts = {
        node.output[0]: node.input[0]
        for node in handed
        if _shares(site, producers.get(node.input[0]), node.input[0])
    }
    author = Author.at(site)
    true = author.value(np.array(True), "true") if texts else ""
    copies = {
        name: helper.make_node("Where", [true, text, text], [name]) for name, text in texts.items()
    }
    nodes = tuple(copies.get(node.output[0], node) if node.output else node for node in edit.nodes)
    return replace(edit, nodes=nodes, initializers=(*edit.initializers, *author.constants))


def may_collect_strings(node: NodeProto) -> bool:
    """Return whether a node is a Loop that may collect strings: by what its body declares."""
    if op_of(node) != "Loop":
        return False
    (body,) = (graph for part, graph in scoping.subgraphs(node) if part == "body")
    rows = body.output[len(node.input) - 1 :]
    return any(elem_type_of(row.type) in (0, TensorProto.STRING) for row in rows)


def _hands_on_text(site: Site, node: NodeProto) -> bool:
    """Return whether a node of an Edit only renames strings that the site's node returned."""
    if op_of(node) != "Identity":
        return False
    known = site.type_of(node.output[0]) if node.output[0] in site.node.output else None
    return elem_type_of(known) == TensorProto.STRING


def _shares(site: Site, producer: NodeProto | None, name: str) -> bool:
    """Return whether a value may be, or share the memory of, one that is computed elsewhere."""
    producer = producer or site.model.producer(site.scope.owner, name)
    return producer is None or traits_of(producer).hands_on


def _is_emptied(site: Site) -> bool:
    """Return whether a Loop around the site collects strings."""
    return any(may_collect_strings(place.node) for place in site.scope.holders())
