"""Carried values that no iteration changes: the body reads what the loop was given instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from onnx import GraphProto, NodeProto, TensorProto

from passes.analysis.bodies.nested_graphs import collects_strings
from passes.analysis.trip_count.induction import unchanged
from passes.ir import scope as scoping
from passes.ir.repeated import replace_all
from passes.ir.versions import LOOP_MAY_CARRY_NOTHING
from passes.loops.form import Carried, Kind, LoopForm
from passes.rule import Site
from passes.types.value_types import elem_type_of
from passes.writing.body_outputs import IDENTITY_OF_OPTIONALS


@dataclass(frozen=True)
class Captured:
    """A copy of a loop's node whose body captures what it carried unchanged.

    `dropped` are the carried values that are gone, `captured` all whose readers read the initial
    value now, and `origin` says what values of the body that had to be renamed were called.
    """

    node: NodeProto
    dropped: tuple[Carried, ...] = ()
    captured: tuple[Carried, ...] = ()
    origin: dict[str, str] = field(default_factory=dict)

    @property
    def finals(self) -> list[NodeProto]:
        """What defines the outputs that are gone."""
        return [
            NodeProto(op_type="Identity", input=[one.initial], output=[one.final])
            for one in self.dropped
            if one.final
        ]


def captured_state(site: Site) -> Captured:
    """Let the body capture what it carries unchanged.

    One carried value stays where the loop would be left without outputs, or where the opset
    wants one. Rows of a Scan-8 are no outer values.
    """
    node = NodeProto()
    node.CopyFrom(site.node)
    form = LoopForm.from_node(node, site.opset)
    same = _unchanged(site, form)
    if form.kind is Kind.SCAN_8 or not same:
        return Captured(node)
    origin = _uncover(site, form, {one.initial for one in same})
    form = LoopForm.from_node(node, site.opset)
    same = _unchanged(site, form)
    dropped = same[1:] if _needs_one(site, form, len(same)) else same
    read = [one for one in same if one in dropped or _is_read(form.body, one)]
    _return_as_own(site, form, dropped)
    for one in same:
        if one not in dropped:
            _read_outside(form.body, one)
    _drop(node, form, dropped)
    return Captured(node, tuple(dropped), tuple(read), origin)


def _unchanged(site: Site, form: LoopForm) -> list[Carried]:
    """Those that an Identity can hand on in front of and behind the loop."""
    strings = collects_strings(site, LoopForm.from_node(site.node, site.opset))
    found = []
    for one in unchanged(form).values():
        elem_type = elem_type_of(site.type_of(one.initial))
        fits = site.opset >= IDENTITY_OF_OPTIONALS or bool(elem_type)
        if one.initial and fits and not (strings and elem_type == TensorProto.STRING):
            found.append(one)
    return found


def _uncover(site: Site, form: LoopForm, initials: set[str]) -> dict[str, str]:
    """Rename what the body, at any depth, calls as one of these outer values is called."""
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


def _chain(body: GraphProto, one: Carried) -> set[str]:
    """The values between the input and the output, the output included."""
    makers = {name: node for node in body.node for name in node.output}
    chain, name = set(), one.body_output
    while name != one.body_input:
        chain.add(name)
        name = makers[name].input[0]
    return chain


def _is_read(body: GraphProto, one: Carried) -> bool:
    chain = _chain(body, one)
    nodes = (node for node in body.node if chain.isdisjoint(node.output))
    return any(one.body_input in scoping.free_names(node) for node in nodes)


def _read_outside(body: GraphProto, one: Carried) -> None:
    chain = _chain(body, one)
    for node in body.node:
        if chain.isdisjoint(node.output) and one.body_input in scoping.free_names(node):
            scoping.rename_free(node, {one.body_input: one.initial})


def _return_as_own(site: Site, form: LoopForm, dropped: Sequence[Carried]) -> None:
    """Nodes for other outputs of the body that are one of its inputs that go."""
    gone = {one.body_input for one in dropped}
    last = _positions(form, dropped)
    for position, value in enumerate(form.body.output):
        if value.name in gone and position not in last:
            own = site.fresh(f"{value.name}/out")
            form.body.node.append(NodeProto(op_type="Identity", input=[value.name], output=[own]))
            value.name = own


def _positions(form: LoopForm, dropped: Sequence[Carried]) -> set[int]:
    """The positions of their outputs in the body."""
    first = 0 if form.condition is None else 1
    return {at for at, one in enumerate(form.carried, first) if one in dropped}


def _drop(node: NodeProto, form: LoopForm, dropped: Sequence[Carried]) -> None:
    """Take carried values out of the node and its body, which reads the outer ones."""
    if not dropped:
        return
    body, first = form.body, 0 if form.condition is None else 1
    outputs = _positions(form, dropped)
    ends = {name for one in dropped for name in _chain(body, one)}
    replace_all(body.output, [one for at, one in enumerate(body.output) if at not in outputs])
    inputs = {one.body_input for one in dropped}
    replace_all(body.input, [one for one in body.input if one.name not in inputs])
    read = set(scoping.output_names(body))
    kept = []
    for inner in reversed(body.node):
        if read.isdisjoint(inner.output) and not ends.isdisjoint(inner.output):
            continue
        read.update(scoping.free_names(inner))
        kept.append(inner)
    replace_all(body.node, reversed(kept))
    scoping.rename_captures(body, {one.body_input: one.initial for one in dropped})
    heads = 2 if form.condition is not None else 0
    fed = {at - first + heads for at in outputs}
    replace_all(node.input, [name for at, name in enumerate(node.input) if at not in fed])
    gone = {at - first for at in outputs}
    replace_all(node.output, [name for at, name in enumerate(node.output) if at not in gone])
