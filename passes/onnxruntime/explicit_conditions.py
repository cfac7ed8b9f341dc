"""Loops that carry nothing, in a branch: when onnxruntime inlines an If, it drops omitted inputs
at the end of a node, and cannot load a Loop without a second input (`vector::reserve`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from onnx import FunctionProto, NodeProto

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.protos import copied, replace_all
from passes.loops.form import LoopForm
from passes.rule import Edit, Site
from passes.writing import spelling
from passes.writing.author import Author


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
    return _is(scope.holder.node, "If")


def _is(node: NodeProto, op_type: str) -> bool:
    return op_of(node) == op_type


def _silent(nodes: Sequence[NodeProto], opened: bool) -> Iterator[NodeProto]:
    """The Loops, innermost first, that have at most a trip count; `opened`: the nodes may be
    inlined."""
    for node in nodes:
        if not scoping.holds_graphs(node):
            continue
        for _, graph in scoping.subgraphs(node):
            yield from _silent(graph.node, _is(node, "If"))
        if opened and _is(node, "Loop") and not any(node.input[1:]):
            yield node
