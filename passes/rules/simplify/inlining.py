"""Edits that write the branches of an If in its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import GraphProto, NodeProto, TensorAnnotation

from passes.analysis.bodies.context import context_of
from passes.bodies.shared_body import SharedBody
from passes.ir import scope as scoping
from passes.ir.draft import drafts_of, nodes_of
from passes.ir.live import live
from passes.rule import Edit, Site
from passes.writing.author import Author
from passes.writing.finals import finals_renamed


def inlined(site: Site, taken: str) -> Edit:
    """The Edit that writes a branch of the site's node, `then_branch` or `else_branch`.

    Values of the branch get unique names. Outer values that it returns are copied by an Identity.
    """
    body = unpacked(site, taken, Author.at(site, "if"))
    finals = _finals(site.node, scoping.output_names(body.graph))
    return _spliced(site, [body], [*body.graph.node, *finals], taken)


def unpacked(site: Site, part: str, author: Author) -> SharedBody:
    """A branch of the site's node, in which values have unique names."""
    branch = next(graph for name, graph in scoping.subgraphs(site.node) if name == part)
    body = SharedBody.of(branch, author, site.is_visible)
    scoping.uncover(body.graph, scoping.defined(body.graph).__contains__, site.fresh)
    return body


def chosen(site: Site, bodies: Sequence[SharedBody], author: Author, note: str) -> Edit:
    """The Edit that runs branches which cannot fail, and then what the author wrote, as far as the
    outputs of the site's node need them."""
    every = [*(node for body in bodies for node in body.graph.node), *author.nodes]
    nodes, _ = live(every, filter(None, site.node.output), scoping.free_names)
    edit = _spliced(site, bodies, nodes, note)
    constants = (*edit.initializers, *author.constants)
    return replace(edit, initializers=constants, context=context_of(site))


def _spliced(site: Site, bodies: Sequence[SharedBody], written: list[NodeProto], note: str) -> Edit:
    """The Edit that writes these nodes, which compute the outputs of the site's node from the
    constants of the bodies."""
    outputs = frozenset(filter(None, site.node.output))
    drafts = finals_renamed(drafts_of(written), outputs)
    nodes = [*(node for body in bodies for node in body.nodes), *nodes_of(drafts)]
    kept = {name for node in nodes for name in node.output} - outputs
    types = (value for body in bodies for value in body.graph.value_info)
    annotations = [
        annotation for body in bodies for annotation in (*body.annotations, *_own(body.graph, kept))
    ]
    return Edit(
        tuple(nodes),
        tuple(tensor for body in bodies for tensor in body.constants),
        tuple(value for value in types if value.name in kept),
        note=note,
        annotations=tuple(annotations),
    )


def _finals(node: NodeProto, returned: Sequence[str]) -> list[NodeProto]:
    """The nodes that define the outputs of the If."""
    pairs = zip(returned, node.output, strict=True)
    return [
        NodeProto(op_type="Identity", input=[value], output=[name]) for value, name in pairs if name
    ]


def _own(graph: GraphProto, kept: set[str]) -> list[TensorAnnotation]:
    return [
        annotation for annotation in graph.quantization_annotation if annotation.tensor_name in kept
    ]
