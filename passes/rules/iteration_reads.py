"""Reads of a tensor that never changes, one slice an iteration: what becomes a scanned input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.loop_form import Carried, LoopForm
from passes.operators import op_of
from passes.rule import Site
from passes.rules.affine import ITERATION, Affine
from passes.rules.induction import unchanged
from passes.rules.integer_ops import attribute, is_settled
from passes.rules.integers import Integers
from passes.rules.readers import readers_in
from passes.rules.single_slices import number_of, single_slice
from passes.rules.string_rows import string_row
from passes.rules.trips import Trips
from passes.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class Read:
    """A node of the body that reads the slice of `tensor` at `base` + i, or `base` - i.

    `results` are the names of the slice, `kept_axis` says that they still have the axis.
    `nodes` are the positions of the nodes that go. `clamps`: outside the tensor the read does
    not fail, but is empty. `may_stay`: it is no loss to speak of where it stays in the body.
    """

    tensor: str
    axis: int
    base: Affine
    backwards: bool
    nodes: tuple[int, ...]
    results: tuple[str, ...]
    kept_axis: bool
    clamps: bool = False
    may_stay: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for reads of the same slices."""
        return (self.tensor, self.axis, self.base, self.backwards)


def find_reads(site: Site, form: LoopForm, integers: Integers, trips: Trips) -> list[Read]:
    """The reads in a body that the iteration number indexes, in order.

    Not those with an index that is guarded in another way than the trip count: the guard stays.
    """
    finder = _Finder(site, form, integers, trips.guards)
    found = (finder.read(index, node) for index, node in enumerate(form.body.node))
    return [read for read in found if read is not None]


