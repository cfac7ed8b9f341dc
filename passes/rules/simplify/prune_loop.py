"""The rule `prune-loop`: a loop carries, scans, collects and computes only what is needed."""

from __future__ import annotations

from passes.analysis.bodies.liveness import dead_after_rewrite
from passes.analysis.integers.integers import Integers
from passes.bodies.captured_state import captured_state
from passes.loops.form import LoopForm
from passes.rule import LOOPS, Edit, NothingToDo, Site, register
from passes.rules.simplify.merging import ValueMerging
from passes.rules.simplify.pruning import Pruning


@register("prune-loop", considers=LOOPS, optional=True)
def prune_loop(site: Site) -> Edit:
    """Remove everything that a loop carries, scans, collects or computes without use, or twice.

    Before, where nothing reads `unread` and `c`:

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

    Removed are: outputs that nothing reads; carried values on which no output depends, through the
    iterations; unused nodes; carried values with the same initial value and the same updates,
    scanned inputs and collected outputs that are the same; carried values that the body returns
    unchanged, which it then captures; and the loop itself, if nothing reads it. The trip
    count stays: a Scan keeps a scanned input. A node that might fail stays, and so does what
    might change its shape or have another length, where the loop would fail; `--assume
    valid-inputs` lets them be removed. Random nodes stay.

    Refuses:
    - `may-fail`: nothing unused can be dropped, because it might fail
    - `shape-may-change`: an unused carried or collected value may change its shape
    - `length-unknown`: an unused scanned input may have another length
    """
    readers = site.graph.readers
    read = {name for name in site.node.output if name in readers}
    captured = captured_state(site)
    merging = ValueMerging(site, LoopForm.from_node(captured.node, site.opset), read)
    form = merging.merge()
    finals = [node for node in captured.finals if node.output[0] in read]
    finals += merging.finals
    handed_on = {name for node in finals for name in node.input}
    pruning = Pruning(site, form, read | handed_on, captured.origin)
    if pruning.is_removable():
        return Edit(
            (), note="nothing reads it", covered=dead_after_rewrite(site, Integers(site), (), ())
        )
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
    covered = dead_after_rewrite(site, Integers(site), (), nodes)
    return Edit(tuple(nodes), note=note, covered=covered)
