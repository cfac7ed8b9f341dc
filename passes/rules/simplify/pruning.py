"""What of a loop nobody needs: outputs, carried values, scanned inputs, nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from onnx import GraphProto, NodeProto

from passes.analysis.bodies.liveness import Live, keep_nodes, told
from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.trip_count import facts
from passes.ir.versions import LOOP_MAY_CARRY_NOTHING
from passes.loops.form import Carried, Collected, Kind, LoopForm, Scanned
from passes.rule import Refused, Site


@dataclass
class Pruning:
    """Drops what does not feed the names in `read`, which somebody reads behind the loop.

    `renamed` says what values of the body were called when the model was read. `blocked` are
    refusals for what feeds nothing, and stays all the same.
    """

    site: Site
    form: LoopForm
    read: Collection[str]
    renamed: Mapping[str, str]
    blocked: list[Refused] = field(default_factory=list)
    count: int = 0

    def prune(self) -> NodeProto:
        """The node of the loop without what nobody needs."""
        form = self.form
        collected = [one for one in form.collected if self._needs_rows(one)]
        if not collected and not any(one.final in self.read for one in form.carried):
            collected = list(form.collected[:1])  # a loop has an output
        live, carried = self._live(collected)
        scanned = self._kept_scans(live)
        if live.blockers:
            names = told(form.body, live.blockers)
            self._block("may-fail", f"{names[0]!r} feeds nothing, but might fail", *names)
        kept = replace(
            form,
            carried=tuple(replace(one, final=self._named(one.final)) for one in carried),
            scanned=tuple(scanned),
            collected=tuple(replace(one, tensor=self._named(one.tensor)) for one in collected),
        )
        self.count = form.width - kept.width + len(form.body.node) - len(live.nodes)
        node = kept.to_node()
        body = LoopForm.from_node(node, self.site.opset).body
        keep_nodes(body, live.nodes)
        self._give_own_nodes(body)
        return node

    def _give_own_nodes(self, body: GraphProto) -> None:
        """Nodes of their own for outputs that are inputs, outer values, or listed twice: of such
        ones onnxruntime gives what was in memory."""
        made = {name for node in body.node for name in node.output}
        for value in body.output:
            if value.name in made:
                made.discard(value.name)
            elif value.type.HasField("tensor_type"):
                own = self.site.fresh(f"{value.name}/out")
                body.node.add(op_type="Identity", input=[value.name], output=[own])
                value.name = own

    def is_in_vain(self) -> bool:
        """Whether nothing is read, and the loop ends and cannot fail."""
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
            and all(self._same_length(one, form.scanned[0]) for one in form.scanned)
        )

    @cached_property
    def _level(self) -> NestedGraph:
        return NestedGraph.of(self.site, self.form.body, "body", self.renamed)

    @property
    def _valid_inputs(self) -> bool:
        return self.site.assumes("valid-inputs")

    def _named(self, name: str) -> str:
        """onnxruntime crashes on a Loop that omits an output."""
        return name or self.site.fresh("unused")

    def _needs_rows(self, one: Collected) -> bool:
        """Whether a collected output is read, or collecting it might fail."""
        if one.tensor in self.read or self._valid_inputs:
            return one.tensor in self.read
        if self._elements_agree(one):
            return False
        what = f"nobody reads what is collected of {one.body_output!r}, but its shape may change"
        self._block("shape-may-change", f"{what}, and then the loop fails", one.body_output)
        return True

    def _elements_agree(self, one: Collected) -> bool:
        """Whether the elements of all iterations have one shape, and a known one: that two sizes
        are declared with one symbol is no proof."""
        dims = self._level.dims_of(one.body_output)
        return dims is not None and all(isinstance(dim, int) for dim in dims)

    def _keeps_shape(self, one: Carried) -> bool:
        before, after = (self._level.dims_of(name) for name in (one.body_input, one.body_output))
        fixed = before is not None and all(isinstance(dim, int) for dim in before)
        return fixed and before == after

    def _live(self, collected: Sequence[Collected]) -> tuple[Live, list[Carried]]:
        """What of the body feeds what is read, and the carried values that stay."""
        form = self.form
        feeds = {one.body_input: one.body_output for one in form.carried}
        wanted = [one.body_output for one in collected]
        wanted += [one.body_output for one in form.carried if one.final in self.read]
        if form.condition is not None:
            wanted.append(form.condition.body_output)
        live = Live.of(self._level, wanted, feeds)
        dead = [one for one in form.carried if self._is_dead(one, live)]
        held = self._held(dead, alone=not collected)
        if held:
            live = Live.of(self._level, [*wanted, *(one.body_output for one in held)], feeds)
        kept = [one for one in form.carried if one in held or not self._is_dead(one, live)]
        return live, kept

    def _is_dead(self, one: Carried, live: Live) -> bool:
        return one.final not in self.read and one.body_input not in live.names

    def _held(self, dead: Sequence[Carried], alone: bool) -> list[Carried]:
        """Those that stay although nothing is made of them; one does where the loop would be left
        without outputs."""
        held = []
        if self.form.kind is Kind.SCAN and not self._valid_inputs:
            held = [one for one in dead if not self._keeps_shape(one)]
        for one in held:
            what = f"nothing is made of the carried {one.body_input!r}, but its shape may change"
            self._block("shape-may-change", f"{what}, and then the Scan fails", one.body_input)
        old = self.form.kind is Kind.LOOP and self.site.opset < LOOP_MAY_CARRY_NOTHING
        if (old or alone) and len(dead) == len(self.form.carried):
            return held or list(dead[:1])
        return held

    def _kept_scans(self, live: Live) -> list[Scanned]:
        """The scanned inputs that are read, and those whose length may be another one."""
        scanned = self.form.scanned
        kept = [one for one in scanned if one.body_input in live.names] or list(scanned[:1])
        for one in scanned:
            if one in kept or self._valid_inputs or any(self._same_length(one, k) for k in kept):
                continue
            what = f"nothing is made of the scanned {one.body_input!r}, but its length may differ"
            self._block("length-unknown", f"{what}, and then the Scan fails", one.tensor)
            kept.append(one)
        return [one for one in scanned if one in kept]

    def _same_length(self, one: Scanned, other: Scanned) -> bool:
        if (one.tensor, one.axis) == (other.tensor, other.axis):
            return True
        sizes = [facts.scanned_size(self.site, scan.tensor, scan.axis) for scan in (one, other)]
        return isinstance(sizes[0], int) and sizes[0] == sizes[1]

    def _block(self, code: str, sentence: str, *culprits: str) -> None:
        self.blocked.append(Refused(code, sentence, [self.site.path, *culprits]))
