"""A Scan without the nodes that run in front of it, and those nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import GraphProto, ValueInfoProto, helper

from passes.ir import scope as scoping
from passes.loops.form import Collected, LoopForm, Scanned
from passes.rule import Edit
from passes.rules.time_axis.dropping import check_dropped
from passes.rules.time_axis.moving import Outside, cleaned, place_rows, remaining_body
from passes.rules.time_axis.time_body import TimeBody
from passes.rules.time_axis.time_cost import row_bytes, same_bits
from passes.rules.time_axis.time_length import Length, length_of
from passes.writing.author import Author


def hoisted(body: TimeBody, moved: Sequence[int]) -> Edit:
    """Write the nodes at `moved`, which read nothing that stays, in front of the loop.

    Raises:
        Refused: `random` or `may-fail` where no loop would be left for what nobody reads.
    """
    return _Hoisting(body, moved).edit()


class _Hoisting:
    def __init__(self, body: TimeBody, moved: Sequence[int]) -> None:
        self.body = body
        self.form = body.form
        site = body.site
        self.author = Author(site.target, site.names, site.node.name or "scan")
        gone = set(moved)
        self.nodes = [body.nodes[at] for at in moved]
        self.left = [at for at in range(len(body.nodes)) if at not in gone]
        self.stay = [body.nodes[at] for at in self.left]
        self.made = {name for node in self.nodes for name in node.output if name}
        read = {name for node in self.nodes for name in scoping.free_names(node)}
        self.sources = [one for one in self.form.scanned if one.body_input in read]
        # where all are read backwards the loop goes on to do that; else they are turned
        self.backwards = all(one.reversed for one in self.sources)
        self.outside = Outside(body, self.author, self._length())

    def _length(self) -> Length:
        """The length of what is read here; of all that is scanned, where no loop is left."""
        form = self.form
        whole = not form.carried and all(one.body_output in self.made for one in form.collected)
        scanned = form.scanned if whole else self.sources or form.scanned[:1]
        return length_of(self.body, self.author, scanned)

    def edit(self) -> Edit:
        for one in self.sources:
            self.outside.read(one, turned=one.reversed and not self.backwards)
        self.outside.write(self.nodes)
        names = self.outside.publish()
        direct = [one for one in self.form.collected if self._is_direct(one)]
        for collected in direct:
            self._collect(collected, names)
        form = self._remaining(names, direct)
        if form.outputs:
            self.author.adopt([form.to_node()])
        else:
            check_dropped(self.body, self.left)
        return self._cleaned(form)

    def _cleaned(self, form: LoopForm) -> Edit:
        return cleaned(
            self.body,
            self.author,
            self.outside,
            note=self._note(form),
            exact=all(map(same_bits, self.nodes)),
        )

    def _note(self, form: LoopForm) -> str:
        count = len(self.nodes)
        moved = f"{count} node{'s' if count != 1 else ''} in front of the loop"
        before, after = (
            sum(row_bytes(self.body, one.body_input) for one in scanned)
            for scanned in (self.form.scanned, form.scanned)
        )
        return f"{moved}, which scans about {after} bytes an iteration (before: {before})"

    def _is_direct(self, one: Collected) -> bool:
        """Whether the loop need not collect an output, since all of it is there already."""
        placed = not one.axis or self.body.row_rank(one.body_output) is not None
        return one.body_output in self.made & self.outside.at.carrying and placed

    def _collect(self, one: Collected, names: Mapping[str, str]) -> None:
        """An output that the loop need not collect any more."""
        if one.tensor:
            rank = self.outside.at.rank(one.body_output) + 1
            place_rows(
                self.author,
                names[one.body_output],
                one.axis,
                rank,
                turned=one.reversed != self.backwards,
                output=one.tensor,
            )

    def _remaining(self, names: Mapping[str, str], direct: Sequence[Collected]) -> LoopForm:
        """The loop: it scans the values that were computed in front of it, and captures those
        that are the same in every iteration."""
        carrying = self.outside.at.carrying
        kept = [one for one in self.form.collected if one not in direct]
        form = self._with_own_outputs(replace(self.form, collected=tuple(kept)))
        body = remaining_body(
            form.body, self.stay, {old: names[old] for old in names.keys() - carrying}
        )
        needed = {name for node in body.node for name in scoping.free_names(node)}
        scanned = [
            one for one in form.scanned if one.body_input in needed or one not in self.sources
        ]
        wanted = needed & carrying
        crossing = [name for node in self.nodes for name in node.output if name in wanted]
        scanned += [Scanned(names[name], name, reversed=self.backwards) for name in crossing]
        if not crossing and not set(self.sources).intersection(scanned):
            # the loop still sees a length of what was read in front of it
            scanned.append(min(self.sources or form.scanned, key=self._size))
        body.input.extend(self._declared(name) for name in crossing)
        fresh = self.author.fresh
        return replace(
            form,
            body=body,
            scanned=tuple(scanned),
            carried=tuple(replace(one, final=one.final or fresh("unused")) for one in form.carried),
            collected=tuple(
                replace(one, tensor=one.tensor or fresh("unused")) for one in form.collected
            ),
        )

    def _with_own_outputs(self, form: LoopForm) -> LoopForm:
        """Outputs that were computed in front of the loop, each by a node of its own."""
        own = {}
        for name in form.body_outputs:
            if name in self.made:
                own[name] = self.author.names.fresh(f"{name}/own")
                self.stay.append(helper.make_node("Identity", [name], [own[name]]))
        body = GraphProto()
        body.CopyFrom(form.body)
        for value in body.output:
            value.name = own.get(value.name, value.name)

        def returned(name: str) -> str:
            return own.get(name, name)

        return replace(
            form,
            body=body,
            carried=tuple(
                replace(one, body_output=returned(one.body_output)) for one in form.carried
            ),
            collected=tuple(
                replace(one, body_output=returned(one.body_output)) for one in form.collected
            ),
        )

    def _size(self, one: Scanned) -> int:
        return row_bytes(self.body, one.body_input)

    def _declared(self, name: str) -> ValueInfoProto:
        known = self.outside.at.type_of(name)
        return ValueInfoProto(name=name, type=known)
