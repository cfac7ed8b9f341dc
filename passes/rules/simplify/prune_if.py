"""The rule `prune-if`: branches compute and return only what is read."""

from __future__ import annotations

from passes.analysis.bodies.liveness import Live, outputs_of
from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.choices import Assumption
from passes.ir import scope as scoping
from passes.ir.live import keep_nodes
from passes.ir.protos import copied, drop_at
from passes.rule import Edit, NothingToDo, Site, nodes_of, register


@register("prune-if", considers=nodes_of("If"), optional=True)
def prune_if(site: Site) -> Edit:
    """Drop the outputs of an If that nothing reads, and unused nodes of its branches.

    Before, where nothing reads `unread`:

        y, unread = If (c) <then_branch = a () => (p, r) { p = Neg (x) r = Exp (x) },
                            else_branch = b () => (q, s) { q = Abs (x) s = Log (x) }>

    After:

        y = If (c) <then_branch = a () => (p) { p = Neg (x) },
                    else_branch = b () => (q) { q = Abs (x) }>

    A node that might fail stays, since the new model must fail where the old one does; `--assume
    valid-inputs` lets it go. Random nodes stay.

    Refuses:
    - `may-fail`: nothing unused in the branches can be dropped, because it might fail
    """
    node = copied(site.node)
    readers = site.graph.readers
    unread = [position for position, name in enumerate(node.output) if name not in readers]
    if len(unread) == len(node.output):
        unread = unread[1:]  # an If needs an output
    drop_at(node.output, unread)
    dropped, blockers = 0, []
    for part, graph in scoping.subgraphs(node):
        drop_at(graph.output, unread)
        live = Live.of(NestedGraph.of(site, graph, part), scoping.output_names(graph), {})
        dropped += len(graph.node) - len(live.nodes)
        blockers += outputs_of(graph, live.blockers)
        keep_nodes(graph, [graph.node[position] for position in sorted(live.nodes)])
    if not unread and not dropped:
        if blockers:
            what = f"{blockers[0]!r} is unused, but computing it might fail"
            raise site.refused("may-fail", what, *blockers, assume=(Assumption.valid_inputs,))
        raise NothingToDo
    return Edit((node,), note=_note(len(unread), dropped))


def _note(outputs: int, nodes: int) -> str:
    counts = ((outputs, "output"), (nodes, "node"))
    return ", ".join(
        f"{count} {what}{'s' * (count != 1)} dropped" for count, what in counts if count
    )
