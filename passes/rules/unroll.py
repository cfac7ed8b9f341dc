"""The rule `unroll`: a loop of a static trip count becomes straight-line code."""

from __future__ import annotations

from onnx import NodeProto

from passes import facts
from passes import scope as scoping
from passes.loop_form import Kind, LoopForm
from passes.rule import Edit, Refused, Site, register
from passes.rules.budget import allow
from passes.rules.randomness import first_random
from passes.rules.unrolling import Unrolling


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Loop, or a Scan of version 9 or later."""
    if not scoping.is_onnx_domain(node.domain):
        return False
    return node.op_type == "Loop" or (node.op_type == "Scan" and opset >= 9)


@register("unroll", considers=considers, optional=True)
def unroll(site: Site) -> Edit:
    """Write out every iteration of a loop whose trip count is static.

    Before:

        y, z = Scan <num_scan_inputs = 1, body = step (...) { t = Add (s, x_t) }> (h, x)

    After (a length of 2):

        part0, part1 = Split <axis = 0, num_outputs = 2> (x)
        "x_t/it0" = Squeeze (part0, axes)
        "t/it0" = Add (h, "x_t/it0")
        "x_t/it1" = Squeeze (part1, axes)
        y = Add ("t/it0", "x_t/it1")
        z = Concat (...)

    Weights of the body are shared by all iterations; nodes say in their metadata which iteration
    they were written for. Innermost loops go first. What the iteration number, known shapes and
    known conditions decide is folded, in these nodes only. Scanned lengths and state shapes that
    may differ where a Scan would fail get a guard; `--assume valid-inputs` leaves it out.

    Refuses:
    - `trip-count-not-static`: how often the loop runs is only known when the model runs
    - `condition`: the loop may end earlier than its trip count says
    - `too-many-nodes`: the iterations would take more nodes or bytes than are allowed
    - `random`: the body draws random numbers, and every copy would draw the same ones
    - `unknown-shape`: no iteration runs, and the rank of a collected element is not known
    """
    form = LoopForm.from_node(site.node, site.opset)
    trips = _trips(site, form)
    drawing = first_random(site.model, form.body.node) if trips > 1 else None
    if drawing is not None:
        raise Refused("random", f"the body runs {drawing.op_type}", [site.path, *drawing.output])
    allow(site, form, trips)
    note = "1 iteration" if trips == 1 else f"{trips} iterations"
    return Unrolling(site, form, trips).edit(note)


def _trips(site: Site, form: LoopForm) -> int:
    """The trip count.

    Raises:
        Refused: it is not static, or a condition may end the loop earlier.
    """
    if form.condition is not None and form.condition.initial:
        initial = site.constant(form.condition.initial)
        if initial is not None and initial.size == 1 and not initial.item():
            return 0
    known = facts.trip_count(site, form)
    if form.kind is Kind.LOOP and known.at_most:
        raise Refused(
            "condition",
            "the body computes a condition that may end the loop before its trip count",
            [site.path],
        )
    if not isinstance(known.size, int):
        raise Refused(
            "trip-count-not-static",
            f"the loop runs {known} times, which is only known when the model runs",
            [site.path, *filter(None, [form.trip_count, *(one.tensor for one in form.scanned)])],
        )
    return known.size
