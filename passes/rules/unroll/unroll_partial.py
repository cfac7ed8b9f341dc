"""The rule `unroll-partial`: a Loop runs several iterations at a time."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto, TensorProto

from passes.analysis.bodies.context import context_of
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.copy_budget import allow, refuse_copies_of_copies, refuse_random
from passes.ir.operators import op_of
from passes.ir.versions import LESS_TAKES_INTEGERS
from passes.loops.form import LoopForm
from passes.rule import Edit, Site, register
from passes.rules.unroll.known_failure import refuse_known_failure
from passes.rules.unroll.partial import PARTIAL_KEY, Partial
from passes.rules.unroll.unrolling import Unrolling
from passes.types.value_types import elem_type_of


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Loop that this rule has not written itself."""
    if op_of(node) != "Loop":
        return False
    return all(entry.key != PARTIAL_KEY for entry in node.metadata_props)


@register("unroll-partial", considers=considers, optional=True)
def unroll_partial(site: Site) -> Edit:
    """Run `--factor` iterations of a Loop at a time, and the remaining ones in a second Loop.

    Before:

        y, z = Loop <body = step (i, go, s) { t = f (s, i) }> (M, "", h)

    After (a factor of 2):

        pairs, rest = ...
        s2, even, odd = Loop <body = steps (i, go, s) { ... }> (pairs, "", h)
        y, last = Loop <body = step (i, go, s) { ... }> (rest, "", s2)
        z = ...

    A Scan is lowered to a Loop first. One Gather puts what the copies collect in order. Where
    the trip count is static and not above the factor, every iteration is written out.

    Refuses:
    - `condition`: the loop may end before its trip count is reached
    - `no-trip-count`: the loop runs forever
    - `too-many-nodes`: the copies would take more nodes or bytes than are allowed, or are
      in copies of copies, in loops nested too deeply
    - `random`: the body draws random numbers, and every copy would draw the same ones
    - `iteration-fails`: an iteration cannot run with the sizes and constants known there
    - `strings`: the loop collects strings, whose rows onnxruntime cannot gather
    - `opset-too-old`: the opset is below 9, which compares no integers, and cannot create rows
      of a size that is known only at run time, where no iteration runs
    """
    form = LoopForm.from_node(site.node, site.opset)
    count = TripCount(site, form)
    if count.conditional:
        raise site.refused("condition", "a condition may end the loop before its count")
    if count.unlimited:
        raise site.refused("no-trip-count", "neither a count nor a condition ends the loop")
    refuse_random(site, form.body.node)
    factor = site.options.factor
    if count.static is not None and count.static <= factor:
        allow(site, form, count.static)
        edit = Unrolling(site, form, count.static).edit(f"all {count.static} iterations")
        refuse_known_failure(site, edit)
        return replace(edit, context=context_of(site))  # the trip count may follow from it
    _refuse_strings(site, form)
    site.need_opset(LESS_TAKES_INTEGERS, "compares no integers, to divide the trip count")
    refuse_copies_of_copies(site, form, factor + 1, PARTIAL_KEY)
    allow(site, form, factor + 1)
    edit = Partial(site, form, factor).edit(f"{factor} iterations at a time")
    initial = form.condition.initial if form.condition else ""
    # the condition is true because of the iterations before
    return replace(edit, context=context_of(site)) if initial else edit


def _refuse_strings(site: Site, form: LoopForm) -> None:
    for collected in form.collected:
        if elem_type_of(site.body_type_of("body", collected.body_output)) in (
            0,
            TensorProto.STRING,
        ):
            what = f"{collected.body_output!r} is collected, and may be strings"
            raise site.refused("strings", what, collected.body_output)
