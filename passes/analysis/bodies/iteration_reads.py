"""Reads of loop-invariant tensors, one slice an iteration: they become scanned inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.analysis.integers.affine import ITERATION, Affine, Ints, number_of, single_of
from passes.analysis.integers.integer_ops import is_settled, splits_into_slices
from passes.analysis.integers.integers import Integers
from passes.analysis.integers.intervals import Intervals
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.attributes import attribute
from passes.ir.operators import op_of
from passes.ir.site import Site
from passes.loops.form import LoopForm
from passes.types.value_types import dims_of, elem_type_of

#: A step past every end: an axis would have to be longer.
_FAR = 10**9


@dataclass(frozen=True)
class Single:
    """The axis on which a Slice reads one element; `far`: by a step that leads
    out of the tensor."""

    axis: int
    far: bool


def single_slice(integers: Integers, node: NodeProto) -> Single | None:
    """The one element that a Slice of a body reads; None where it may read more, or none.

    It reads one where it ends right after its start; or with a step that leads out of any tensor,
    as tf2onnx writes `x[i]`, and an end after the start.
    """
    starts, ends, axes, steps = (_input(integers, node, position) for position in (1, 2, 3, 4))
    axis = 0 if len(node.input) < 4 else number_of(axes)
    step = 1 if len(node.input) < 5 or not node.input[4] else number_of(steps)
    start = single_of(starts)
    if axis is None or start is None or step is None:
        return None
    if step == 1:
        end = single_of(ends)
        return Single(axis, far=False) if end is not None and (end - start).number == 1 else None
    far = step >= _FAR and _ends_behind(integers, node, start, step)
    return Single(axis, far=True) if far else None


def _ends_behind(integers: Integers, node: NodeProto, start: Affine, step: int) -> bool:
    """Return whether the end is after the start, wherever that is in a tensor shorter than the
    step."""
    end = Intervals(integers, start, (0, step - 1)).of(node.input[2])
    return end is not None and end[0] >= step


def _input(integers: Integers, node: NodeProto, position: int) -> Ints | None:
    return integers.inside(node.input[position]) if position < len(node.input) else None


@dataclass(frozen=True)
class Read:
    """A node of the body that reads the slice of `tensor` at `base` + i, or `base` - i.

    `results` are the names of the slice; `kept_axis`: they still have the axis.
    `nodes` are the positions of the nodes that go. `clamps`: outside the tensor the read does
    not fail, but is empty. `may_stay`: leaving it in the body costs little.
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


def find_reads(site: Site, form: LoopForm, integers: Integers, trips: TripCount) -> list[Read]:
    """The reads in a body that the iteration number indexes, in order.

    Not those with an index whose guards the trip count does not share: the guard stays.
    """
    finder = _Finder(site, form, integers, trips.guards)
    found = (finder.read(index, node) for index, node in enumerate(form.body.node))
    return [read for read in found if read is not None]


class _Finder:
    def __init__(
        self, site: Site, form: LoopForm, integers: Integers, guards: frozenset[str]
    ) -> None:
        self.site, self.form, self.integers, self.guards = site, form, integers, guards
        self.readers = form.index.readers

    def read(self, index: int, node: NodeProto) -> Read | None:
        """The read that a node is."""
        if not is_settled(node):
            return None
        if op_of(node) == "Gather":
            axis = attribute(node, "axis", 0)
            return self._read(index, node, node.input[0], axis, node.input[1])
        if op_of(node) == "Slice" and len(node.input) >= 3:
            return self._slice(index, node)
        if op_of(node) == "SequenceAt":
            return self._sequence_at(index, node)
        return None

    def outer(self, name: str) -> str:
        """The outer tensor that a value of the body always is; "" where there is none."""
        carried = self.form.unchanged.get(name)
        if carried is not None:
            return carried.initial
        return name if self.integers.is_outer(name) else ""

    def _read(
        self, index: int, node: NodeProto, data: str, axis: int, position: str, kept: bool = False
    ) -> Read | None:
        tensor, numbers = self.outer(data), self.integers.inside(position)
        dims = dims_of(self.site.type_of(tensor))
        if dims is None or not -len(dims) <= axis < len(dims):
            return None
        place = single_of(numbers)
        if numbers is None or place is None or not elem_type_of(self.site.type_of(tensor)):
            return None
        slope = place.coefficient(ITERATION)
        if slope not in (1, -1) or not set(self.integers.guards(position)) <= self.guards:
            return None
        base = place.without(ITERATION)
        keeps = kept or (op_of(node) == "Gather" and numbers.rank == 1)
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
        """A read that keeps the axis, merged with the Squeezes that remove it, where there are
        any."""
        (index, *_) = read.nodes
        squeezes = list(self._squeezes(node.output[0], axis))
        if not squeezes:
            return replace(read, clamps=True)
        gone = (index, *(position for position, _ in squeezes))
        results = tuple(name for _, name in squeezes)
        return replace(read, nodes=gone, results=results, kept_axis=False)

    def _squeezes(self, name: str, axis: int) -> Iterator[tuple[int, str]]:
        """The Squeezes of one axis that are the only readers of a value; nothing else reads it."""
        readers = self.readers.get(name, [])
        nodes = [self.form.body.node[position] for position in readers if position >= 0]
        if len(nodes) != len(readers):
            return  # it is an output of the body
        if all(
            op_of(node) == "Squeeze" and self.integers.numbers(node, 1, "axes") == [axis]
            for node in nodes
        ):
            yield from (
                (position, node.output[0]) for position, node in zip(readers, nodes, strict=True)
            )

    def _sequence_at(self, index: int, node: NodeProto) -> Read | None:
        """A read of a sequence that holds the slices of a tensor."""
        name = node.input[0]
        carried = self.form.unchanged.get(name)
        producer = (
            self.integers.producer(carried.initial) if carried else self.integers.source(name)
        )
        if producer is None or not is_settled(producer):
            return None
        outer = carried.initial if carried else name
        if self.integers.is_outer(outer) and not self.integers.same_meaning(producer, outer):
            return None
        if op_of(producer) != "SplitToSequence":
            return None
        axis = attribute(producer, "axis", 0)
        if not splits_into_slices(producer, self.integers.inside):
            return None
        kept = any(producer.input[1:]) or attribute(producer, "keepdims", 1) != 0
        return self._read(index, node, producer.input[0], axis, node.input[1], kept)
