"""The rule `peel`: the first or last iteration of a loop stands beside it."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.folding import Array
from passes.analysis.safety.known_failure import refuse_known_failure
from passes.analysis.safety.randomness import first_random
from passes.analysis.trip_count.truth import Truth
from passes.choices import Peel
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.versions import WHERE_SINCE
from passes.loops.form import Kind, LoopForm
from passes.rule import Edit, Limit, Refused, Site, register
from passes.rules.unroll.budget import allow, refuse_copies_of_copies
from passes.rules.unroll.peeling import PEELED_KEY, Known, Peeling
from passes.rules.unroll.trip_bounds import fixed_trips
from passes.rules.unroll.unrolling import Unrolling
from passes.writing.branch_types import refuse_changing_states, refuse_two_shapes, refuse_uncopied


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Loop, or a Scan of version 9 or later, that was not peeled yet."""
    if not is_onnx_domain(node.domain) or any(one.key == PEELED_KEY for one in node.metadata_props):
        return False
    return op_of(node) == "Loop" or (op_of(node) == "Scan" and opset >= 9)


@register("peel", considers=considers, optional=True)
def peel(site: Site) -> Edit:
    """Write out the first or the last iteration of a loop, which then runs one fewer.

    Before:

        y = Loop <body = step (i, go, s) { t = f (s, i) }> (three, "", h)

    After (`--peel first`):

        "t/first" = f (h, zero)
        y = Loop <body = step (i, go, s) { number = Add (i, one) t = f (s, number) }> (two, "",
            "t/first")

    A loop that may not run at all stands, with its iteration, in an If that has something to run.
    Of a loop that runs once nothing else stays. The weights are shared by the iteration and the
    loop. In which iteration a condition ends a loop is not known, so such a loop has a first
    iteration, but no last one.

    Refuses:
    - `no-iteration`: the loop never runs
    - `condition`: `--peel last`: the body computes whether the loop goes on
    - `endless`: nothing ends the loop
    - `random`: the body draws random numbers, and a copy would draw its own
    - `unknown-shape`: it may be that no iteration runs, and a collected element has no known rank
    - `not-a-tensor`: a sequence or optional is carried, which no If of this opset hands on
    - `old-if`: what is collected may be empty, or a state may change its shape, and before opset
      11 an If has one shape
    - `opset-too-old`: a trip count says whether the loop runs, and the opset is below 9
    - `too-many-nodes`: the copies would take more nodes or bytes than are allowed, or stand in
      copies of copies, in loops too deep in one another
    - `iteration-fails`: the iteration cannot run on what is known where it stands
    """
    form = LoopForm.from_node(site.node, site.opset)
    last = site.options.peel == Peel.last
    known = _known(site, form)
    if known.trips == 1:
        allow(site, form, 1)
        edit = refuse_known_failure(site, Unrolling(site, form, 1).edit("the only iteration"))
        return replace(edit, context=context_of(site))  # maybe it tells the trip count
    _refuse(site, form, known, last)
    refuse_copies_of_copies(site, form, 2, PEELED_KEY)
    allow(site, form, 2)
    edit = Peeling(site, form, known, last=last).edit(
        f"the {'last' if last else 'first'} iteration"
    )
    refuse_known_failure(site, edit)
    if known.trips is not None:
        edit = replace(edit, context=context_of(site))
    return edit if form.kind is Kind.SCAN else replace(edit, limit=Limit(2))


def _known(site: Site, form: LoopForm) -> Known:
    # onnxruntime, too, knows a trip count that follows from sizes that are known: it would take the
    # If apart that asks for it, and crash over a Loop in it where the If is a branch of another one
    # that it takes apart
    trips = fixed_trips(site, form)
    if trips is not None or form.kind is Kind.SCAN:
        return Known(trips, bool(trips), bool(trips and trips > 1))
    told = [form.trip_count, form.condition.initial if form.condition else ""]
    values = [site.constant(name) for name in told if name]
    if form.condition and form.condition.initial and _is_false(values[-1]):
        return Known(0, starts=False, follows=False)
    starts = all(one is not None and one.size == 1 and one.item() > 0 for one in values)
    return Known(None, starts, follows=False)


def _is_false(value: Array | None) -> bool:
    return value is not None and value.size == 1 and not value.item()


def _refuse(site: Site, form: LoopForm, known: Known, last: bool) -> None:
    """Refuse what cannot be peeled.

    Raises:
        Refused: see the rule.
    """
    if known.trips == 0:
        raise Refused("no-iteration", "the loop never runs", [site.path])
    drawing = first_random(site.model, form.body.node)
    if drawing is not None:
        raise Refused("random", f"the body runs {op_of(drawing)}", [site.path, *drawing.output])
    condition = form.condition
    ends = condition is not None and not Truth(site, form).ends_never()
    if last and ends and condition is not None:
        raise Refused(
            "condition",
            "whether an iteration is the last is only known behind it",
            [site.path, condition.body_output],
        )
    if form.kind is Kind.LOOP and not form.trip_count and not ends:
        raise Refused("endless", "the loop has no trip count and nothing ends it", [site.path])
    if not known.follows:
        refuse_two_shapes(site, form)
    if not known.starts and form.trip_count and site.target < WHERE_SINCE:
        raise Refused(
            "opset-too-old",
            f"whether {form.trip_count!r} is above 0 cannot be asked at opset {site.target}, which "
            f"compares no whole numbers; opset {WHERE_SINCE} does",
            [site.path, form.trip_count],
        )
    if not known.starts:
        refuse_changing_states(site, form)
        for one in form.carried:
            refuse_uncopied(site, one)
