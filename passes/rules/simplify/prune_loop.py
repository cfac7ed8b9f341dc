"""The rule `prune-loop`: a loop carries, scans, collects and computes only what is needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from onnx import NodeProto

from passes.analysis.bodies.liveness import Live, dead_after_rewrite, outputs_of
from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import declared_size
from passes.bodies.carried_values import captured_state
from passes.choices import Assumption
from passes.ir.boundary import own_outputs
from passes.ir.live import keep_nodes
from passes.ir.versions import LOOP_MAY_CARRY_NOTHING
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.rule import LOOPS, Edit, NothingToDo, Refused, Site, register
from passes.rules.simplify.merging import ValueMerging
from passes.types.value_types import is_static


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


@dataclass
class Pruning:
    """Drops what does not contribute to the names in `read`, which are read after the loop.

    `renamed` maps values of the body to their names in the original model. `blocked` are
    refusals for what is unused, but stays.
    """

    site: Site
    form: LoopForm
    read: Collection[str]
    renamed: Mapping[str, str]
    blocked: list[Refused] = field(default_factory=list)
    count: int = 0

    def prune(self) -> NodeProto:
        """The node of the loop without what is not needed."""
        form = self.form
        collected = [collected for collected in form.collected if self._needs_rows(collected)]
        if not collected and not any(carried.final in self.read for carried in form.carried):
            collected = list(form.collected[:1])  # a loop needs an output
        live, carried = self._live(collected)
        scanned = self._kept_scans(live)
        if live.blockers:
            names = outputs_of(form.body, live.blockers)
            self._block("may-fail", f"{names[0]!r} is unused, but might fail", *names)
        kept = replace(
            form,
            carried=tuple(carried),
            scanned=tuple(scanned),
            collected=tuple(collected),
        ).with_all_outputs(self.site.fresh)
        self.count = form.width - kept.width + len(form.body.node) - len(live.nodes)
        node = kept.to_node()
        body = LoopForm.from_node(node, self.site.opset).body
        keep_nodes(body, [body.node[position] for position in sorted(live.nodes)])
        own_outputs(
            body,
            lambda name: self.site.fresh(f"{name}/out"),
            may=lambda value: value.type.HasField("tensor_type"),
        )
        return node

    def is_removable(self) -> bool:
        """Return whether nothing is read, and the loop ends and cannot fail."""
        form = self.form
        if self.read or Live.of(self._level, (), {}).nodes:
            return False
        if form.kind is Kind.LOOP and not form.trip_count:
            return False
        if self._valid_inputs:
            return True
        states = form.carried if form.kind is Kind.SCAN else ()
        return (
            all(map(self._keeps_shape, states))
            and all(map(self._elements_agree, form.collected))
            and all(self._same_length(scanned, form.scanned[0]) for scanned in form.scanned)
        )

    @cached_property
    def _level(self) -> NestedGraph:
        return NestedGraph.of(self.site, self.form.body, "body", self.renamed)

    @property
    def _valid_inputs(self) -> bool:
        return self.site.assumes("valid-inputs")

    def _needs_rows(self, collected: Collected) -> bool:
        """Return whether a collected output is read, or collecting it might fail."""
        if collected.tensor in self.read or self._valid_inputs:
            return collected.tensor in self.read
        if self._elements_agree(collected):
            return False
        what = (
            f"nothing reads what is collected of {collected.body_output!r}, but its "
            "shape may change"
        )
        self._block("shape-may-change", f"{what}, and then the loop fails", collected.body_output)
        return True

    def _elements_agree(self, collected: Collected) -> bool:
        """Return whether the elements of all iterations have one known shape; two sizes declared
        with one symbol prove nothing."""
        return is_static(self._level.dims_of(collected.body_output))

    def _keeps_shape(self, carried: Carried) -> bool:
        before, after = (
            self._level.dims_of(name) for name in (carried.body_input, carried.body_output)
        )
        return is_static(before) and before == after

    def _live(self, collected: Sequence[Collected]) -> tuple[Live, list[Carried]]:
        """The part of the body that contributes to what is read, and the carried values that
        stay."""
        form = self.form
        feeds = {carried.body_input: carried.body_output for carried in form.carried}
        wanted = [output.body_output for output in collected]
        wanted += [carried.body_output for carried in form.carried if carried.final in self.read]
        if form.condition is not None:
            wanted.append(form.condition.body_output)
        live = Live.of(self._level, wanted, feeds)
        dead = [carried for carried in form.carried if self._is_dead(carried, live)]
        held = self._held(dead, alone=not collected)
        if held:
            live = Live.of(self._level, [*wanted, *(state.body_output for state in held)], feeds)
        kept = [
            carried
            for carried in form.carried
            if carried in held or not self._is_dead(carried, live)
        ]
        return live, kept

    def _is_dead(self, carried: Carried, live: Live) -> bool:
        return carried.final not in self.read and carried.body_input not in live.names

    def _held(self, dead: Sequence[Carried], alone: bool) -> list[Carried]:
        """The dead carried values that stay: those that may change their shape, or one where the
        loop would be left without outputs."""
        held = []
        if self.form.kind is Kind.SCAN and not self._valid_inputs:
            held = [carried for carried in dead if not self._keeps_shape(carried)]
        for carried in held:
            what = f"the carried {carried.body_input!r} is unused, but its shape may change"
            self._block("shape-may-change", f"{what}, and then the Scan fails", carried.body_input)
        old = self.form.kind is Kind.LOOP and self.site.opset < LOOP_MAY_CARRY_NOTHING
        if (old or alone) and len(dead) == len(self.form.carried):
            return held or list(dead[:1])
        return held

    def _kept_scans(self, live: Live) -> list[Scanned]:
        """The scanned inputs that are read, and those whose length may differ."""
        scanned = self.form.scanned
        kept = [scan for scan in scanned if scan.body_input in live.names] or list(scanned[:1])
        for scan in scanned:
            if scan in kept or self._valid_inputs or any(self._same_length(scan, k) for k in kept):
                continue
            what = f"the scanned {scan.body_input!r} is unused, but its length may differ"
            self._block("length-unknown", f"{what}, and then the Scan fails", scan.tensor)
            kept.append(scan)
        return [scan for scan in scanned if scan in kept]

    def _same_length(self, scanned: Scanned, other: Scanned) -> bool:
        if (scanned.tensor, scanned.axis) == (other.tensor, other.axis):
            return True
        sizes = [declared_size(self.site, scan.tensor, scan.axis) for scan in (scanned, other)]
        return isinstance(sizes[0], int) and sizes[0] == sizes[1]

    def _block(self, code: str, sentence: str, *culprits: str) -> None:
        refused = self.site.refused(code, sentence, *culprits, assume=(Assumption.valid_inputs,))
        self.blocked.append(refused)
