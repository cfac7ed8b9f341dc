"""Writes a branch in the place of its If."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto, NodeProto, TensorAnnotation

from passes import scope as scoping
from passes.author import Author
from passes.draft import drafts_of, nodes_of
from passes.rule import Edit, Site
from passes.rules.finals import finals_renamed
from passes.rules.shared_body import SharedBody


def inlined(site: Site, taken: str) -> Edit:
    """The Edit that writes a branch of the site's node, `then_branch` or `else_branch`.

    Values of the branch get names that occur nowhere else. Outer values that it returns are
    handed on by an Identity.
    """
    branch = next(graph for part, graph in scoping.subgraphs(site.node) if part == taken)
    author = Author(site.target, site.names, site.node.name or "if")
    body = SharedBody.of(branch, author, site.is_visible)
    graph, own = body.graph, scoping.defined(body.graph)
    scoping.rename_all(graph, lambda name: site.fresh(name) if name in own else name)
    finals = _finals(site.node, scoping.output_names(graph))
    outputs = frozenset(filter(None, site.node.output))
    drafts = finals_renamed(drafts_of([*graph.node, *finals]), outputs)
    nodes = [*body.nodes, *nodes_of(drafts)]
    kept = {name for node in nodes for name in node.output} - outputs
    return Edit(
        tuple(nodes),
        body.constants,
        tuple(one for one in graph.value_info if one.name in kept),
        note=taken,
        tidies=True,
        annotations=(*body.annotations, *_said(graph, kept)),
    )


def _finals(node: NodeProto, returned: Sequence[str]) -> list[NodeProto]:
    """What defines the outputs of the If."""
    pairs = zip(returned, node.output, strict=True)
    return [
        NodeProto(op_type="Identity", input=[one], output=[name]) for one, name in pairs if name
    ]


def _said(graph: GraphProto, kept: set[str]) -> list[TensorAnnotation]:
    return [one for one in graph.quantization_annotation if one.tensor_name in kept]
