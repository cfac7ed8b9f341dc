"""Carried values that only collect: what becomes a collected output of a Scan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from passes import scope as scoping
from passes.loop_form import Carried, LoopForm
from passes.rule import Refused, Site
from passes.rules.affine import ITERATION, Affine
from passes.rules.body_types import BodyTypes
from passes.rules.induction import unchanged
from passes.rules.integers import Integers, attribute
from passes.rules.readers import OUTPUT, readers_around, readers_in
from passes.rules.trips import Trips
from passes.value_types import Dim


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
        self.types, self.trips = types, trips
        self.readers = readers_in(form.body)
        self.unchanged = unchanged(form)
        nodes = enumerate(form.body.node)
        self.places = {name: (at, node) for at, node in nodes for name in node.output}

    def accumulator(self, one: Carried) -> Accumulator | None:
        """The accumulator that a carried value is, None for a value like others."""
        place = self._writer(one)
        if place is None or not scoping.is_onnx_domain(place[1].domain):
            return None
        position, node = place
        recognize = {
            "Concat": self._concat,
            "SequenceInsert": self._sequence,
            "ScatterElements": self._scatter_elements,
            "ScatterND": self._scatter_nd,
            "Where": self._where,
        }.get(node.op_type)
        return None if recognize is None else recognize(one, position, node)

    def _writer(self, one: Carried) -> tuple[int, NodeProto] | None:
        """The node that makes the next value."""
        place = self.places.get(one.body_output)
        while place is not None and place[1].op_type == "Identity":
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
        return node.op_type == "Identity" and all(
            self._hands_on(at, node.output[0], one) for at in self.readers.get(node.output[0], [])
        )

    def _concat(self, one: Carried, position: int, node: NodeProto) -> Accumulator | None:
        if one.body_input not in node.input or len(node.input) != 2:
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

    def _same_row(self, one: Carried, element: str) -> None:
        """See that an element is one row of the buffer it is written to."""
        element_dims = self.types.dims(element) or ()
        buffer = self.types.dims(one.body_input) or ()
        row = element_dims[len(element_dims) - len(buffer) + 1 :]
        fixed = {dim for dim in buffer[1:] if not isinstance(dim, int)}
        if row != buffer[1:] or not fixed <= self.types.invariant:
            raise Refused(
                "element-shape",
                f"{element!r}, of shape {list(element_dims)}, is not proven to be a row of "
                f"{one.body_input!r}, of shape {list(buffer)}",
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
            if node is None or node.op_type != "ConcatFromSequence":
                raise Refused(
                    "sequence-read",
                    f"the sequence {one.final!r} that the loop collects is not only joined by "
                    "ConcatFromSequence, and a Scan collects tensors",
                    [self.site.path, one.final],
                )
            axis, stacks = attribute(node, "axis", 0) or 0, attribute(node, "new_axis", 0) == 1
            joins.append(Joined(position, node.output[0], axis, stacks))
        return tuple(joins)

    def _scatter_nd(self, one: Carried, position: int, node: NodeProto) -> Accumulator | None:
        if node.input[0] != one.body_input or _reduces(node):
            return None
        update = self.types.dims(node.input[2])
        buffer = self.types.dims(one.body_input)
        if update is None or buffer is None:
            return None
        at = self._index(node.input[1])
        if at is None or len(update) not in (len(buffer) - 1, len(buffer)):
            return None
        self._only(one, position, node)
        self._same_row(one, node.input[2])
        backwards = self._fills(one, at, 0)
        stacks = len(update) == len(buffer) - 1
        return Accumulator(one, position, node.input[2], 0, stacks, backwards, False)

    def _scatter_elements(self, one: Carried, position: int, node: NodeProto) -> Accumulator | None:
        buffer = self.types.dims(one.body_input)
        if node.input[0] != one.body_input or _reduces(node) or buffer is None or len(buffer) != 1:
            return None
        at = self.integers.inside(node.input[1])
        if at is None or at.single is None or self.types.dims(node.input[2]) != (1,):
            return None
        if not at.single.coefficient(ITERATION):
            return None
        self._only(one, position, node)
        backwards = self._fills(one, at.single, 0)
        return Accumulator(one, position, node.input[2], 0, False, backwards, False)

    def _where(self, one: Carried, position: int, node: NodeProto) -> Accumulator | None:
        """Where(Equal(rows, i), element, buffer), `rows` being 0, 1, ... along axis 0."""
        if node.input[2] != one.body_input:
            return None
        equal = self.integers.source(node.input[0])
        buffer, element = self.types.dims(one.body_input), self.types.dims(node.input[1])
        if equal is None or equal.op_type != "Equal" or buffer is None or element is None:
            return None
        for rows, index in (equal.input, list(equal.input)[::-1]):
            at = self.integers.inside(index)
            if at is None or at.single is None or not at.single.coefficient(ITERATION):
                continue
            if not self._counts_rows(rows, one, len(buffer)) or None in buffer[1:]:
                return None
            if element not in ((1, *buffer[1:]), buffer[1:]):
                return None
            self._only(one, position, node)
            backwards = self._fills(one, at.single, 0)
            stacks = len(element) == len(buffer) - 1
            return Accumulator(one, position, node.input[1], 0, stacks, backwards, False)
        return None

    def _counts_rows(self, name: str, one: Carried, rank: int) -> bool:
        """Whether a value is 0, 1, ... along axis 0 of the buffer, of size 1 elsewhere."""
        carried = self.unchanged.get(name)
        array = self.site.constant(carried.initial if carried else name)
        size = self.integers.size(one.initial, 0)
        if array is None or size is None or array.ndim != rank or size.number != array.size:
            return False
        shaped = (array.size, *(1 for _ in range(rank - 1)))
        return array.shape == shaped and bool(np.array_equal(array.ravel(), np.arange(array.size)))

    def _index(self, name: str) -> Affine | None:
        """The row that the indices [i] or [[i]] of a ScatterND mean."""
        at = self.integers.inside(name)
        if at is None:
            node = self.integers.source(name)
            while node is not None and node.op_type in ("Unsqueeze", "Reshape"):
                if self.types.dims(node.output[0]) not in ((1,), (1, 1)):
                    return None
                at = self.integers.inside(node.input[0])
                if at is not None:
                    break
                node = self.integers.source(node.input[0])
        if at is None or at.single is None or not at.single.coefficient(ITERATION):
            return None
        return at.single

    def _fills(self, one: Carried, at: Affine, axis: int) -> bool:
        """Whether the rows of a buffer are written last first; each is written once.

        Raises:
            Refused: `not-filled` where that is not proven.
        """
        size = self.integers.size(one.initial, axis)
        slope, base = at.coefficient(ITERATION), at.without(ITERATION)
        first = base if slope == 1 else base - (self.trips.size - 1)
        zeros = [] if size is None else [first, size - self.trips.size]
        if slope not in (1, -1) or any(difference.number != 0 for difference in zeros):
            zeros = []
        if not zeros or size is None:
            raise Refused(
                "not-filled",
                f"{one.body_input!r} is written at {at} in {self.trips.size} iterations; that "
                f"this fills it, {size} rows, from end to end is not proven",
                [self.site.path, one.body_input],
            )
        return slope == -1


def _reduces(node: NodeProto) -> bool:
    return any(one.name == "reduction" and one.s != b"none" for one in node.attribute)
