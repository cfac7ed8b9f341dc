"""If: one branch for all rows, or both branches and a choice by row."""

from __future__ import annotations

from onnx import AttributeProto, GraphProto, NodeProto, helper

from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.vectorize.choosing import chosen, flat, may_run_for_all, one_shape
from passes.vectorize.vectorizer import Vectorizer, batched


@batched("If")
def branch(node: NodeProto, ctx: Vectorizer) -> set[str] | None:
    """All rows take one branch where the condition is one for all; else each takes its own."""
    if ctx.carries(node.input[0]):
        _by_row(node, ctx)
        return None
    return _together(node, ctx)


def _together(node: NodeProto, ctx: Vectorizer) -> set[str]:
    """Outputs that carry the axis in one branch are spread in the other."""
    bodies = dict(scoping.subgraphs(node))
    found = {name: ctx.body(graph, (), ()) for name, graph in bodies.items()}
    wanted = [any(flags) for flags in zip(*(body.carrying for body in found.values()), strict=True)]
    for name, graph in bodies.items():
        if list(found[name].carrying) != wanted:
            outputs = zip(scoping.output_names(graph), wanted, strict=True)
            found[name] = ctx.body(graph, (), {output for output, carries in outputs if carries})
    copy = copied(node)
    for attribute in copy.attribute:
        if attribute.type == AttributeProto.GRAPH:
            attribute.g.CopyFrom(found[attribute.name].graph)
    ctx.author.adopt([copy])
    outputs = zip(node.output, wanted, strict=False)
    return {name for name, carries in outputs if name and not carries}


def _by_row(node: NodeProto, ctx: Vectorizer) -> None:
    """Both branches run for all rows, out in the open, and each row takes what is its own."""
    branches = dict(scoping.subgraphs(node))
    then, otherwise = branches["then_branch"], branches["else_branch"]
    may_run_for_all(ctx, node, [then, otherwise])
    mask = flat(ctx, node.input[0], ctx.rank(node.input[0]))
    for graph in (then, otherwise):
        _open(graph, ctx)
    ends = zip(scoping.output_names(then), scoping.output_names(otherwise), strict=True)
    for output, (new, old) in zip(node.output, ends, strict=False):
        if output:
            one_shape(ctx, node, new, old)
            ctx.name_as(chosen(ctx, mask, new, old, new), output)


def _open(graph: GraphProto, ctx: Vectorizer) -> None:
    """Write the nodes of a branch in place of the If; names are unique at every depth."""
    ctx.author.adopt([], graph.initializer)
    for sparse in graph.sparse_initializer:
        constant = helper.make_node("Constant", [], [sparse.values.name], sparse_value=sparse)
        ctx.author.adopt([constant])
    ctx.nodes(graph.node)
