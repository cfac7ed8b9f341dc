"""The places of a Scan: the part of a tensor that all iterations read, with the proof that they
stay inside it, and the layout of an output, into which operators after the loop are folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import NodeProto

from passes.analysis.bodies.iteration_reads import Read
from passes.analysis.integers.affine import ITERATION, Affine
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.attributes import attributes
from passes.ir.graph_index import OUTPUT
from passes.ir.operators import op_of
from passes.ir.versions import SLICE_HAS_INPUTS
from passes.rule import Refused, Site


@dataclass(frozen=True)
class ReadRange:
    """The slices that all iterations read: from `first`, as many as there are iterations.

    `whole`: they are the whole tensor, of size `extent`. `guarded`: whether there are enough is
    checked at run time.
    """

    read: Read
    first: int
    extent: Affine
    whole: bool
    guarded: bool


def window_of(site: Site, integers: Integers, read: Read, trips: TripCount) -> ReadRange | None:
    """Prove that a read stays inside its tensor; None where its start is known only at run time,
    or where it is better left in the body.

    Raises:
        Refused: `negative-read` where an index may count from the end, `out-of-range` where
            the last iteration reads past the end, `may-exceed` where it may and would not fail.
    """
    # what is read behind a first row, as Concat (first, x[:-1]), has as many rows as x has some
    running = replace(integers, positive=trips.size)
    extent = running.size(read.tensor, read.axis)
    assert extent is not None
    first = read.base - (trips.size - 1) if read.backwards else read.base
    sizes = {atom for atom, _ in (extent + trips.size).terms}
    if any(atom.negative and atom not in sizes for atom, _ in read.base.terms):
        return None  # an offset known only at run time
    shown = f"{read.base} - i" if read.backwards else str(read.base + Affine.of(ITERATION))
    what = f"{read.tensor!r} is read at {shown} on axis {read.axis}, of size {extent}"
    left = extent - first - trips.size
    slack = trips.vanishes(left)
    refused: tuple[str, str] | None = None
    if first.least < 0:
        refused = (
            "negative-read",
            f"{what}; it is not proven that this is never negative in {trips.size} iterations, "
            "and a negative index counts from the end",
        )
    elif slack.most < 0 or (extent - first).most < 1:
        refused = (
            "out-of-range",
            f"{what}, in {trips.size} iterations: the last ones read past its end",
        )
    elif read.clamps and slack.least < 0:
        refused = (
            "may-exceed",
            f"{what}; it is not proven that {trips.size} iterations stay inside, and a Slice is "
            "empty outside where a Scan would fail",
        )
    if refused is not None:
        if read.may_stay:
            return None
        raise Refused(*refused, [site.path, read.tensor, *read.results])
    if first.number is None:
        return None
    whole = first.number == 0 and slack.number == 0
    return ReadRange(read, first.number, extent, whole, slack.least < 0)


_BEYOND = -(1 << 31)  # an end before the start of every axis


@dataclass(frozen=True)
class OutputLayout:
    """A collected output: its name, axis and order. `covered` are the nodes that arranged it so."""

    name: str
    axis: int = 0
    reversed: bool = False
    covered: tuple[int, ...] = ()


def placed(site: Site, name: str, axis: int = 0, backwards: bool = False) -> OutputLayout:
    """Follow a collected output through reversals and transpositions.

    Each must be the only reader of its input.
    """
    layout = OutputLayout(name, axis, backwards)
    while True:
        readers: Sequence[int] = site.graph.readers.get(layout.name, ()) if layout.name else ()
        if len(readers) != 1 or readers[0] == OUTPUT:
            return layout
        node = site.scope.owner.node[readers[0]]
        moved = _moved(site, layout, node)
        if moved is None:
            return layout
        layout = replace(moved, name=node.output[0], covered=(*layout.covered, readers[0]))


def _moved(site: Site, layout: OutputLayout, node: NodeProto) -> OutputLayout | None:
    if node.input[:1] != [layout.name]:
        return None
    if op_of(node) == "Transpose":
        perm = attributes(node, "perm") or []
        others = [axis for axis in perm if axis != layout.axis]
        if len(others) == len(perm) or others != sorted(others):
            return None
        return replace(layout, axis=perm.index(layout.axis))
    is_slice = op_of(node) == "Slice" and site.opset >= SLICE_HAS_INPUTS
    if is_slice and len(node.input) == 5 and _reverses(site, node, layout.axis):
        return replace(layout, reversed=not layout.reversed)
    return None


def _reverses(site: Site, node: NodeProto, axis: int) -> bool:
    """Return whether a Slice reverses one axis."""
    values = [site.constant(name) for name in node.input[1:]]
    numbers = [value.ravel().tolist() for value in values if value is not None and value.size == 1]
    if len(numbers) != 4:
        return False
    (start,), (end,), (along,), (step,) = numbers
    return bool(start == -1 and end <= _BEYOND and along == axis and step == -1)
