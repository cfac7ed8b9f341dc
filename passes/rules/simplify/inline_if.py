"""The rule `inline-if`: an If whose condition is known becomes the branch that it takes."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto, NodeProto, TensorAnnotation

from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.rule import Edit, NothingToDo, Refused, Site, register
from passes.rules.unroll.shared_body import SharedBody
from passes.writing.author import Author
from passes.writing.draft import drafts_of, nodes_of
from passes.writing.finals import finals_renamed


def inlined(site: Site, taken: str) -> Edit:
    """The Edit that writes a branch of the site's node, `then_branch` or `else_branch`.

    Values of the branch get unique names. Outer values that it returns are copied by an Identity.
    """
    body = unpacked(site, taken, Author(site.target, site.names, site.node.name or "if"))
    finals = _finals(site.node, scoping.output_names(body.graph))
    return spliced(site, [body], [*body.graph.node, *finals], taken)


def unpacked(site: Site, part: str, author: Author) -> SharedBody:
    """A branch of the site's node, in which values have unique names."""
    branch = next(graph for name, graph in scoping.subgraphs(site.node) if name == part)
    body = SharedBody.of(branch, author, site.is_visible)
    own = scoping.defined(body.graph)
    scoping.rename_all(body.graph, lambda name: site.fresh(name) if name in own else name)
    return body


def spliced(site: Site, bodies: Sequence[SharedBody], written: list[NodeProto], note: str) -> Edit:
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


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is an If."""
    return op_of(node) == "If"


@register("inline-if", considers=considers, optional=True)
def inline_if(site: Site) -> Edit:
    """Replace an If whose condition is constant by the branch that it takes.

    Before:

        <bool c = {1}>
        y = If (c) <then_branch = a () => (p) { t = Neg (x) p = Exp (t) }, else_branch = ...>

    After:

        t_1 = Neg (x)
        y = Exp (t_1)

    Values of the branch get unique names. Outer values that it returns are copied by an Identity.

    Refuses:
    - `condition-unknown`: `--target no-control-flow`: the branch is known only at run time
    """
    value = site.constant(site.node.input[0])
    if value is None or value.size != 1:
        if site.options.flat:
            name = site.node.input[0]
            what = f"the branch depends on {name!r}, which is known only at run time"
            raise Refused("condition-unknown", what, [site.path, name])
        raise NothingToDo
    return inlined(site, "then_branch" if value.item() else "else_branch")
