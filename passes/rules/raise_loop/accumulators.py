"""Carried values that only collect: what becomes a collected output of a Scan."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from passes.analysis.bodies.body_types import BodyTypes
from passes.analysis.bodies.readers import OUTPUT, readers_around, readers_in
from passes.analysis.integers.integer_ops import attribute, is_settled
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trips import Trips
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import Carried, LoopForm
from passes.rule import Refused, Site
from passes.rules.raise_loop.buffers import Buffers
from passes.types.value_types import Dim


@dataclass(frozen=True)
class Joined:
    """A ConcatFromSequence behind the loop, at `position` among the nodes around it."""

    position: int
    output: str
    axis: int
    stacks: bool


@dataclass(frozen=True)
class Accumulator:
    """A carried value to which every iteration adds `element`, and that it reads no more.

    `axis` is where elements are joined, in the element; `stacks` says that they get a new axis
    there. `backwards`: the last one comes first. `node` is the position of the node that adds.
    `keeps_initial`: the initial value stays in front (behind, where `backwards`). A sequence is
    joined behind the loop by every one of `joins`.
    """

    carried: Carried
    node: int
    element: str
    axis: int
    stacks: bool
    backwards: bool = False
    keeps_initial: bool = True
    joins: tuple[Joined, ...] = ()


def find_accumulators(
    site: Site, form: LoopForm, integers: Integers, types: BodyTypes, trips: Trips
) -> list[Accumulator]:
    """The accumulators of a Loop.

    Raises:
        Refused: `accumulator-read` where the body reads what it collects, `not-filled` where a
            buffer is not proven to be written from end to end, `sequence-read` where a
            collected sequence is not joined into a tensor behind the loop.
    """
    finder = _Finder(site, form, integers, types, trips)
    found = (finder.accumulator(one) for one in form.carried)
    return [one for one in found if one is not None]


class _Finder:
    def __init__(
        self, site: Site, form: LoopForm, integers: Integers, types: BodyTypes, trips: Trips
    ) -> None:
        self.site, self.form, self.integers = site, form, integers
        self.types = types
        self.buffers = Buffers(site, form, integers, types, trips)
        self.readers = readers_in(form.body)
        nodes = enumerate(form.body.node)
        self.places = {name: (at, node) for at, node in nodes for name in node.output}

    def accumulator(self, one: Carried) -> Accumulator | None:
        """The accumulator that a carried value is, None for a value like others."""
        place = self._writer(one)
        if place is None:
            return None
        position, node = place
        recognize = {
            "Concat": self._concat,
            "SequenceInsert": self._sequence,
            "ScatterElements": self._buffer,
            "ScatterND": self._buffer,
            "Where": self._buffer,
        }.get(op_of(node))
        return None if recognize is None else recognize(one, position, node)

    def _writer(self, one: Carried) -> tuple[int, NodeProto] | None:
        """The node that makes the next value."""
        place = self.places.get(one.body_output)
        while place is not None and op_of(place[1]) == "Identity":
            place = self.places.get(place[1].input[0])
        return place

    def _only(self, one: Carried, position: int, node: NodeProto) -> None:
        """See that nothing but the node that adds reads the value, before or after it."""
        before = [at for at in self.readers.get(one.body_input, []) if at != position]
        after = [
            at
            for at in self.readers.get(node.output[0], [])
            if not self._hands_on(at, node.output[0], one)
        ]
        if before or after or list(node.input).count(one.body_input) != 1:
            raise Refused(
                "accumulator-read",
                f"the body reads {one.body_input!r}, to which every iteration adds, and so "
                "what earlier iterations collected",
                [self.site.path, one.body_input],
            )

    def _hands_on(self, position: int, name: str, one: Carried) -> bool:
        """Whether a reader of `name` only returns it as the next carried value."""
        if position == OUTPUT:
            once = scoping.output_names(self.form.body).count(name) == 1
            return name == one.body_output and once
        node = self.form.body.node[position]
        return op_of(node) == "Identity" and all(
            self._hands_on(at, node.output[0], one) for at in self.readers.get(node.output[0], [])
        )

    def _concat(self, one: Carried, position: int, node: NodeProto) -> Accumulator | None:
        if one.body_input not in node.input or len(node.input) != 2 or not is_settled(node):
            return None
        axis = attribute(node, "axis")
        if self.types.changes.get(one.body_input) is None:
            return None  # what is added has no elements: an ordinary carried value
        self._only(one, position, node)
        element = node.input[1 - list(node.input).index(one.body_input)]
        dims = self.types.dims(element)
        if axis is None or dims is None or not -len(dims) <= axis < len(dims):
            return None
        axis %= len(dims)
        self._same_size(one, element, dims[axis])
        return Accumulator(one, position, element, axis, False, node.input[1] == one.body_input)

    def _same_size(self, one: Carried, element: str, dim: Dim) -> None:
        """See that what the iterations add has the same size on the axis on which it is joined."""
        if not isinstance(dim, int) and dim not in self.types.invariant:
            raise Refused(
                "element-shape",
                f"{element!r}, which every iteration adds to {one.body_input!r}, is not proven to "
                "have the same size each time",
                [self.site.path, element],
            )

    def _sequence(self, one: Carried, position: int, node: NodeProto) -> Accumulator | None:
        if node.input[0] != one.body_input:
            return None
        if len(node.input) > 2 and node.input[2]:
            return None  # inserted at a place of its own
        self._only(one, position, node)
        joins = self._joins(one)
        for join in joins:
            dims = self.types.dims(node.input[1])
            if dims is None or not -len(dims) - join.stacks <= join.axis < len(dims) + join.stacks:
                raise Refused(
                    "unknown-rank",
                    f"the rank of {node.input[1]!r}, which is collected, is not known",
                    [self.site.path, node.input[1]],
                )
            if not join.stacks:
                self._same_size(one, node.input[1], dims[join.axis])
        return Accumulator(one, position, node.input[1], 0, True, joins=joins)

    def _joins(self, one: Carried) -> tuple[Joined, ...]:
        owner = self.site.scope.owner
        joins = []
        for position in readers_around(self.site).get(one.final, ()) if one.final else ():
            node = owner.node[position] if position != OUTPUT else None
            if node is None or op_of(node) != "ConcatFromSequence" or not is_settled(node):
                raise Refused(
                    "sequence-read",
                    f"the sequence {one.final!r} that the loop collects is not only joined by "
                    "ConcatFromSequence, and a Scan collects tensors",
                    [self.site.path, one.final],
                )
            axis, stacks = attribute(node, "axis", 0) or 0, attribute(node, "new_axis", 0) == 1
            joins.append(Joined(position, node.output[0], axis, stacks))
        return tuple(joins)

    def _buffer(self, one: Carried, position: int, node: NodeProto) -> Accumulator | None:
        written = self.buffers.written(one, node)
        if written is None:
            return None
        self._only(one, position, node)
        backwards = self.buffers.filled(one, written)
        return Accumulator(one, position, written.element, 0, written.stacks, backwards, False)
