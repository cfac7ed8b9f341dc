"""Writes a Scan without the nodes that run before it, and those nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import ValueInfoProto, helper

from passes.bodies.may_leave import check_dropped
from passes.bodies.moving import Outside, cleaned, place_rows, remaining_body
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import row_bytes
from passes.bodies.time_length import Length, length_of
from passes.ir import scope as scoping
from passes.ir.protos import copied
from passes.loops.form import Collected, LoopForm, Scanned
from passes.rule import Edit
from passes.writing.author import Author


class BeforeTheLoop:
    """Writes the nodes at `moved`, which read nothing that stays, before the loop."""

    def __init__(self, body: TimeBody, moved: Sequence[int]) -> None:
        self.body = body
        self.form = body.form
        self.author = Author.at(body.site, "scan")
        gone = set(moved)
        self.nodes = [body.nodes[position] for position in moved]
        self.left = [position for position in range(len(body.nodes)) if position not in gone]
        self.stay = [body.nodes[position] for position in self.left]
        self.computed = {name for node in self.nodes for name in node.output if name}
        read = {name for node in self.nodes for name in scoping.free_names(node)}
        self.sources = [scanned for scanned in self.form.scanned if scanned.body_input in read]
        # where all are read in reverse, the loop goes on doing that; else they are reversed
        self.backwards = all(scanned.reversed for scanned in self.sources)
        self.outside = Outside(body, self.author, self._length())

    def _length(self) -> Length:
        """The length of what is read here, or of all that is scanned where no loop is left."""
        form = self.form
        whole = not form.carried and all(
            collected.body_output in self.computed for collected in form.collected
        )
        scanned = form.scanned if whole else self.sources or form.scanned[:1]
        return length_of(self.body.site, self.author, scanned)

    def edit(self) -> Edit:
        """Write them, and the loop without them.

        Raises:
            Refused: `random` or `may-fail` where no loop is left, and an unused node may not go.
        """
        for scanned in self.sources:
            self.outside.read(scanned, turned=scanned.reversed and not self.backwards)
        self.outside.write(self.nodes)
        names = self.outside.publish()
        direct = [collected for collected in self.form.collected if self._is_direct(collected)]
        for collected in direct:
            self._collect(collected, names)
        form = self._remaining(names, direct)
        if form.outputs:
            self.author.adopt([form.to_node()])
        else:
            check_dropped(self.body, self.left)
        return cleaned(self.body, self.author, self.outside, self.nodes, self._note(form))

    def _note(self, form: LoopForm) -> str:
        count = len(self.nodes)
        moved = f"{count} node{'s' if count != 1 else ''} before the loop"
        before, after = (
            sum(row_bytes(self.body, read.body_input) for read in scanned)
            for scanned in (self.form.scanned, form.scanned)
        )
        return f"{moved}, which scans about {after} bytes an iteration (before: {before})"

    def _is_direct(self, collected: Collected) -> bool:
        """Return whether the loop need not collect an output, since all its rows are computed
        already."""
        placed = not collected.axis or self.body.row_rank(collected.body_output) is not None
        return collected.body_output in self.computed & self.outside.vectorizer.carrying and placed

    def _collect(self, collected: Collected, names: Mapping[str, str]) -> None:
        """Write an output that the loop no longer collects."""
        if collected.tensor:
            rank = self.outside.vectorizer.rank(collected.body_output) + 1
            value, turned = names[collected.body_output], collected.reversed != self.backwards
            place_rows(self.author, value, collected, rank, turned=turned)

    def _remaining(self, names: Mapping[str, str], direct: Sequence[Collected]) -> LoopForm:
        """Return the loop: it scans the values that were computed before it, and captures the
        invariant ones."""
        carrying = self.outside.vectorizer.carrying
        kept = [collected for collected in self.form.collected if collected not in direct]
        form = self._with_own_outputs(replace(self.form, collected=tuple(kept)))
        body = remaining_body(
            form.body, self.stay, {old: names[old] for old in names.keys() - carrying}
        )
        needed = {name for node in body.node for name in scoping.free_names(node)}
        scanned = [
            scanned
            for scanned in form.scanned
            if scanned.body_input in needed or scanned not in self.sources
        ]
        wanted = needed & carrying
        crossing = [name for node in self.nodes for name in node.output if name in wanted]
        scanned += [Scanned(names[name], name, reversed=self.backwards) for name in crossing]
        if not crossing and not set(self.sources).intersection(scanned):
            # the loop keeps a scanned input whose length was read in front of it
            sources = self.sources or form.scanned
            scanned.append(min(sources, key=lambda one: row_bytes(self.body, one.body_input)))
        body.input.extend(self._declared(name) for name in crossing)
        remaining = replace(form, body=body, scanned=tuple(scanned))
        return remaining.with_all_outputs(self.author.fresh)

    def _with_own_outputs(self, form: LoopForm) -> LoopForm:
        """Return values that were computed before the loop by a node of their own."""
        own = {}
        for name in form.body_outputs:
            if name in self.computed:
                own[name] = self.author.names.fresh(f"{name}/own")
                self.stay.append(helper.make_node("Identity", [name], [own[name]]))
        body = copied(form.body)
        for value in body.output:
            value.name = own.get(value.name, value.name)
        return replace(form, body=body).renamed(own)

    def _declared(self, name: str) -> ValueInfoProto:
        known = self.outside.vectorizer.type_of(name)
        return ValueInfoProto(name=name, type=known)
