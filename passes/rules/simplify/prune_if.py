"""The rule `prune-if`: branches give and compute what is read."""

from __future__ import annotations

from onnx import NodeProto

from passes.analysis.bodies.liveness import Live, keep_nodes, told
from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.bodies.readers import readers_around
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.repeated import replace_all
from passes.rule import Edit, NothingToDo, Refused, Site, register


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is an If."""
    return op_of(node) == "If"


@register("prune-if", considers=considers, optional=True)
def prune_if(site: Site) -> Edit:
    """Drop the outputs of an If that nobody reads, and nodes of its branches that feed nothing.

    Before, where nobody reads `unread`:

        y, unread = If (c) <then_branch = a () => (p, r) { p = Neg (x) r = Exp (x) },
                            else_branch = b () => (q, s) { q = Abs (x) s = Log (x) }>

    After:

        y = If (c) <then_branch = a () => (p) { p = Neg (x) },
                    else_branch = b () => (q) { q = Abs (x) }>

    A node that might fail stays, for the new model must fail where the old one does; `--assume
    valid-inputs` lets it go. Random nodes stay.

    Refuses:
    - `may-fail`: nothing of what a branch computes in vain can be dropped, for it might fail
    """
    node = NodeProto()
    node.CopyFrom(site.node)
    readers = readers_around(site)
    unread = [at for at, name in enumerate(node.output) if name not in readers]
    if len(unread) == len(node.output):
        unread = unread[1:]  # an If has an output
    replace_all(node.output, [name for at, name in enumerate(node.output) if at not in unread])
    dropped, blockers = 0, []
    for part, graph in scoping.subgraphs(node):
        outputs = [one for at, one in enumerate(graph.output) if at not in unread]
        replace_all(graph.output, outputs)
        live = Live.of(NestedGraph.of(site, graph, part), scoping.output_names(graph), {})
        dropped += len(graph.node) - len(live.nodes)
        blockers += told(graph, live.blockers)
        keep_nodes(graph, live.nodes)
    if not unread and not dropped:
        if blockers:
            raise Refused(
                "may-fail",
                f"{blockers[0]!r} feeds nothing, but computing it might fail",
                [site.path, *blockers],
            )
        raise NothingToDo
    return Edit((node,), note=_note(len(unread), dropped), tidies=True)


def _note(outputs: int, nodes: int) -> str:
    counts = ((outputs, "output"), (nodes, "node"))
    return ", ".join(
        f"{count} {what}{'s' * (count != 1)} dropped" for count, what in counts if count
    )
