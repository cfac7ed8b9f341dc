"""The rule `peel`: the first or last iteration of a loop is written out beside it."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.copy_budget import allow, refuse_copies_of_copies, refuse_random
from passes.choices import Peel
from passes.ir.operators import is_loop_9
from passes.ir.versions import LESS_TAKES_INTEGERS
from passes.loops.form import Kind, LoopForm
from passes.rule import Claim, Edit, Limit, Site, register
from passes.rules.unroll.branch_types import refuse_states, refuse_two_shapes
from passes.rules.unroll.known_failure import refuse_known_failure
from passes.rules.unroll.peeling import PEELED_KEY, Peeling
from passes.rules.unroll.unrolling import Unrolling
from passes.types.value_types import dims_of


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Return whether a node is a Loop, or a Scan of version 9 or later, that was not peeled yet."""
    peeled = any(entry.key == PEELED_KEY for entry in node.metadata_props)
    return is_loop_9(node, opset) and not peeled


@register("peel", considers=considers, optional=True)
def peel(site: Site) -> Edit:
    """Write out the first or the last iteration of a loop, which then runs one fewer.

    Before:

        y = Loop <body = step (i, go, s) { t = f (s, i) }> (three, "", h)

    After (`--peel first`):

        "t/first" = f (h, zero)
        y = Loop <body = step (i, go, s) { number = Add (i, one) t = f (s, number) }> (two, "",
            "t/first")

    A loop that may run no iteration is put, with the peeled one, into an If.
    A loop that runs once is replaced by its iteration. The iteration and the
    loop share the weights. The last iteration of a loop that a condition ends is not known in
    advance, so only its first one can be peeled.

    Refuses:
    - `no-iteration`: the loop never runs
    - `condition`: `--peel last`: the body computes whether the loop continues
    - `endless`: nothing ends the loop
    - `random`: the body draws random numbers, and a copy would draw its own
    - `unknown-shape`: possibly no iteration runs, and the rank of a collected element is unknown
    - `not-a-tensor`: a sequence or optional is carried, which no If of this opset can return
    - `old-if`: what is collected may be empty, or a state may change its shape, and before opset
      11 an If has one shape
    - `opset-too-old`: a trip count decides whether the loop runs, and the opset is below 9
    - `too-many-nodes`: the copies would take more nodes or bytes than are allowed, or are
      in copies of copies, in loops nested too deeply
    - `iteration-fails`: the iteration cannot run with the sizes and constants known there
    """
    form = LoopForm.from_node(site.node, site.opset)
    last = site.options.peel == Peel.last
    # onnxruntime, too, derives a trip count from known sizes: it would inline the If that checks
    # it, and crash over a Loop in it where the If is in a branch of another one that it inlines
    count = TripCount(site, form)
    if count.static == 1:
        allow(site, form, 1)
        edit = refuse_known_failure(site, Unrolling(site, form, 1).edit("the only iteration"))
        return replace(edit, context=context_of(site))  # the trip count may follow from it
    _refuse(site, form, count, last)
    refuse_copies_of_copies(site, form, 2, PEELED_KEY)
    allow(site, form, 2)
    edit = Peeling(site, form, count, last=last).edit(
        f"the {'last' if last else 'first'} iteration"
    )
    refuse_known_failure(site, edit)
    rests = count.static is not None or count.rests_on_proof
    if rests or _collects_open_sizes(site, form):  # sizes of no rows may follow from it, too
        edit = replace(edit, context=context_of(site))
    return edit if form.kind is Kind.SCAN else replace(edit, claim=Claim(limit=Limit(2)))


def _collects_open_sizes(site: Site, form: LoopForm) -> bool:
    """Return whether the size of what is collected is known only at run time."""
    return any(
        not isinstance(dim, int)
        for collected in form.collected
        for dim in dims_of(site.body_type_of("body", collected.body_output)) or ()
    )


def _refuse(site: Site, form: LoopForm, count: TripCount, last: bool) -> None:
    """Refuse what cannot be peeled.

    Raises:
        Refused: see the rule.
    """
    if count.never_runs:
        raise site.refused("no-iteration", "the loop never runs")
    refuse_random(site, form.body.node)
    if last and count.ends_early:
        assert form.condition is not None
        what = "which iteration is the last is known only after it"
        raise site.refused("condition", what, form.condition.body_output)
    if count.unlimited and not count.ends_early:
        raise site.refused("endless", "the loop has no trip count and nothing ends it")
    if (count.static or 0) < 2:
        refuse_two_shapes(site, form)
    if count.evidently_runs:
        return
    if form.trip_count:
        lacks = f"compares no integers, and {form.trip_count!r} may be 0"
        site.need_opset(LESS_TAKES_INTEGERS, lacks, form.trip_count)
    refuse_states(site, form)