class _Finder:
    def __init__(
        self, site: Site, form: LoopForm, integers: Integers, guards: frozenset[str]
    ) -> None:
        self.site, self.form, self.integers, self.guards = site, form, integers, guards
        self.unchanged = unchanged(form)
        self.readers = readers_in(form.body)
        nodes = enumerate(form.body.node)
        self.makers = {name: (at, node) for at, node in nodes for name in node.output if name}

    def read(self, index: int, node: NodeProto) -> Read | None:
        """The read that a node is."""
        if not is_settled(node):
            return None
        if op_of(node) == "Gather":
            axis = attribute(node, "axis", 0) or 0
            return self._read(index, node, node.input[0], axis, node.input[1])
        if op_of(node) == "Slice" and len(node.input) >= 3:
            return self._slice(index, node)
        if op_of(node) == "SequenceAt":
            return self._sequence_at(index, node)
        if op_of(node) == "Compress":
            return self._string_row(index, node)
        return None

    def outer(self, name: str) -> str:
        """The outer tensor that a value of the body always is, empty where it is none."""
        carried: Carried | None = self.unchanged.get(name)
        if carried is not None:
            return carried.initial
        return name if self.integers.is_outer(name) else ""

    def _read(
        self, index: int, node: NodeProto, data: str, axis: int, position: str, kept: bool = False
    ) -> Read | None:
        tensor, at = self.outer(data), self.integers.inside(position)
        dims = dims_of(self.site.type_of(tensor))
        if dims is None or not -len(dims) <= axis < len(dims):
            return None
        if at is None or at.single is None or not elem_type_of(self.site.type_of(tensor)):
            return None
        slope = at.single.coefficient(ITERATION)
        if slope not in (1, -1) or not set(self.integers.guards(position)) <= self.guards:
            return None
        base = at.single.without(ITERATION)
        keeps = kept or (op_of(node) == "Gather" and at.rank == 1)
        axis %= len(dims)
        return Read(tensor, axis, base, slope < 0, (index,), (node.output[0],), keeps)

    def _slice(self, index: int, node: NodeProto) -> Read | None:
        """A Slice of one element, read with or without the axis that it keeps."""
        single = single_slice(self.integers, node)
        if single is None:
            return None
        read = self._read(index, node, node.input[0], single.axis, node.input[1], kept=True)
        if read is None:
            return None
        return self._squeezed(replace(read, may_stay=single.far), node, read.axis)

    def _squeezed(self, read: Read, node: NodeProto, axis: int) -> Read:
        """A read that keeps the axis, with the Squeezes that take it away where it is so."""
        (index, *_) = read.nodes
        squeezes = list(self._squeezes(node.output[0], axis))
        if not squeezes:
            return replace(read, clamps=True)
        gone = (index, *(position for position, _ in squeezes))
        results = tuple(name for _, name in squeezes)
        return replace(read, nodes=gone, results=results, kept_axis=False)

    def _string_row(self, index: int, node: NodeProto) -> Read | None:
        """A row of strings, read by a mask, without the nodes that only made the mask."""
        made = self.makers.get
        row = string_row(node, lambda name: made(name, (0, None))[1], self.integers.constant_inside)
        if row is None:
            return None
        read = self._read(index, node, row.tensor, row.axis, row.index, kept=True)
        squeezed = None if read is None else self._squeezed(read, node, 0)
        if squeezed is None or squeezed.kept_axis:
            return None
        gone = set(squeezed.nodes)
        for name in row.helpers:
            at, _ = self.makers[name]
            if gone.issuperset(self.readers.get(name, ())):
                gone.add(at)
        return replace(squeezed, nodes=(index, *sorted(gone - {index})))

    def _squeezes(self, name: str, axis: int) -> Iterator[tuple[int, str]]:
        """The Squeezes of one axis that are the only readers of a value; nothing else reads it."""
        readers = self.readers.get(name, [])
        nodes = [self.form.body.node[position] for position in readers if position >= 0]
        if len(nodes) != len(readers):
            return  # it is an output of the body
        if all(self._squeezes_axis(node, axis) for node in nodes):
            yield from ((at, node.output[0]) for at, node in zip(readers, nodes, strict=True))

    def _squeezes_axis(self, node: NodeProto, axis: int) -> bool:
        if op_of(node) != "Squeeze":
            return False
        if len(node.input) > 1:
            return number_of(self.integers.inside(node.input[1])) == axis
        axes: Sequence[int] = next((one.ints for one in node.attribute if one.name == "axes"), ())
        return list(axes) == [axis]

    def _sequence_at(self, index: int, node: NodeProto) -> Read | None:
        """A read of a sequence that holds the slices of a tensor."""
        name = node.input[0]
        carried = self.unchanged.get(name)
        made = self.integers.producer(carried.initial) if carried else self.integers.source(name)
        if made is None or not is_settled(made):
            return None
        outer = carried.initial if carried else name
        if self.integers.is_outer(outer) and not self.integers.same_meaning(made, outer):
            return None
        if op_of(made) == "SplitToSequence":
            axis = attribute(made, "axis", 0) or 0
            parts = made.input[1] if len(made.input) > 1 else ""
            if parts and not self._is_one(parts):
                return None
            kept = bool(parts) or attribute(made, "keepdims", 1) != 0
            return self._read(index, node, made.input[0], axis, node.input[1], kept)
        if op_of(made) == "SequenceConstruct":
            return self._constructed(index, node, made)
        return None

    def _constructed(self, index: int, node: NodeProto, made: NodeProto) -> Read | None:
        """A read of a sequence that a Split filled."""
        split = self.integers.source(made.input[0])
        if split is None or op_of(split) != "Split" or list(split.output) != list(made.input):
            return None
        if not is_settled(split):
            return None
        axis = attribute(split, "axis", 0) or 0
        tensor = self.outer(split.input[0])
        size = self.integers.size(tensor, axis) if tensor else None
        if size is None or size.number != len(split.output) or not self._even(split):
            return None
        return self._read(index, node, split.input[0], axis, node.input[1], kept=True)

    def _even(self, split: NodeProto) -> bool:
        """Whether a Split into as many parts as there are elements makes parts of one each."""
        parts: Sequence[int] = next(
            (one.ints for one in split.attribute if one.name == "split"), ()
        )
        if len(split.input) > 1 and split.input[1]:
            found = self.integers.inside(split.input[1])
            parts = [item.number or 0 for item in found.items] if found else [0]
        return set(parts) <= {1}

    def _is_one(self, name: str) -> bool:
        """Whether a sequence is split into single slices: a scalar 1, which no part exceeds."""
        found = self.integers.inside(name)
        return found is not None and found.rank == 0 and number_of(found) == 1
