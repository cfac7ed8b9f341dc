"""Work that may fail, in front of a loop that may not run: it stands in an If that asks first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onnx import TypeProto, ValueInfoProto, helper

from passes.analysis.trip_count.running import Running
from passes.rules.hoist.hoisting import Moved
from passes.rules.hoist.stand_ins import Place
from passes.types.value_types import dims_of, elem_type_of, tensor_type
from passes.writing import spelling
from passes.writing.author import Author
from passes.writing.purposes import handles_no_trips


@dataclass(frozen=True)
class Exposed:
    """A value that the loop reads: its name where it is computed, and its name outside.

    `sizes` are those of what stands for it where the loop does not run.
    """

    inside: str
    outside: str
    type: TypeProto
    sizes: Sequence[int | Place]

    @property
    def elem_type(self) -> int:
        """The element type."""
        return elem_type_of(self.type)

    @property
    def dims(self) -> tuple[int | None, ...]:
        """The dims that are sure."""
        known = dims_of(self.type) or ()
        return tuple(dim if isinstance(dim, int) else None for dim in known)

    def info(self, name: str) -> ValueInfoProto:
        """What a graph says of the value under a name."""
        made: ValueInfoProto = helper.make_value_info(name, tensor_type(self.elem_type, self.dims))
        return made


def write_guard(
    author: Author, running: Running, moved: Moved, exposed: Iterable[Exposed]
) -> list[ValueInfoProto]:
    """Write the If; answers with the types of what it gives.

    Where the loop does not run, nobody reads what the other branch gives: zeros.
    """
    values = list(exposed)
    computing = author.inside(f"{author.prefix}/some")
    computing.adopt(moved.nodes)
    some = computing.graph(computing.prefix, [], [one.info(one.inside) for one in values])
    some.value_info.extend(moved.value_info)
    some.quantization_annotation.extend(moved.annotations)
    with author.serving(handles_no_trips(if_empty=running.sure_if_non_empty)):
        idle = author.inside(f"{author.prefix}/none")
        zeros = [spelling.zeros(idle, _shape(idle, one.sizes), one.elem_type) for one in values]
        outputs = [one.info(name) for one, name in zip(values, zeros, strict=True)]
        node = helper.make_node(
            "If",
            [running.condition(author)],
            [one.outside for one in values],
            then_branch=some,
            else_branch=idle.graph(idle.prefix, [], outputs),
        )
        author.adopt([node])
    return [one.info(one.outside) for one in values]


def _shape(author: Author, sizes: Sequence[int | Place]) -> str:
    """Sizes as an int64 vector."""
    fixed = [size for size in sizes if isinstance(size, int)]
    if len(fixed) == len(sizes):
        return author.ints(*fixed)
    parts = [
        author.ints(size) if isinstance(size, int) else spelling.size_of_axis(author, *size)
        for size in sizes
    ]
    return author.op("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
