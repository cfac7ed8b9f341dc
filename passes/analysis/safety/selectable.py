"""Whether iterations may run although the loop has ended, their results not taken."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

import numpy as np
from onnx import NodeProto, TypeProto

from passes.analysis.bodies.body_types import may_change
from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.integers.folding import Array
from passes.analysis.safety.shape_checks import Reading
from passes.analysis.safety.shapes_fit import fits
from passes.analysis.safety.speculation import SPECULATABLE, speculatable
from passes.analysis.trip_count import facts
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.loops.form import LoopForm
from passes.rule import Refused, Site
from passes.types.value_types import elem_type_of, has_elements

#: Ops that may fail on a value beside itself.
_SHAPED = frozenset({"AveragePool", "Conv", "Flatten", "Gemm", "LpPool", "MatMul", "MaxPool"})
#: Ops that fail only on nothing.
_OF_SOMETHING = ("ArgMax", "ArgMin", "ReduceMax", "ReduceMin")


def objection(site: Site, form: LoopForm) -> Refused | None:
    """Why the body of a Loop may not run where the loop has ended, None where it may."""
    changing = _changing(site, form)
    for one in form.carried:
        known = site.body_type_of("body", one.body_input)
        if not elem_type_of(known) or one.body_input in changing:
            return _because(f"{one.body_input!r} may change its shape", site, one.body_input)
    types = _types(site, form)
    fixed = [name for name in form.captured if site.constant(name) is not None]
    fixed += [one.name for one in form.body.initializer]
    fixed += [node.output[0] for node in form.body.node if op_of(node) == "Constant"]
    found = speculatable(form.body, fixed, types)
    value = constants_in_body(site)
    culprits = [
        node
        for node in found
        if not _reduces_something(node, types, fixed) and not _divides_by_number(node, value)
    ]
    if not culprits and not starts_always(site, form):
        level = NestedGraph.of(site, form.body, "body")
        culprits = [node for node in form.body.node if not _fits_always(level, node)]
    if not culprits:
        return None
    ops = ", ".join(sorted({op_of(one) for one in culprits}))
    names = (name for one in culprits for name in one.output if name)
    return _because(f"{ops} may fail where the loop has ended", site, *names)


def _changing(site: Site, form: LoopForm) -> Set[str]:
    """The carried values that may change their shape: symbols are a proof if inputs are valid."""
    trusted = site.assumes("valid-inputs")
    kept = facts.keeps_shape(site, form)
    changing = {name for name, stays in kept.items() if not stays}
    if trusted or all(facts.keeps_shape(site, form, symbols=False).values()):
        return changing
    return changing | may_change(site, form)


def starts_always(site: Site, form: LoopForm) -> bool:
    """Whether the first iteration always takes place, so that the sizes of what it reads fit."""
    told = [form.trip_count, form.condition.initial if form.condition else ""]
    values = [site.constant(name) for name in told if name]
    return all(value is not None and value.size == 1 and value.item() > 0 for value in values)


def _because(why: str, site: Site, *culprits: str) -> Refused:
    return Refused("not-speculatable", why, [site.path, *culprits])


def _types(site: Site, form: LoopForm) -> dict[str, TypeProto]:
    """The types of what the body reads and computes itself, but for names of several values."""
    nested = [
        name
        for node in form.body.node
        for _, graph in scoping.subgraphs(node)
        for owner in scoping.graphs_below(graph)
        for name in scoping.defined(owner)
    ]
    names = (scoping.defined(form.body) | set(form.captured)) - set(nested)
    known = ((name, site.body_type_of("body", name)) for name in sorted(names))
    return {name: found for name, found in known if found is not None}


def _reduces_something(node: NodeProto, types: Mapping[str, TypeProto], fixed: list[str]) -> bool:
    """Whether a node takes the largest or smallest of elements that are there."""
    if op_of(node) not in _OF_SOMETHING:
        return False
    there = has_elements(types.get(node.input[0]))
    return there and all(name in fixed for name in node.input[1:] if name)


def _divides_by_number(node: NodeProto, value: Callable[[str], Array | None]) -> bool:
    """Whether a node divides by fixed numbers, none of them 0, or -1, which may overflow."""
    if op_of(node) not in ("Div", "Mod"):
        return False
    by = value(node.input[1])
    return by is not None and not bool(np.any((by == 0) | (by == -1)))


def _fits_always(level: NestedGraph, node: NodeProto) -> bool:
    """Whether the sizes of a node's operands fit in every run, even where it never ran."""
    if scoping.holds_graphs(node):
        return False
    alone = len(set(node.input)) == 1 and op_of(node) in SPECULATABLE - _SHAPED
    site = level.site
    return alone or fits(node, Reading(site.target, level.proven_dims, constants_in_body(site)))


def constants_in_body(site: Site) -> Callable[[str], Array | None]:
    """The values that are fixed, as seen from the body."""
    key = (*site.scope.key, site.place.index, "body")
    graph = next(graph for part, graph in scoping.subgraphs(site.node) if part == "body")
    return Constants(site.model, Scope("", key, graph, site.scope)).value
