"""A loop without the nodes that run after it, and those nodes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from onnx import NodeProto, ValueInfoProto

from passes.bodies.moving import Outside, cleaned, remaining_body
from passes.bodies.time_body import TimeBody
from passes.bodies.time_cost import row_bytes
from passes.bodies.time_length import Length
from passes.ir import scope as scoping
from passes.loops.form import Collected, LoopForm
from passes.rule import Edit
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author


def in_order(collected: Collected) -> bool:
    """Return whether an output is collected as a vectorised node reads it: time first, not
    reversed."""
    return bool(collected.tensor) and not collected.axis and not collected.reversed


class AfterTheLoop:
    """Writes the nodes at `moved`, which only feed collected outputs, after the loop; of these
    the `plain` ones may stay in the loop, too."""

    def __init__(self, body: TimeBody, moved: Sequence[int], plain: Collection[int]) -> None:
        self.body = body
        self.form = body.form
        self.author = Author.at(body.site, "loop")
        self.nodes = [body.nodes[position] for position in moved]
        gone = {*moved} - {*plain}
        self.computed = {name for position in moved for name in body.nodes[position].output if name}
        self.lost = {name for position in gone for name in body.nodes[position].output if name}
        self.stay = self._without_idle(gone, plain)
        self.direct = [
            collected for collected in self.form.collected if collected.body_output in self.lost
        ]
        self.kept = [
            collected for collected in self.form.collected if collected.body_output not in self.lost
        ]

    def _without_idle(self, gone: Collection[int], plain: Collection[int]) -> list[NodeProto]:
        """The nodes that stay, except plain ones that only moved nodes read."""
        nodes = self.body.nodes
        left = [position for position in range(len(nodes)) if position not in gone]
        needed = set(self.form.body_outputs)
        needed.update(name for position in left for name in scoping.free_names(nodes[position]))
        idle = {position for position in plain if needed.isdisjoint(nodes[position].output)}
        return [nodes[position] for position in left if position not in idle]

    def edit(self) -> Edit:
        """Write the loop without them, and then these nodes."""
        names = self._crossing()
        scanned = {scanned.body_input: scanned for scanned in self.form.scanned}
        tensors = {name: self._collected(name) for name in names if name not in scanned}
        self._write_loop()
        outside = Outside(self.body, self.author, self._length(tensors))
        for name in names:
            if name in scanned:
                outside.read(scanned[name], turned=scanned[name].reversed)
            else:
                outside.inner.op("Identity", tensors[name], outputs=[name])
                outside.vectorizer.carrying.add(name)
        outside.write(self.nodes)
        outside.place(self.direct)
        return cleaned(self.body, self.author, outside, self.nodes, self._note())

    def _crossing(self) -> list[str]:
        """The values of the loop that the moved nodes read, in order of first use."""
        graph = self.body.rows.graph
        outer = {*scoping.captures(graph), *scoping.initializer_names(graph), *self.computed}
        names = (name for node in self.nodes for name in scoping.free_names(node))
        return [name for name in dict.fromkeys(names) if name not in outer]

    def _collected(self, name: str) -> str:
        """The tensor in which the loop collects a value, in order."""
        origin = self.body.index.source(name)
        for collected in self.kept:
            if in_order(collected) and self.body.index.source(collected.body_output) == origin:
                return collected.tensor
        own = self.body.site.fresh(f"{name}/collected")
        self.stay.append(NodeProto(op_type="Identity", input=[name], output=[own]))
        added = Collected(own, self.author.fresh(name))
        self.kept.append(added)
        return added.tensor

    def _length(self, tensors: dict[str, str]) -> Length:
        if self.body.trips is not None:
            return Length(self.author.ints(self.body.trips))
        return Length(spelling.size_of_axis(self.author, next(iter(tensors.values())), 0))

    def _write_loop(self) -> None:
        body = remaining_body(self.form.body, self.stay, {})
        form = replace(self.form, body=body, collected=tuple(self.kept))
        form = form.with_all_outputs(self.author.fresh)
        self._declare(form)
        self.author.adopt([form.to_node()])

    def _declare(self, form: LoopForm) -> None:
        """Declare the types of what is newly collected."""
        declared = {value.name for value in form.body.output}
        for collected in form.collected:
            if collected.body_output not in declared:
                known = self.body.rows.types[self._source(collected.body_output)]
                typed = tensor_type(elem_type_of(known), dims_of(known))
                form.body.output.append(ValueInfoProto(name=collected.body_output, type=typed))

    def _source(self, own: str) -> str:
        return next(node.input[0] for node in self.stay if own in node.output)

    def _note(self) -> str:
        count = len(self.nodes)
        before = sum(
            row_bytes(self.body, collected.body_output) for collected in self.form.collected
        )
        kept = [collected.body_output for collected in self.kept]
        known = self.body.rows.types
        after = sum(
            row_bytes(self.body, name if name in known else self._source(name)) for name in kept
        )
        return (
            f"{count} node{'s' if count != 1 else ''} after the loop, which collects about "
            f"{after} bytes an iteration (before: {before})"
        )
