"""Writes work that may fail into an If before a loop that may not run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onnx import TypeProto, ValueInfoProto

from passes.analysis.trip_count.trip_count import TripCount
from passes.rules.hoist.hoisting import Moved
from passes.rules.hoist.stand_ins import Place
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.branches import Branch, Results, either
from passes.writing.purposes import handles_no_trips


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
        {"else_branch": Branch("none", none, extra=True), "then_branch": Branch("some", some)},
        [value.outside for value in values],
        types,
        purpose=purpose,
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
