"""Carried values that only accumulate: they become collected outputs of a Scan."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import NodeProto

from passes.analysis.bodies.body_types import BodyTypes
from passes.analysis.integers.integer_ops import is_settled
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.carried_values import only_written
from passes.ir.attributes import attribute
from passes.ir.graph_index import OUTPUT
from passes.ir.operators import op_of
from passes.loops.form import Carried, LoopForm
from passes.rule import Site
from passes.rules.raise_loop.buffers import Buffers
from passes.types.value_types import Dim


@dataclass(frozen=True)
class Joined:
    """A ConcatFromSequence after the loop, at `position` among the nodes around it."""

    position: int
    output: str
    axis: int
    stacks: bool


@dataclass(frozen=True)
class Accumulator:
    """A carried value to which every iteration adds `element`, and that it does not read otherwise.

    `axis` is the axis of an element on which elements are joined; `stacks`: they get a new axis
    there. `backwards`: the last one comes first. `node` is the position of the node that adds.
    `keeps_initial`: the initial value stays first (last, if `backwards`). A sequence is
    joined after the loop by each of `joins`. `settled` are values that only locate where an element
    is written.
    """

    carried: Carried
    node: int
    element: str
    axis: int
    stacks: bool
    backwards: bool = False
    keeps_initial: bool = True
    joins: tuple[Joined, ...] = ()
    settled: frozenset[str] = frozenset()


def find_accumulators(
    site: Site, form: LoopForm, integers: Integers, types: BodyTypes, trips: TripCount
) -> list[Accumulator]:
    """The accumulators of a Loop.

    Raises:
        Refused: `accumulator-read` where the body reads what it collects, `not-filled` where it
            is not proven that all rows of a buffer are written, `sequence-read` where a
            collected sequence is not joined into a tensor after the loop.
    """
    finder = _Finder(site, form, integers, types, trips)
    found = (finder.accumulator(carried) for carried in form.carried)
    return [accumulator for accumulator in found if accumulator is not None]


class _Finder:
    def __init__(
        self, site: Site, form: LoopForm, integers: Integers, types: BodyTypes, trips: TripCount
    ) -> None:
        self.site, self.form, self.integers = site, form, integers
        self.types = types
        self.buffers = Buffers(site, form, integers, types, trips)

    def accumulator(self, carried: Carried) -> Accumulator | None:
        """The accumulator that a carried value is; None if it is none."""
        index = self.form.index
        position = index.positions.get(index.source(carried.body_output))
        if position is None:
            return None
        node = self.form.body.node[position]
        recognize = {
            "Concat": self._concat,
            "SequenceInsert": self._sequence,
            "ScatterND": self._buffer,
        }.get(op_of(node))
        return None if recognize is None else recognize(carried, position, node)

    def _only(self, carried: Carried) -> None:
        """Check that only the node that adds reads the value, before or after it."""
        if not only_written(self.form, carried):
            raise self.site.refused(
                "accumulator-read",
                f"the body reads {carried.body_input!r}, to which every iteration adds, and so "
                "what earlier iterations collected",
                carried.body_input,
            )

    def _concat(self, carried: Carried, position: int, node: NodeProto) -> Accumulator | None:
        if carried.body_input not in node.input or len(node.input) != 2 or not is_settled(node):
            return None
        axis = attribute(node, "axis", None)
        if self.types.changes.get(carried.body_input) is None:
            return None  # what is added has no elements: an ordinary carried value
        self._only(carried)
        element = node.input[1 - list(node.input).index(carried.body_input)]
        dims = self.types.dims(element)
        if axis is None or dims is None or not -len(dims) <= axis < len(dims):
            return None
        axis %= len(dims)
        self._same_size(carried, element, dims[axis])
        return Accumulator(
            carried, position, element, axis, False, node.input[1] == carried.body_input
        )

    def _same_size(self, carried: Carried, element: str, dim: Dim) -> None:
        """Check that elements have the same size on the axis on which they are joined."""
        if not isinstance(dim, int) and dim not in self.types.invariant:
            raise self.site.refused(
                "element-shape",
                f"{element!r}, which every iteration adds to {carried.body_input!r}, is not proven "
                "to have the same size each time",
                element,
            )

    def _sequence(self, carried: Carried, position: int, node: NodeProto) -> Accumulator | None:
        if node.input[0] != carried.body_input:
            return None
        if len(node.input) > 2 and node.input[2]:
            return None  # inserted at a place of its own
        self._only(carried)
        joins = self._joins(carried)
        for join in joins:
            dims = self.types.dims(node.input[1])
            if dims is None or not -len(dims) - join.stacks <= join.axis < len(dims) + join.stacks:
                what = f"the rank of {node.input[1]!r}, which is collected, is unknown"
                raise self.site.refused("unknown-rank", what, node.input[1])
            if not join.stacks:
                self._same_size(carried, node.input[1], dims[join.axis])
        return Accumulator(carried, position, node.input[1], 0, True, joins=joins)

    def _joins(self, carried: Carried) -> tuple[Joined, ...]:
        owner = self.site.scope.owner
        joins = []
        for position in self.site.graph.readers.get(carried.final, ()) if carried.final else ():
            node = owner.node[position] if position != OUTPUT else None
            if node is None or op_of(node) != "ConcatFromSequence" or not is_settled(node):
                raise self.site.refused(
                    "sequence-read",
                    f"the sequence {carried.final!r} that the loop collects is not only joined by "
                    "ConcatFromSequence, and a Scan collects tensors",
                    carried.final,
                )
            axis, stacks = attribute(node, "axis", 0), attribute(node, "new_axis", 0) == 1
            joins.append(Joined(position, node.output[0], axis, stacks))
        return tuple(joins)

    def _buffer(self, carried: Carried, position: int, node: NodeProto) -> Accumulator | None:
        written = self.buffers.written(carried, node)
        if written is None:
            return None
        self._only(carried)
        backwards = self.buffers.filled(carried, written)
        return Accumulator(
            carried,
            position,
            written.element,
            written.axis,
            written.stacks,
            backwards,
            False,
            settled=written.settled,
        )
