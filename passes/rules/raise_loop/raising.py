"""What raising a Loop to a Scan needs to know: every proof, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, TensorProto

from passes.analysis.bodies.body_types import BodyTypes, Change, body_types
from passes.analysis.bodies.iteration_reads import find_reads
from passes.analysis.bodies.readers import OUTPUT, readers_in
from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.made_up_sizes import without_made_up
from passes.analysis.trip_count.induction import inductions, integers_of, unchanged
from passes.analysis.trip_count.trips import Trips, trips_of
from passes.ir.operators import op_of
from passes.loops.form import Carried, LoopForm
from passes.rule import Refused, Site
from passes.rules.raise_loop.accumulators import Accumulator, find_accumulators
from passes.rules.raise_loop.output_layout import OutputLayout, placed
from passes.rules.raise_loop.read_range import ReadRange, window_of
from passes.rules.raise_loop.state_guards import without_state_guards
from passes.types.value_types import Dim, elem_type_of

_WRITES = ("ScatterElements", "ScatterND")


def without_shape_reads(site: Site, form: LoopForm) -> LoopForm:
    """The loop, its buffers asked for their shape before anything is written to them.

    torch reads the row that it is about to write, for its shape.
    """
    integers = Integers(site, form.body)
    found: dict[int, str] = {}
    readers = readers_in(form.body)
    makers = {name: node for node in form.body.node for name in node.output}
    for one in form.carried:
        writer = makers.get(one.body_output)
        while writer is not None and op_of(writer) == "Identity":
            writer = makers.get(writer.input[0])
        writes = writer is not None and op_of(writer) in _WRITES
        if writer is None or not writes or writer.input[0] != one.body_input:
            continue
        if integers.is_outer(one.initial):
            found |= dict.fromkeys(_shape_reads(form.body, one, readers), one.initial)
    if not found:
        return form
    body = GraphProto()
    body.CopyFrom(form.body)
    for position, initial in found.items():
        body.node[position].input[0] = initial
    return replace(form, body=body)


def _shape_reads(body: GraphProto, one: Carried, readers: dict[str, list[int]]) -> list[int]:
    """The positions of nodes that read no values of a buffer."""
    found = []
    for position in readers.get(one.body_input, []):
        node = None if position == OUTPUT else body.node[position]
        if node is None or list(node.input).count(one.body_input) != 1:
            continue
        if node.input[0] != one.body_input:
            continue
        asks = readers.get(node.output[0], [])
        only_shape = all(at != OUTPUT and op_of(body.node[at]) == "Shape" for at in asks)
        if op_of(node) == "Shape" or (op_of(node) == "Gather" and only_shape):
            found.append(position)
    return found


@dataclass(frozen=True)
class Raising:
    """A Loop that a Scan can do.

    `windows` are the reads that become scanned inputs, equal ones together. `droppable` are the
    carried values (body inputs) that nobody may need once those reads are gone. `rows` are the
    collected outputs with what happens to them behind the loop.
    """

    site: Site
    form: LoopForm
    integers: Integers
    trips: Trips
    types: BodyTypes
    windows: tuple[tuple[ReadRange, ...], ...]
    accumulators: tuple[Accumulator, ...]
    kept: tuple[Carried, ...]
    droppable: frozenset[str]
    rows: tuple[OutputLayout, ...]

    @property
    def non_empty(self) -> bool:
        """Whether at least one iteration runs, proven or assumed."""
        if self.trips.at_least_one:
            return True
        return self.assumes("non-empty") and self.trips.at_least_one_if_non_empty

    def assumes(self, assumption: str) -> bool:
        """Whether the user lets the rewrite take this for granted."""
        return self.site.assumes(assumption)

    @classmethod
    def of(cls, site: Site) -> Raising:
        """Prove that a Scan can do what a Loop does.

        Raises:
            Refused: with what is missing.
        """
        form = without_shape_reads(site, LoopForm.from_node(site.node, site.opset))
        form, checked = without_state_guards(site, form)
        trips = trips_of(site, form)
        integers = integers_of(site, form)
        windows = _windows(site, form, integers, trips)
        _check_squeezes(site, form, integers)
        types = body_types(site, form, [one.read for group in windows for one in group], checked)
        accumulators = find_accumulators(site, form, integers, types, trips)
        collecting = {one.carried for one in accumulators}
        kept = tuple(one for one in form.carried if one not in collecting)
        droppable = _droppable(site, form, windows)
        for one in kept:
            if one.body_input not in droppable:
                check_carried(site, one, types)
        for collected in form.collected:
            _element(site, types, collected.body_output)
        for accumulator in accumulators:
            _element(site, types, accumulator.element)
        rows = tuple(placed(site, one.tensor) for one in form.collected)
        return cls(
            site, form, integers, trips, types, windows, tuple(accumulators), kept, droppable, rows
        )


def _windows(
    site: Site, form: LoopForm, integers: Integers, trips: Trips
) -> tuple[tuple[ReadRange, ...], ...]:
    groups: dict[tuple[object, ...], list[ReadRange]] = {}
    for read in find_reads(site, form, integers, trips):
        window = window_of(site, integers, read, trips)
        if window is not None:
            groups.setdefault(read.key, []).append(window)
    return tuple(tuple(group) for group in groups.values())


def _check_squeezes(site: Site, form: LoopForm, integers: Integers) -> None:
    """See that no Squeeze has an empty list of axes: onnxruntime then squeezes all, whatever the
    body declares, which a Loop lets pass and a Scan does not."""
    for node in form.body.node:
        axes = node.input[1] if op_of(node) == "Squeeze" and len(node.input) > 1 else ""
        known = integers.constant_inside(axes) if axes else None
        if known is not None and not known.size:
            raise Refused(
                "shape-unknown",
                f"runtimes differ in the shape of {node.output[0]!r}: the axes {axes!r} of the "
                "Squeeze are an empty list",
                [site.path, node.output[0]],
            )


def _droppable(
    site: Site, form: LoopForm, windows: Sequence[Sequence[ReadRange]]
) -> frozenset[str]:
    """Carried values that may go: counters, and what the body only read by the iteration."""
    from passes.analysis.bodies.readers import readers_around

    readers = readers_around(site)
    read = {window.read.tensor for group in windows for window in group}
    same = unchanged(form)
    found = {
        one.carried.body_input
        for one in inductions(site, form)
        if not readers.get(one.carried.final)
    }
    for name, one in same.items():
        if one.initial in read or not elem_type_of(site.type_of(one.initial)):
            found.add(name)
    return frozenset(found)


def check_carried(site: Site, one: Carried, types: BodyTypes) -> None:
    """See that a carried value is a tensor that keeps its shape."""
    known = site.type_of(one.initial)
    if known is not None and known.WhichOneof("value") not in (None, "tensor_type"):
        raise Refused(
            "not-a-tensor",
            f"{one.body_input!r} is carried and no tensor: a Scan carries tensors only",
            [site.path, one.body_input],
        )
    change: Change | None = types.changes.get(one.body_input)
    if change is not None and change.known:
        raise Refused(
            "shape-changes",
            f"{one.body_input!r} has shape {_shown(change.before)} before an iteration and "
            f"{_shown(change.after)} after it: a Scan keeps the shapes of what it carries",
            [site.path, one.body_input],
        )
    if change is not None or types.dims(one.body_input) is None:
        after = change.after if change is not None else None
        raise Refused(
            "shape-unknown",
            f"that {one.body_input!r} keeps its shape is not proven: it is "
            f"{_shown(change.before if change else None)} before an iteration, {_shown(after)} "
            "after it",
            [site.path, one.body_input],
        )
    if not types.elem_type(one.body_input):
        raise Refused(
            "unknown-type",
            f"the element type of the carried {one.body_input!r} is neither declared nor inferred",
            [site.path, one.body_input],
        )


def _element(site: Site, types: BodyTypes, name: str) -> None:
    """See that type and rank of a collected element are known."""
    if types.elem_type(name) in (0, TensorProto.UNDEFINED):
        raise Refused(
            "unknown-type",
            f"the element type of the collected {name!r} is neither declared nor inferred",
            [site.path, name],
        )
    if types.dims(name) is None:
        raise Refused(
            "unknown-rank",
            f"the rank of the collected {name!r} is neither declared nor inferred",
            [site.path, name],
        )


def _shown(dims: Sequence[Dim] | None) -> str:
    """A shape for people."""
    if dims is None:
        return "of an unknown rank"
    shown = ("?" if dim is None else str(dim) for dim in without_made_up(tuple(dims)))
    return "[" + ", ".join(shown) + "]"
