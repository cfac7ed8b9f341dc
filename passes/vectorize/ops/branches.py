"""If: one branch for all rows, or both branches and a choice by row."""

from __future__ import annotations

from onnx import AttributeProto, GraphProto, NodeProto, helper

from passes.ir import scope as scoping
from passes.vectorize.choosing import chosen, flat, may_run_for_all, one_shape
from passes.vectorize.vectorizer import Vectorizer, batched


@batched("If")
def branch(node: NodeProto, at: Vectorizer) -> set[str] | None:
    """All rows take one branch where the condition is one for all; else each takes its own."""
    if at.carries(node.input[0]):
        _by_row(node, at)
        return None
    return _together(node, at)


def _together(node: NodeProto, at: Vectorizer) -> set[str]:
    """Outputs that carry the axis in one branch are spread in the other."""
    bodies = dict(scoping.subgraphs(node))
    found = {name: at.body(graph, (), ()) for name, graph in bodies.items()}
    wanted = [any(flags) for flags in zip(*(one.carrying for one in found.values()), strict=True)]
    for name, graph in bodies.items():
        if list(found[name].carrying) != wanted:
            outputs = zip(scoping.output_names(graph), wanted, strict=True)
            found[name] = at.body(graph, (), {output for output, carries in outputs if carries})
    copy = NodeProto()
    copy.CopyFrom(node)
    for attribute in copy.attribute:
        if attribute.type == AttributeProto.GRAPH:
            attribute.g.CopyFrom(found[attribute.name].graph)
    at.author.adopt([copy])
    outputs = zip(node.output, wanted, strict=False)
    return {name for name, carries in outputs if name and not carries}


def _by_row(node: NodeProto, at: Vectorizer) -> None:
    """Both branches run for all rows, out in the open, and each row takes what is its own."""
    branches = dict(scoping.subgraphs(node))
    then, otherwise = branches["then_branch"], branches["else_branch"]
    may_run_for_all(at, node, [then, otherwise])
    mask = flat(at, node.input[0], at.rank(node.input[0]))
    for graph in (then, otherwise):
        _open(graph, at)
    ends = zip(scoping.output_names(then), scoping.output_names(otherwise), strict=True)
    for output, (new, old) in zip(node.output, ends, strict=False):
        if output:
            one_shape(at, node, new, old)
            at.name_as(chosen(at, mask, new, old, new), output)


def _open(graph: GraphProto, at: Vectorizer) -> None:
    """Write the nodes of a branch where the If stands; names are unique at every depth."""
    at.author.adopt([], graph.initializer)
    for sparse in graph.sparse_initializer:
        constant = helper.make_node("Constant", [], [sparse.values.name], sparse_value=sparse)
        at.author.adopt([constant])
    at.nodes(graph.node)
