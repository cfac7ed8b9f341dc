"""Buffers that a loop carries and writes row by row, from end to end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from onnx import NodeProto

from passes.analysis.bodies.body_types import BodyTypes
from passes.analysis.integers.affine import ITERATION, ONE, Affine, single_of
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.attributes import text
from passes.ir.operators import op_of
from passes.loops.form import Carried, LoopForm
from passes.rule import Site
from passes.rules.raise_loop.index_grids import IndexGrids
from passes.rules.raise_loop.index_grids import Shape as Sizes


@dataclass(frozen=True)
class Written:
    """The write of a node to a buffer: `element` as row `row` on an axis; it `stacks` if it lacks
    the axis of the rows.

    `settled` are values that only locate it, and are computed without a failure.
    """

    element: str
    row: Affine
    stacks: bool
    axis: int = 0
    settled: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Buffers:
    """Reads the nodes that write to the buffers of one loop."""

    site: Site
    form: LoopForm
    integers: Integers
    types: BodyTypes
    trips: TripCount

    @cached_property
    def _grids(self) -> IndexGrids:
        return IndexGrids(self.integers, self.types)

    def written(self, carried: Carried, node: NodeProto) -> Written | None:
        """Return the write of a ScatterND to a carried buffer; None if it is none."""
        if node.input[0] != carried.body_input or text(node, "reduction", "none") != "none":
            return None
        update, buffer = self.types.dims(node.input[2]), self.types.dims(carried.body_input)
        row = self._index(node.input[1])
        if row is None:
            return self._by_grid(carried, node)
        if update is None or buffer is None or len(update) not in (len(buffer) - 1, len(buffer)):
            return None
        return Written(node.input[2], row, len(update) == len(buffer) - 1)

    def _by_grid(self, carried: Carried, node: NodeProto) -> Written | None:
        """Return the write by a grid of indices, if all sizes are proven to be those of a row."""
        grids = self._grids
        buffer = grids.reading.shape(carried.initial)
        selected = None if buffer is None else grids.selected(node.input[1], buffer)
        if buffer is None or selected is None:
            return None
        places = (*selected.shape, *buffer[selected.columns :])
        if grids.reading.shape(node.input[2]) != places:
            return None
        axis, row = selected.axis, (*buffer[: selected.axis], *buffer[selected.axis + 1 :])
        passed = self._without_moves(node.input[2], row)
        if not passed and places != (*row[:axis], ONE, *row[axis:]):
            return None
        element = passed[-1] if passed else node.input[2]
        settled = frozenset((*grids.followed, *passed[:-1], node.input[1]))
        return Written(element, selected.row, bool(passed), axis, settled)

    def _without_moves(self, name: str, row: Sizes) -> list[str]:
        """The values from an update to that of the shape of a row which it is, in other shapes."""
        passed, upto = [name], 0
        while True:
            is_row = self._grids.reading.shape(name) == row
            upto = len(passed) if is_row else upto
            node = self.integers.source(name) if self.integers.is_own(name) else None
            moves = node is not None and (
                op_of(node) in ("Identity", "Unsqueeze")
                or (op_of(node) == "Reshape" and self._grids.fits(node))
            )
            if node is None or not (moves or (is_row and op_of(node) == "Expand")):
                return passed[:upto]
            expands = op_of(node) == "Expand"
            name = node.input[0]
            if expands and self._grids.reading.shape(name) != row:
                return passed[:upto]
            passed.append(name)

    def _row(self, name: str) -> Affine | None:
        """A scalar integer that depends on the iteration number."""
        found = single_of(self.integers.inside(name))
        return found if found is not None and found.coefficient(ITERATION) else None

    def _index(self, name: str) -> Affine | None:
        """The row that the indices [i] or [[i]] of a ScatterND select."""
        row, node = self._row(name), self.integers.source(name)
        while row is None and node is not None and op_of(node) in ("Unsqueeze", "Reshape"):
            if self.types.dims(node.output[0]) not in ((1,), (1, 1)):
                return None
            row, node = self._row(node.input[0]), self.integers.source(node.input[0])
        return row

    def filled(self, carried: Carried, written: Written) -> bool:
        """Return whether the rows of a buffer are written in reverse; each is written once.

        Raises:
            Refused: `element-shape` where it is not proven that a row is written, `not-filled`
                where it is not proven that all rows are.
        """
        if not written.settled:
            self._is_row(carried, written.element)
        size = self.integers.size(carried.initial, written.axis)
        slope, base = written.row.coefficient(ITERATION), written.row.without(ITERATION)
        first = base if slope == 1 else base - (self.trips.size - 1)
        fits = size is not None and (size - self.trips.size).number == 0
        if slope not in (1, -1) or first.number != 0 or not fits:
            raise self.site.refused(
                "not-filled",
                f"{carried.body_input!r} is written at {written.row} in {self.trips.size} "
                f"iterations; it is not proven that this fills it, {size} rows, from end to end",
                carried.body_input,
            )
        return slope == -1

    def _is_row(self, carried: Carried, element: str) -> None:
        """Check that an element is one row of the buffer that it is written to."""
        dims = self.types.dims(element) or ()
        buffer = self.types.dims(carried.body_input) or ()
        row = dims[len(dims) - len(buffer) + 1 :]
        open_dims = {dim for dim in buffer[1:] if not isinstance(dim, int)}
        one_row = len(dims) < len(buffer) or dims[0] == 1
        if row != buffer[1:] or not one_row or not open_dims <= self.types.invariant:
            what = f"{element!r} is not proven to be one row of {carried.body_input!r}"
            raise self.site.refused("element-shape", what, element)
