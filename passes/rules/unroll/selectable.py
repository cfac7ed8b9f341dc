"""Whether iterations may run after the loop has ended, with their results ignored."""

from __future__ import annotations

from collections.abc import Set

from passes.analysis.bodies import body_facts
from passes.analysis.bodies.body_types import may_change
from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.safety.may_fail import failing_on_other_values
from passes.analysis.safety.shapes_fit import fits
from passes.analysis.trip_count.trip_count import TripCount
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.loops.form import LoopForm
from passes.rule import Refused, Site
from passes.types.value_types import elem_type_of


def objection(site: Site, form: LoopForm) -> Refused | None:
    """Why the body of a Loop may not run where the loop has ended, None where it may."""
    changing = _changing(site, form)
    for carried in form.carried:
        known = site.body_type_of("body", carried.body_input)
        if not elem_type_of(known) or carried.body_input in changing:
            return _because(
                f"{carried.body_input!r} may change its shape", site, carried.body_input
            )
    level = NestedGraph.of(site, form.body, "body")
    culprits = failing_on_other_values(form.body, level.known)
    if not culprits and not TripCount(site, form).evidently_runs:
        culprits = [
            node
            for node in form.body.node
            if scoping.holds_graphs(node) or not fits(node, level.known)
        ]
    if not culprits:
        return None
    ops = ", ".join(sorted({op_of(node) for node in culprits}))
    names = (name for node in culprits for name in node.output if name)
    return _because(f"{ops} may fail where the loop has ended", site, *names)


def _changing(site: Site, form: LoopForm) -> Set[str]:
    """The carried values that may change shape: symbols are a proof only for valid inputs."""
    trusted = site.assumes("valid-inputs")
    kept = body_facts.keeps_shape(site, form)
    changing = {name for name, stays in kept.items() if not stays}
    if trusted or all(body_facts.keeps_shape(site, form, symbols=False).values()):
        return changing
    return changing | may_change(site, form)


def _because(why: str, site: Site, *culprits: str) -> Refused:
    return Refused("not-speculatable", why, [site.path, *culprits])
