"""Carried values that no iteration changes, which the body captures, or that it only writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TensorProto

from passes.analysis.bodies.nested_graphs import collects_strings
from passes.ir import scope as scoping
from passes.ir.boundary import return_copy
from passes.ir.graph_index import OUTPUT, GraphIndex
from passes.ir.live import live
from passes.ir.operators import op_of
from passes.ir.protos import copied, drop_at, replace_all
from passes.ir.site import Site
from passes.ir.versions import IDENTITY_OF_OPTIONALS, LOOP_MAY_CARRY_NOTHING
from passes.loops.form import Carried, Kind, LoopForm
from passes.types.value_types import elem_type_of


@dataclass(frozen=True)
class Captured:
    """A copy of a loop's node whose body captures what it carried unchanged.

    `dropped` are the carried values that are gone, `captured` those whose readers read the initial
    value now, and `origin` maps names in the body that had to change to the original ones.
    """

    node: NodeProto
    dropped: tuple[Carried, ...] = ()
    captured: tuple[Carried, ...] = ()
    origin: dict[str, str] = field(default_factory=dict)

    @property
    def finals(self) -> list[NodeProto]:
        """The nodes that define the outputs that are gone."""
        return [
            NodeProto(op_type="Identity", input=[carried.initial], output=[carried.final])
            for carried in self.dropped
            if carried.final
        ]


def captured_state(site: Site) -> Captured:
    """Let the body capture the values that it carries unchanged.

    One carried value stays where the loop would be left without outputs, or where the opset
    requires one. A Scan-8 is left alone: its rows are not outer values.
    """
    node = copied(site.node)
    form = LoopForm.from_node(node, site.opset)
    same = _unchanged(site, form)
    if form.kind is Kind.SCAN_8 or not same:
        return Captured(node)
    origin = _uncover(site, form, {carried.initial for carried in same})
    form = LoopForm.from_node(node, site.opset)
    same = _unchanged(site, form)
    dropped = same[1:] if _needs_one(site, form, len(same)) else same
    read = [carried for carried in same if carried in dropped or _is_read(form.body, carried)]
    _return_as_own(site, form, dropped)
    for carried in same:
        if carried not in dropped:
            _read_outside(form.body, carried)
    _drop(node, form, dropped)
    return Captured(node, tuple(dropped), tuple(read), origin)


def _unchanged(site: Site, form: LoopForm) -> list[Carried]:
    """Return the unchanged values that an Identity can copy before and after the loop."""
    strings = collects_strings(site, LoopForm.from_node(site.node, site.opset))
    found = []
    for carried in form.unchanged.values():
        elem_type = elem_type_of(site.type_of(carried.initial))
        fits = site.opset >= IDENTITY_OF_OPTIONALS or bool(elem_type)
        if carried.initial and fits and not (strings and elem_type == TensorProto.STRING):
            found.append(carried)
    return found


def _uncover(site: Site, form: LoopForm, initials: set[str]) -> dict[str, str]:
    """Rename what the body, at any depth, defines under a name of these outer values."""
    owners = scoping.graphs_below(form.body)
    if all(initials.isdisjoint(scoping.defined(owner)) for owner in owners):
        return {}
    origin: dict[str, str] = {}

    def renamed(name: str) -> str:
        if name not in initials:
            return name
        fresh = site.fresh(name)
        origin[fresh] = name
        return fresh

    scoping.rename_all(form.body, renamed)
    return origin


def _needs_one(site: Site, form: LoopForm, count: int) -> bool:
    if count < len(form.carried):
        return False
    old = form.kind is Kind.LOOP and site.opset < LOOP_MAY_CARRY_NOTHING
    return old or not form.collected


def _chain(body: GraphProto, carried: Carried) -> set[str]:
    """The values between the input and the output, the output included."""
    producers = GraphIndex(body).producers
    chain, name = set(), carried.body_output
    while name != carried.body_input:
        chain.add(name)
        name = producers[name].input[0]
    return chain


def _is_read(body: GraphProto, carried: Carried) -> bool:
    chain = _chain(body, carried)
    nodes = (node for node in body.node if chain.isdisjoint(node.output))
    return any(carried.body_input in scoping.free_names(node) for node in nodes)


def _read_outside(body: GraphProto, carried: Carried) -> None:
    chain = _chain(body, carried)
    for node in body.node:
        if chain.isdisjoint(node.output) and carried.body_input in scoping.free_names(node):
            scoping.rename_free(node, {carried.body_input: carried.initial})


def _return_as_own(site: Site, form: LoopForm, dropped: Sequence[Carried]) -> None:
    """Add Identities for other outputs of the body that return an input that is removed."""
    gone = {carried.body_input for carried in dropped}
    last = _positions(form, dropped)
    for position, value in enumerate(form.body.output):
        if value.name in gone and position not in last:
            return_copy(form.body, value, site.fresh(f"{value.name}/out"))


def _positions(form: LoopForm, dropped: Sequence[Carried]) -> set[int]:
    """The positions of their outputs in the body."""
    first = 0 if form.condition is None else 1
    return {position for position, carried in enumerate(form.carried, first) if carried in dropped}


def _drop(node: NodeProto, form: LoopForm, dropped: Sequence[Carried]) -> None:
    """Remove carried values from the node and its body, which reads the outer ones."""
    if not dropped:
        return
    body, first = form.body, 0 if form.condition is None else 1
    outputs = _positions(form, dropped)
    ends = {name for carried in dropped for name in _chain(body, carried)}
    drop_at(body.output, outputs)
    inputs = {carried.body_input for carried in dropped}
    replace_all(body.input, [value for value in body.input if value.name not in inputs])
    kept, _ = live(
        body.node,
        scoping.output_names(body),
        scoping.free_names,
        stays=lambda inner: ends.isdisjoint(inner.output),
    )
    replace_all(body.node, kept)
    scoping.rename_captures(body, {carried.body_input: carried.initial for carried in dropped})
    heads = 2 if form.condition is not None else 0
    drop_at(node.input, {position - first + heads for position in outputs})
    drop_at(node.output, {position - first for position in outputs})


def only_written(form: LoopForm, carried: Carried) -> frozenset[int]:
    """The positions of the node that computes the next value, and of Identities that pass it on.

    Empty if anything else in the body reads the value, before that node or after it.
    """
    index, nodes = form.index, form.body.node
    position = index.positions.get(index.source(carried.body_output))
    if position is None or index.readers.get(carried.body_input) != [position]:
        return frozenset()
    reads, returned = nodes[position].input, scoping.output_names(form.body)
    if list(reads).count(carried.body_input) != 1 or returned.count(carried.body_output) != 1:
        return frozenset()
    found = [position]
    for at in found:  # which grows
        name = nodes[at].output[0]
        ends = {OUTPUT} if name == carried.body_output else set[int]()
        readers = set(index.readers.get(name, ())) - ends
        if any(reader == OUTPUT or op_of(nodes[reader]) != "Identity" for reader in readers):
            return frozenset()
        found += readers
    return frozenset(found)
