"""The rule `prune-loop`: a loop carries, scans, collects and computes what is needed."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import FunctionProto, NodeProto

from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.bodies.readers import makers_around, readers_around
from passes.analysis.safety.speculation import is_pure
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.rule import Edit, NothingToDo, Site, register
from passes.rules.hoist.captured_state import captured_state
from passes.rules.simplify.merging import Merging
from passes.rules.simplify.pruning import Pruning


def makers_of_nothing(site: Site, nodes: Sequence[NodeProto]) -> tuple[int, ...]:
    """The positions of the nodes in front of the site that fed nothing but what went with it.

    Only those that cannot fail, unless inputs are taken for valid; none of a function.
    """
    owner, readers, makers = site.scope.owner, readers_around(site), makers_around(site)
    if isinstance(owner, FunctionProto):
        return ()
    level = NestedGraph(site, owner, site.scope)
    valid = site.assumes("valid-inputs")
    still = {name for node in nodes for name in scoping.free_names(node)}
    gone = {site.place.index}
    pending = [name for name in scoping.free_names(site.node) if name not in still]
    while pending:
        at = makers.get(pending.pop())
        if at is None or at in gone:
            continue
        node = owner.node[at]
        if any(one in still or not gone.issuperset(readers.get(one, ())) for one in node.output):
            continue
        if is_pure(node) and (valid or level.cannot_fail(node)):
            gone.add(at)
            pending += scoping.free_names(node)
    return tuple(sorted(gone - {site.place.index}))


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Loop, or a Scan of version 9 or later."""
    return op_of(node) == "Loop" or (op_of(node) == "Scan" and opset >= 9)


@register("prune-loop", considers=considers, optional=True)
def prune_loop(site: Site) -> Edit:
    """Drop what a loop carries, scans, collects and computes in vain, or twice.

    Before, where nobody reads `unread` and `c`:

        y, c, z, unread = Scan <num_scan_inputs = 2, body = step (s, count, k, a, b) => (...) {
            t = Mul (s, k)
            more = Add (count, one)
            same = Identity (k)
            z_t = Add (t, a)
            u_t = Exp (count)
        }> (h, zero, w, x, x)

    After:

        y, z = Scan <num_scan_inputs = 1, body = step (s, a) => (...) {
            t = Mul (s, w)
            z_t = Add (t, a)
        }> (h, x)

    What goes: outputs that nobody reads; carried values of which no output is made, through the
    iterations; nodes that feed nothing; carried values that start alike and are updated alike,
    scanned inputs and collected outputs that are the same; carried values that the body returns
    as they came, which it captures then; and the loop itself, where nobody reads it. The trip
    count stays: a Scan keeps a scanned input. A node that might fail stays, and so does what
    might change its shape or have another length, for there the loop fails; `--assume
    valid-inputs` lets them go. Random nodes stay.

    Refuses:
    - `may-fail`: nothing can be dropped of what is computed in vain, for it might fail
    - `shape-may-change`: what is carried or collected in vain may change its shape
    - `length-unknown`: what is scanned in vain may have another length
    """
    readers = readers_around(site)
    read = {name for name in site.node.output if name in readers}
    captured = captured_state(site)
    merging = Merging(site, LoopForm.from_node(captured.node, site.opset), read)
    form = merging.merge()
    finals = [node for node in captured.finals if node.output[0] in read]
    finals += merging.finals
    handed_on = {name for node in finals for name in node.input}
    pruning = Pruning(site, form, read | handed_on, captured.origin)
    if pruning.is_in_vain():
        return Edit((), note="nobody reads it", covered=makers_of_nothing(site, ()), tidies=True)
    node = pruning.prune()
    if not (captured.captured or captured.dropped or merging.count or pruning.count):
        if pruning.blocked:
            raise pruning.blocked[0]
        raise NothingToDo
    nodes = [node, *finals]
    counts = {
        "captured": len(captured.captured or captured.dropped),
        "merged": merging.count,
        "dropped": pruning.count,
    }
    note = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return Edit(tuple(nodes), note=note, covered=makers_of_nothing(site, nodes), tidies=True)
