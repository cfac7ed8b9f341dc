"""Proves all that is needed to raise a Loop to a Scan, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, NodeProto, TensorProto

from passes.analysis.bodies.body_types import BodyTypes, Change, body_types
from passes.analysis.bodies.iteration_reads import find_reads
from passes.analysis.integers.integers import Integers
from passes.analysis.sizes.made_up_sizes import without_made_up
from passes.analysis.sizes.whole_axes import cuts_of
from passes.analysis.trip_count.induction import inductions, integers_of
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.graph_index import OUTPUT, GraphIndex
from passes.ir.live import orphaned
from passes.ir.operators import op_of
from passes.ir.protos import copied, drop_at, replace_all
from passes.loops.form import Carried, LoopForm
from passes.rule import Site
from passes.rules.raise_loop.accumulators import Accumulator, find_accumulators
from passes.rules.raise_loop.places import OutputLayout, ReadRange, placed, window_of
from passes.types.value_types import Dim, Dims, dims_of, elem_type_of
from passes.writing.guards import state_of


def without_shape_reads(site: Site, form: LoopForm) -> LoopForm:
    """The loop, with the initial value of a buffer read where only its shape is needed.

    torch reads the row that it is about to write, for its shape.
    """
    integers = Integers(site, form.body)
    found: dict[int, str] = {}
    readers = form.index.readers
    for carried in form.carried:
        writer = form.index.producers.get(form.index.source(carried.body_output))
        if writer is None or op_of(writer) != "ScatterND" or writer.input[0] != carried.body_input:
            continue
        if integers.is_outer(carried.initial):
            found |= dict.fromkeys(
                _shape_reads(form.body, carried.body_input, readers, integers), carried.initial
            )
    if not found:
        return form
    body = copied(form.body)
    for position, initial in found.items():
        body.node[position].input[0] = initial
    return replace(form, body=body)


def _shape_reads(
    body: GraphProto, buffer: str, readers: dict[str, list[int]], integers: Integers
) -> list[int]:
    """The positions of nodes that read only the shape of a buffer, maybe of all of it by Slice."""
    found = []
    for position in readers.get(buffer, []):
        node = None if position == OUTPUT else body.node[position]
        if node is None or list(node.input).count(buffer) != 1 or node.input[0] != buffer:
            continue
        asks = readers.get(node.output[0], [])
        if op_of(node) == "Slice" and _is_whole(node, integers):
            inner = _shape_reads(body, node.output[0], readers, integers)
            found += [position, *inner] if sorted(inner) == sorted(asks) else []
        only_shape = all(
            reader != OUTPUT and op_of(body.node[reader]) == "Shape" for reader in asks
        )
        if op_of(node) == "Shape" or (op_of(node) == "Gather" and only_shape):
            found.append(position)
    return found


def _is_whole(node: NodeProto, integers: Integers) -> bool:
    cuts = cuts_of(node, integers.numbers)
    return cuts is not None and all(cut.is_whole for cut in cuts)


@dataclass(frozen=True)
class Raising:
    """A Loop that can become a Scan.

    `windows` are the reads that become scanned inputs, equal ones together. `droppable` are the
    carried values (body inputs) that may be unused once those reads are gone. `rows` are the
    layouts of the collected outputs.
    """

    site: Site
    form: LoopForm
    integers: Integers
    trips: TripCount
    types: BodyTypes
    windows: tuple[tuple[ReadRange, ...], ...]
    accumulators: tuple[Accumulator, ...]
    kept: tuple[Carried, ...]
    droppable: frozenset[str]
    rows: tuple[OutputLayout, ...]

    @property
    def non_empty(self) -> bool:
        """True if at least one iteration runs, proven or assumed."""
        return self.trips.always_runs

    def assumes(self, assumption: str) -> bool:
        """Return whether the user allows the rewrite to assume this."""
        return self.site.assumes(assumption)

    @classmethod
    def of(cls, site: Site) -> Raising:
        """Prove that a Loop can become a Scan.

        Raises:
            Refused: with what is missing.
        """
        form = without_shape_reads(site, LoopForm.from_node(site.node, site.opset))
        form, checked = without_state_guards(site, form)
        trips = TripCount(site, form)
        _refuse_uncounted(trips)
        integers = integers_of(site, form)
        windows = _windows(site, form, integers, trips)
        _check_squeezes(site, form, integers)
        types = body_types(
            site, form, [window.read for group in windows for window in group], checked
        )
        accumulators = find_accumulators(site, form, integers, types, trips)
        collecting = {accumulator.carried for accumulator in accumulators}
        kept = tuple(carried for carried in form.carried if carried not in collecting)
        droppable = _droppable(site, form, windows)
        for carried in kept:
            if carried.body_input not in droppable:
                check_carried(site, carried, types)
        for collected in form.collected:
            _element(site, types, collected.body_output)
        for accumulator in accumulators:
            _element(site, types, accumulator.element)
        rows = tuple(placed(site, collected.tensor) for collected in form.collected)
        return cls(
            site, form, integers, trips, types, windows, tuple(accumulators), kept, droppable, rows
        )


def _refuse_uncounted(trips: TripCount) -> None:
    """Refuse a loop whose trip count is not known before it runs.

    Raises:
        Refused: `condition` where the body computes when to end, `endless` where nothing ends
            it, `no-iteration` where it never runs.
    """
    if trips.ends_early:
        assert trips.form.condition is not None
        ends = trips.form.condition.body_output
        raise trips.site.refused(
            "condition",
            f"whether the loop continues is computed in its body as {ends!r}, so its trip count is "
            "not known before it runs",
            ends,
        )
    if trips.unlimited:
        raise trips.site.refused("endless", "the loop has no trip count and nothing ends it")
    if trips.size.number is not None and trips.size.number < 1:
        sentence = f"the trip count is {trips.size.number}: the body never runs"
        raise trips.site.refused("no-iteration", sentence)


def _windows(
    site: Site, form: LoopForm, integers: Integers, trips: TripCount
) -> tuple[tuple[ReadRange, ...], ...]:
    groups: dict[tuple[object, ...], list[ReadRange]] = {}
    for read in find_reads(site, form, integers, trips):
        window = window_of(site, integers, read, trips)
        if window is not None:
            groups.setdefault(read.key, []).append(window)
    return tuple(tuple(group) for group in groups.values())


def _check_squeezes(site: Site, form: LoopForm, integers: Integers) -> None:
    """Check that no Squeeze has an empty list of axes: onnxruntime then squeezes all axes, whatever
    the body declares, which a Loop accepts and a Scan does not."""
    for node in form.body.node:
        axes = node.input[1] if op_of(node) == "Squeeze" and len(node.input) > 1 else ""
        known = integers.constant_inside(axes) if axes else None
        if known is not None and not known.size:
            raise site.refused(
                "shape-unknown",
                f"runtimes differ in the shape of {node.output[0]!r}: the axes {axes!r} of the "
                "Squeeze are an empty list",
                node.output[0],
            )


def _droppable(
    site: Site, form: LoopForm, windows: Sequence[Sequence[ReadRange]]
) -> frozenset[str]:
    """Carried values that may go: counters, and tensors read only by the iteration number."""

    readers = site.graph.readers
    read = {window.read.tensor for group in windows for window in group}
    found = {
        induction.carried.body_input
        for induction in inductions(site, form)
        if not readers.get(induction.carried.final)
    }
    for name, carried in form.unchanged.items():
        if carried.initial in read or not elem_type_of(site.type_of(carried.initial)):
            found.add(name)
    return frozenset(found)


def check_carried(site: Site, carried: Carried, types: BodyTypes) -> None:
    """Check that a carried value is a tensor that keeps its shape."""
    known = site.type_of(carried.initial)
    if known is not None and known.WhichOneof("value") not in (None, "tensor_type"):
        raise site.refused(
            "not-a-tensor",
            f"{carried.body_input!r} is carried, but is not a tensor: a Scan carries only tensors",
            carried.body_input,
        )
    change: Change | None = types.changes.get(carried.body_input)
    if change is not None and change.known:
        raise site.refused(
            "shape-changes",
            f"{carried.body_input!r} has shape {_shown(change.before)} before an iteration and "
            f"{_shown(change.after)} after it: a Scan keeps the shapes of what it carries",
            carried.body_input,
        )
    if change is not None or types.dims(carried.body_input) is None:
        after = change.after if change is not None else None
        raise site.refused(
            "shape-unknown",
            f"it is not proven that {carried.body_input!r} keeps its shape: it is "
            f"{_shown(change.before if change else None)} before an iteration, {_shown(after)} "
            "after it",
            carried.body_input,
        )
    if not types.elem_type(carried.body_input):
        raise site.refused(
            "unknown-type",
            f"the element type of the carried {carried.body_input!r} is neither declared nor "
            "inferred",
            carried.body_input,
        )


def _element(site: Site, types: BodyTypes, name: str) -> None:
    """Check that the type and the rank of a collected element are known."""
    if types.elem_type(name) in (0, TensorProto.UNDEFINED):
        what = f"the element type of the collected {name!r} is neither declared nor inferred"
        raise site.refused("unknown-type", what, name)
    if types.dims(name) is None:
        what = f"the rank of the collected {name!r} is neither declared nor inferred"
        raise site.refused("unknown-rank", what, name)


def _shown(dims: Sequence[Dim] | None) -> str:
    """A shape, for messages."""
    if dims is None:
        return "of an unknown rank"
    shown = ("?" if dim is None else str(dim) for dim in without_made_up(tuple(dims)))
    return "[" + ", ".join(shown) + "]"


def without_state_guards(site: Site, form: LoopForm) -> tuple[LoopForm, frozenset[str]]:
    """The loop without the guards that `same_shape` and `same_sizes` wrote.

    Also returns the carried values (body inputs) that had one: a Scan itself requires
    that they have the same shape in each iteration (operator document of Scan 9).
    """
    constant = Integers(site, form.body).constant_inside

    def dims(name: str) -> Dims | None:
        return dims_of(site.body_type_of("body", name))

    bare: dict[str, str] = {}
    for state in form.carried:
        found = state_of(
            state.body_output, state.body_input, form.index.producers.get, constant, dims
        )
        if found is not None:
            bare[state.body_output] = found
    if not bare:
        return form, frozenset()
    guarded_inputs = {state.body_input for state in form.carried if state.body_output in bare}
    carried = [
        replace(state, body_output=bare.get(state.body_output, state.body_output))
        for state in form.carried
    ]
    body = copied(form.body)
    for position, state in enumerate(form.carried, start=1):  # behind the condition
        body.output[position].name = bare.get(state.body_output, state.body_output)
    _drop_unread(body, bare)
    return replace(form, body=body, carried=tuple(carried)), frozenset(guarded_inputs)


def _drop_unread(body: GraphProto, names: Iterable[str]) -> None:
    """Drop the nodes that only computed the named values, and the constants that they read."""
    index = GraphIndex(body)
    gone = orphaned(index, names)
    unread = {name for name, found in index.readers.items() if gone.issuperset(found)}
    drop_at(body.node, gone)
    replace_all(body.initializer, [one for one in body.initializer if one.name not in unread])
