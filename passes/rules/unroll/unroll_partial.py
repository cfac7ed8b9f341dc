"""The rule `unroll-partial`: a Loop does several iterations at a time."""

from __future__ import annotations

from dataclasses import replace

from onnx import NodeProto, TensorProto

from passes.analysis.bodies.context import context_of
from passes.analysis.safety.known_failure import refuse_known_failure
from passes.analysis.safety.randomness import first_random
from passes.analysis.trip_count import facts
from passes.ir.operators import op_of
from passes.ir.versions import WHERE_SINCE
from passes.loops.form import LoopForm
from passes.rule import Edit, Refused, Site, register
from passes.rules.unroll.budget import allow, refuse_copies_of_copies
from passes.rules.unroll.partial import PARTIAL_KEY, Partial
from passes.rules.unroll.unrolling import Unrolling
from passes.types.value_types import Dim, elem_type_of


def considers(node: NodeProto, opset: int, target: int) -> bool:
    """Whether a node is a Loop that this rule has not written itself."""
    if op_of(node) != "Loop":
        return False
    return all(one.key != PARTIAL_KEY for one in node.metadata_props)


@register("unroll-partial", considers=considers, optional=True)
def unroll_partial(site: Site) -> Edit:
    """Let a Loop do `--factor` iterations at a time, and a second one those that remain.

    Before:

        y, z = Loop <body = step (i, go, s) { t = f (s, i) }> (M, "", h)

    After (a factor of 2):

        pairs, rest = ...
        s2, even, odd = Loop <body = steps (i, go, s) { ... }> (pairs, "", h)
        y, last = Loop <body = step (i, go, s) { ... }> (rest, "", s2)
        z = ...

    A Scan is lowered to a Loop first. What the copies collect is put in order by one Gather. Of
    a loop of a static trip count not above the factor, every iteration is written out.

    Refuses:
    - `condition`: the loop may end earlier than its trip count says
    - `no-trip-count`: the loop runs forever
    - `too-many-nodes`: the copies would take more nodes or bytes than are allowed, or stand in
      copies of copies, in loops too deep in one another
    - `random`: the body draws random numbers, and every copy would draw the same ones
    - `iteration-fails`: an iteration cannot run on what is known where it stands
    - `strings`: the loop collects strings, whose rows onnxruntime does not gather
    - `opset-too-old`: the opset is below 9, which compares no whole numbers; nor does it make rows
      of a size that is only known when the model runs, where no iteration does
    """
    form = LoopForm.from_node(site.node, site.opset)
    known = facts.trip_count(site, form)
    if known.at_most:
        raise Refused("condition", "a condition may end the loop before its count", [site.path])
    if not form.trip_count:
        raise Refused("no-trip-count", "neither a count nor a condition ends the loop", [site.path])
    drawing = first_random(site.model, form.body.node)
    if drawing is not None:
        raise Refused("random", f"the body runs {op_of(drawing)}", [site.path, *drawing.output])
    factor = site.options.factor
    static, context = _static_trips(site, form, known.size)
    if static is not None and static <= factor:
        allow(site, form, static)
        edit = Unrolling(site, form, static).edit(f"all {static} iterations")
        refuse_known_failure(site, edit)
        return replace(edit, context=context)
    _refuse_strings(site, form)
    if site.target < WHERE_SINCE:
        raise Refused(
            "opset-too-old",
            f"the trip count cannot be divided at opset {site.target}, which compares no whole "
            f"numbers; opset {WHERE_SINCE} does",
            [site.path],
        )
    refuse_copies_of_copies(site, form, factor + 1, PARTIAL_KEY)
    allow(site, form, factor + 1)
    edit = Partial(site, form, factor).edit()
    initial = form.condition.initial if form.condition else ""
    return replace(edit, context=context_of(site)) if initial else edit  # it tells that it holds


def _static_trips(
    site: Site, form: LoopForm, size: Dim
) -> tuple[int | None, tuple[NodeProto, ...]]:
    """The trip count where it is static, and the node that tells: lowering squeezes a constant."""
    if isinstance(size, int):
        return size, ()
    node = site.model.producer(site.scope.owner, form.trip_count)
    if node is None or op_of(node) != "Squeeze":
        return None, ()
    value = site.constant(node.input[0])
    return (int(value.item()), (node,)) if value is not None and value.size == 1 else (None, ())


def _refuse_strings(site: Site, form: LoopForm) -> None:
    for one in form.collected:
        if elem_type_of(site.body_type_of("body", one.body_output)) in (0, TensorProto.STRING):
            raise Refused(
                "strings",
                f"{one.body_output!r} is collected, and may be strings",
                [site.path, one.body_output],
            )
