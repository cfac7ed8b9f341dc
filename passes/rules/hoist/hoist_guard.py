"""Writes work that may fail into an If before a loop that may not run: the other branch returns
stand-ins, zeros of their shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from onnx import TypeProto, ValueInfoProto

from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.branches import Branch, Results, either
from passes.ir import scope as scoping
from passes.ir.purposes import handles_no_trips
from passes.ir.versions import SHAPES_MAY_DIFFER
from passes.loops.form import LoopForm
from passes.rules.hoist.hoisting import Moved
from passes.rules.hoist.invariants import Candidate
from passes.types.value_types import INFERRED, Dim, dims_of, elem_type_of, is_static, tensor_type
from passes.writing import spelling
from passes.writing.author import Author

#: Where a size can be read: this axis of an outer value.
Place = tuple[str, int]


@dataclass
class StandIns:
    """The sizes of values that moved into an If, from outer values that always exist.

    A loop that runs no iteration collects empty outputs, whose shape depends on the shapes of the
    values that its body reads. So stand-ins must have the right shape where it matters: `is_known`
    tells whether that can be written. Before opset 11 it always matters, since both branches of an
    If have one shape.
    """

    level: NestedGraph
    form: LoopForm
    candidates: Sequence[Candidate]

    def is_known(self, number: int, name: str) -> bool:
        """Return whether zeros can replace an output of a candidate."""
        known = self.candidates[number].level.type_of(name)
        dims = dims_of(known)
        if dims is None or not elem_type_of(known):
            return False
        return not self._is_seen(name) or None not in self._sizes(number, dims)

    def sizes(self, number: int, name: str) -> list[int | Place]:
        """Return the sizes of the stand-in for an output of a candidate; 0 if they do not
        matter."""
        dims = self.candidates[number].level.dims_of(name) or ()
        if not self._is_seen(name):
            return [dim if isinstance(dim, int) else 0 for dim in dims]
        return [size or 0 for size in self._sizes(number, dims)]

    def _sizes(self, number: int, dims: Sequence[Dim]) -> list[int | Place | None]:
        known = self._symbol_places[number]
        return [known.get(dim) if isinstance(dim, str) else dim for dim in dims]

    def _is_seen(self, name: str) -> bool:
        return self.level.site.target < SHAPES_MAY_DIFFER or name in self._shaping

    @cached_property
    def _shaping(self) -> set[str]:
        """The values on which the shape of a collected output may depend."""
        collected = (output.body_output for output in self.form.collected)
        shaping = {name for name in collected if not is_static(self.level.dims_of(name))}
        for node in reversed(self.level.graph.node):
            if not shaping.isdisjoint(node.output):
                shaping.update(scoping.free_names(node))
                for _, branch in scoping.subgraphs(node):
                    for graph in scoping.graphs_below(branch):
                        shaping.update(scoping.defined(graph))
        return shaping

    @cached_property
    def _symbol_places(self) -> list[dict[str, Place]]:
        """For each candidate, the axes of outer values that have the sizes of its symbols."""
        known: list[dict[str, Place]] = []
        for candidate in self.candidates:
            found: dict[str, Place] = {}
            producers = {name: number for number, name in candidate.reads}
            for name in scoping.free_names(candidate.node) if candidate.node is not None else ():
                places = (
                    known[producers[name]]
                    if name in producers
                    else self._places(candidate.level, name)
                )
                found = {**places, **found}
            known.append(found)
        return known

    def _places(self, level: NestedGraph, name: str) -> dict[str, Place]:
        dims = level.dims_of(name) or ()
        known = ((dim, (name, axis)) for axis, dim in enumerate(dims) if isinstance(dim, str))
        return {
            dim: place
            for dim, place in known
            if dim in self.level.symbols or dim.startswith(INFERRED)
        }


@dataclass(frozen=True)
class Exposed:
    """A value that the loop reads: its name where it is computed, and its name outside.

    `sizes` are those of the zeros that replace it where the loop does not run.
    """

    inside: str
    outside: str
    type: TypeProto
    sizes: Sequence[int | Place]

    @property
    def certain(self) -> TypeProto:
        """The type, with the sizes that are known."""
        dims = dims_of(self.type) or ()
        sure = tuple(dim if isinstance(dim, int) else None for dim in dims)
        return tensor_type(elem_type_of(self.type), sure)


def write_guard(
    author: Author, count: TripCount, moved: Moved, exposed: Iterable[Exposed]
) -> list[ValueInfoProto]:
    """Write the If; returns the types of its outputs.

    Where the loop does not run, the other branch returns zeros, which nothing reads.
    """
    values = list(exposed)
    types = [value.certain for value in values]

    def some(inner: Author) -> Results:
        inner.adopt(moved.nodes)
        return Results([value.inside for value in values], moved.value_info, moved.annotations)

    def none(inner: Author) -> Results:
        return Results(
            [
                spelling.zeros(inner, _shape(inner, value.sizes), elem_type_of(value.type))
                for value in values
            ]
        )

    purpose = handles_no_trips(if_empty=count.runs_if_non_empty)
    with author.serving(purpose):
        condition = count.condition(author)
    either(
        author,
        condition,
        Branch("some", some),
        Branch("none", none, extra=True),
        [value.outside for value in values],
        types,
        purpose=purpose,
        other_first=True,
    )
    return [ValueInfoProto(name=value.outside, type=value.certain) for value in values]


def _shape(author: Author, sizes: Sequence[int | Place]) -> str:
    """Sizes as an int64 vector."""
    fixed = [size for size in sizes if isinstance(size, int)]
    if len(fixed) == len(sizes):
        return author.ints(*fixed)
    parts = [
        author.ints(size) if isinstance(size, int) else spelling.size_of_axis(author, *size)
        for size in sizes
    ]
    return spelling.joined(author, parts)
