"""The rule `inline-loop`: a loop that runs at most once is replaced by its iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.safety.randomness import first_random
from passes.analysis.trip_count.trip_count import TripCount
from passes.bodies.few_iterations import may_be_written_out, starts
from passes.loops.form import LoopForm
from passes.rule import LOOPS, Edit, NothingToDo, Refused, Site, register
from passes.rules.raise_loop.raise_loop import raise_loop
from passes.rules.unroll.bounded import bound_of
from passes.rules.unroll.known_failure import refuse_known_failure
from passes.rules.unroll.unrolling import Unrolling


@register("inline-loop", considers=LOOPS, optional=True)
def inline_loop(site: Site) -> Edit:
    """Write out a loop that runs one iteration, or none.

    Before:

        y, z = Scan <num_scan_inputs = 1, body = step (...) { t = Add (s, x_t) }> (h, x)

    After, for a length of 1:

        x_t = Squeeze (x, axes)
        y = Add (h, x_t)
        z = Unsqueeze (y, axes)

    A loop that never runs returns its initial values, and collects nothing. This is `unroll` for
    just these loops, with its guards: where scanned lengths may differ the new model fails as the
    Scan does, unless inputs are assumed to be valid. In `optimize`, a Loop of a few iterations is
    written out, too, where that is faster than a Scan: see `few_iterations.py`.

    Refuses:
    - `unknown-rank-of-nothing`: no iteration runs, and the rank of a collected element is unknown
    - `iteration-fails`: the iteration cannot run with the sizes and constants known there
    - `opset-too-old`: no iteration runs, the size of a collected element is known only at run time,
      and the opset is below 9
    """
    form = LoopForm.from_node(site.node, site.opset)
    trips = _trips(site, form)
    note = f"{trips or 'no'} iteration{'s' if trips > 1 else ''}"
    try:
        edit = _Inlining(site, form, trips).edit(note)
        if trips > 1 and starts(edit.nodes, trips) >= starts(_as_scan(site), trips):
            raise NothingToDo
        refuse_known_failure(site, edit)
        return replace(edit, context=context_of(site))  # the trip count may follow from it
    except Refused as refused:
        if refused.code != "unknown-shape":
            raise
        raise Refused("unknown-rank-of-nothing", refused.sentence, refused.culprits) from refused


def _as_scan(site: Site) -> Sequence[NodeProto]:
    """Return the form of the loop if it is not written out.

    Raises:
        NothingToDo: its iterations fail.
    """
    try:
        return raise_loop(site).nodes
    except Refused as refused:
        if refused.code == "out-of-range":
            raise NothingToDo from None
        return [site.node]


class _Inlining(Unrolling):
    distrusts_symbols = True


def _trips(site: Site, form: LoopForm) -> int:
    """The number of iterations to write out.

    Raises:
        NothingToDo: the loop may run more often, or its trip count is unknown.
    """
    try:
        bound = bound_of(site, form)
    except Refused:
        raise NothingToDo from None
    few = (
        site.options.weigh_few_iterations
        and bound.exact
        and may_be_written_out(site, form, bound.size)
    )
    if bound.promised or not (bound.exact or not TripCount(site, form).starts):
        raise NothingToDo
    if bound.size > 1 and (not few or first_random(site.model, form.body.node) is not None):
        raise NothingToDo
    return bound.size
