"""The number of iterations, of rows and of columns of what a loop over a cell's steps reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.integers import Integers
from passes.bodies.time_body import TimeBody
from passes.ir import scope as scoping
from passes.loops.form import Carried, Scanned
from passes.types.value_types import dims_of
from passes.writing import spelling
from passes.writing.author import Author

#: An axis of an outer tensor.
Place = tuple[str, int]


@dataclass(frozen=True)
class CellSizes:
    """The axes of a loop over a tensor [time, batch, inputs], in whatever order; of one row, it
    may have no axis of a batch. `others` are axes of what else has a size per row."""

    body: TimeBody
    others: tuple[Place, ...] = ()

    @cached_property
    def flat(self) -> bool:
        """True if elements and states are vectors, without an axis of a batch."""
        form = self.body.form
        names = [form.scanned[0].body_input, *(one.body_input for one in form.carried)]
        return all(len(dims_of(self.body.rows.types.get(name)) or ()) == 1 for name in names)

    @property
    def state_rank(self) -> int:
        """The rank of the states; of 3 axes, the first one is of size 1."""
        dims = dims_of(self.body.rows.types.get(self.body.form.carried[0].body_input)) or ()
        return 3 if len(dims) == 3 and dims[0] == 1 else self.rank - 1

    @property
    def rank(self) -> int:
        """The rank of the scanned tensor."""
        return 2 if self.flat else 3

    @property
    def scanned(self) -> Scanned:
        """The scanned input."""
        return self.body.form.scanned[0]

    @property
    def time(self) -> Place:
        """The axis whose size is the number of iterations."""
        return self.scanned.tensor, self.scanned.axis % self.rank

    @property
    def batches(self) -> list[Place]:
        """The axes whose size is the number of rows: of the states, then of what is scanned."""
        if self.flat:
            return []
        axis = self.state_rank - 2
        states: list[Place] = [(carried.initial, axis) for carried in self.body.form.carried]
        return [*states, (self.scanned.tensor, 1 if self.time[1] == 0 else 0), *self.others]

    def width(self, name: str, carried: Carried | None = None) -> int:
        """The width of the matrix that a body input gets.

        Raises:
            Refused: `shape-unknown` where it is unknown.
        """
        dims = dims_of(self.body.rows.types.get(name))
        rank = self.state_rank if carried else self.rank - 1
        if dims is not None and len(dims) != rank:
            what = f"{name!r} has {len(dims)} axes, where a cell has a batch of rows"
            raise self.body.site.refused("not-a-cell", what, name)
        if dims is not None and isinstance(dims[-1], int):
            return dims[-1]
        axis = self.rank - 1 if self.time[1] != self.rank - 1 else self.rank - 2
        place = (carried.initial, rank - 1) if carried else (self.scanned.tensor, axis)
        size = self._integers.size(*place)
        if dims is None or size is None or size.number is None:
            what = f"the sizes of {name!r} are unknown"
            raise self.body.site.refused("shape-unknown", what, name)
        return size.number

    @property
    def context(self) -> tuple[NodeProto, ...]:
        """The nodes from which sizes follow that no type declares."""
        site = self.body.site
        known = any(map(self._integers.is_made_of_others, scoping.free_names(site.node)))
        return context_of(site) if known else ()

    @property
    def rows(self) -> int | None:
        """The number of rows, where all that the loop reads is known to have the same."""
        if self.flat:
            return 1
        found = {self._known(place, position) for position, place in enumerate(self.batches)}
        (number,) = found if len(found) == 1 else (None,)
        return number

    def _known(self, place: Place, position: int) -> int | None:
        """A size that holds in every run; the body's declaration counts only without an outer
        one."""
        known = self._integers.size(*place)
        if known is not None and known.number is not None:
            return known.number
        declared = dims_of(self.body.site.type_of(place[0])) is not None
        if declared or place in self.others:
            return None
        name = self.body.form.body_inputs[position]
        *_, size, _ = dims_of(self.body.rows.types.get(name)) or (None, None)
        return size if isinstance(size, int) else None

    @property
    def apart(self) -> list[tuple[Place, Place]]:
        """Pairs of axes that must have the same size, but are not proven to.

        Raises:
            Refused: `not-a-cell` where two are proven to differ.
        """
        first, *others = self.batches or [self.time]
        pairs = [(first, place) for place in others] if self.rows is None else []
        return [pair for pair in pairs if not self._same(*pair)]

    def _same(self, place: Place, other: Place) -> bool:
        size, its = self._integers.size(*place), self._integers.size(*other)
        if size is None or its is None or (size - its).number is None:
            return False
        if (size - its).number:
            what = f"{place[0]!r} has {size} rows, and {other[0]!r} has {its}"
            raise self.body.site.refused("not-a-cell", what, place[0], other[0])
        return True

    @cached_property
    def _integers(self) -> Integers:
        return Integers(self.body.site)

    def conditions(self, author: Author, most: int | None) -> list[str]:
        """Return the conditions under which the operator equals the loop: names of scalar bools.

        An If around the loop that checks that there is something to scan does not count: on empty
        inputs, onnxruntime returns uninitialised states from an LSTM, and crashes in a GRU, and
        whoever tests the branch alone would run it on that. `most`: up to how many rows the
        operator is faster, None where that does not matter.
        """
        sizes = {place: _Size(author, place) for place in (self.time, *self.batches)}
        first, *_ = self.batches or [self.time]
        found = []
        if not self.body.trip_count.always_runs:
            found.append(author.op("Greater", sizes[self.time].name, author.int(0)))
        if self._may_be_none(self.rows):
            found.append(author.op("Greater", sizes[first].name, author.int(0)))
        if most is not None:
            found.append(author.op("LessOrEqual", sizes[first].name, author.int(most)))
        for place, other in self.apart:
            found.append(author.op("Equal", sizes[place].name, sizes[other].name))
        return found

    def _may_be_none(self, size: int | None) -> bool:
        assumed = self.body.site.assumes("non-empty")
        return not size and not (assumed and size is None)


@dataclass(frozen=True)
class _Size:
    """The size of an axis, written when it is first used."""

    author: Author
    place: Place

    @cached_property
    def name(self) -> str:
        return spelling.scalar_size(self.author, *self.place)
