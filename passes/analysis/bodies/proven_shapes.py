"""Decides whether the shapes in the body of a Loop are those that its types declare."""

from __future__ import annotations

from dataclasses import replace

from passes.analysis.bodies.body_types import body_types
from passes.ir.graph_index import OUTPUT
from passes.ir.operators import op_of
from passes.ir.scope import Key, Place
from passes.loops.form import Carried, LoopForm
from passes.rule import Site, Slot
from passes.types.value_types import dims_of

_KEEPING: Slot[dict[tuple[Key, int], bool]] = Slot()


def are_shapes_proven(site: Site) -> bool:
    """Return whether the Loops around a site keep the shapes of what they carry, and declare in
    their bodies only what follows from outside: onnxruntime accepts other sizes there."""
    around = (place for place in site.scope.holders() if op_of(place.node) == "Loop")
    return all(_keeps_shapes(site, loop) for loop in around)


def _keeps_shapes(site: Site, loop: Place) -> bool:
    """Return whether all sizes in the body of a Loop that are known hold whatever it declares."""
    found = site.memory.once(_KEEPING, dict)
    key = (loop.scope.key, loop.index)
    if key not in found:
        form = LoopForm.from_node(loop.node, site.opset)
        outside = replace(site, place=loop)
        types = body_types(outside, form, ())
        growing = {carried.body_input for carried in form.carried if _only_grows(form, carried)}
        ranks = all(
            (dims := dims_of(outside.type_of(carried.initial))) is not None
            and len(dims) == len(types.dims(carried.body_input) or ())
            for carried in form.carried
            if carried.body_input not in growing
        )
        found[key] = ranks and types.changes.keys() <= growing and types.certain is None
    return found[key]


def _only_grows(form: LoopForm, carried: Carried) -> bool:
    """Return whether a carried value is a sequence that nodes of the body insert into, and none
    reads."""
    pending, inserts = [carried.body_input], False
    while pending:
        for position in form.index.readers.get(pending.pop(), ()):
            node = None if position == OUTPUT else form.body.node[position]
            if node is not None and op_of(node) != "SequenceInsert":
                return False
            inserts |= node is not None
            pending += [] if node is None else node.output
    return inserts
