"""How often a loop runs, exactly or at most: what unrolling writes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import NodeProto, numpy_helper

from passes.analysis.integers.folding import Array, folded
from passes.analysis.integers.integers import Integers
from passes.analysis.trip_count import facts
from passes.ir.operators import op_of
from passes.loops.form import Kind, LoopForm
from passes.rule import Edit, Refused, Site
from passes.rules.count_loop.count_loop import considers, count_loop

_MOST = 1 << 31  # M above this is how exporters say that nothing but the condition counts


@dataclass(frozen=True)
class Bound:
    """How often a loop runs: `size` times, or at most so often, as M or a user says."""

    size: int
    exact: bool = False
    promised: bool = False  # by a user: the loop itself might run more often


def bound_of(site: Site, form: LoopForm) -> Bound:
    """What bounds a Scan-9+ or Loop: its trip count, M, or the option `max_trips`.

    A Loop that ends by a counter whose start, step and bound are fixed has a trip count.

    Raises:
        Refused: `trip-count-not-static` where nothing bounds it.
    """
    condition = form.condition
    if condition is not None and condition.initial and _is_false(site, condition.initial):
        return Bound(0, exact=True)
    known = facts.trip_count(site, form)
    exact = fixed_trips(site, form)
    if exact is not None:
        return Bound(exact, exact=True)
    if form.kind is Kind.LOOP:
        counted = _counted(site) if known.at_most else None
        if counted is not None:
            return Bound(counted, exact=True)
        most = known.size if isinstance(known.size, int) and known.size < _MOST else None
        said = site.options.max_trips
        endless = not form.trip_count and not known.at_most
        if said is not None and not endless and (most is None or said < most):
            return Bound(said, promised=True)
        if most is not None:
            return Bound(most, exact=not most)
    raise _unbounded(site, form, known)


def fixed_trips(site: Site, form: LoopForm) -> int | None:
    """How often a Scan-9+ or Loop runs in every run, None where that is not known.

    A trip count may follow from sizes that are known: then it rests on the nodes in front.
    """
    known = facts.trip_count(site, form)
    if known.at_most:
        return None
    if isinstance(known.size, int) or form.kind is Kind.SCAN or not form.trip_count:
        return known.size if isinstance(known.size, int) else None
    told = Integers(site).outside(form.trip_count)
    number = told.single.number if told is not None and told.single is not None else None
    return None if number is None else max(0, number)


def _is_false(site: Site, name: str) -> bool:
    value = site.constant(name)
    return value is not None and value.size == 1 and not value.item()


def _unbounded(site: Site, form: LoopForm, known: facts.TripCount) -> Refused:
    culprits = [form.trip_count, *(one.tensor for one in form.scanned)]
    why = f"the loop runs {known} times, which is only known when the model runs"
    if form.kind is Kind.LOOP and not form.trip_count and not known.at_most:
        return Refused("trip-count-not-static", "nothing ends the loop", [site.path])
    if known.at_most:
        why = "a condition ends the loop, and nothing says how often it runs at most"
        assert form.condition is not None
        culprits.append(form.condition.body_output)
    if form.kind is Kind.LOOP:
        why += " (--max-trips may)"
    return Refused("trip-count-not-static", why, [site.path, *filter(None, culprits)])


def _counted(site: Site) -> int | None:
    """The trip count that the rule `count-loop` gives a while, where it is a number."""
    if not considers(site.node, site.opset, site.target):
        return None
    try:
        edit = count_loop(site)
    except Refused:
        return None
    (loop,) = [node for node in edit.nodes if op_of(node) == "Loop"]
    trips = _evaluation(edit, site.constant)(loop.input[0])
    return max(0, int(trips.item())) if trips is not None and trips.size == 1 else None


def _evaluation(edit: Edit, outer: Callable[[str], Array | None]) -> Callable[[str], Array | None]:
    """Values of what an Edit writes, where they follow from constants."""
    values = {one.name: numpy_helper.to_array(one) for one in edit.initializers}
    makers: dict[str, NodeProto] = {name: node for node in edit.nodes for name in node.output}

    def value(name: str) -> Array | None:
        if name in values:
            return values[name]
        return folded(makers[name], value) if name in makers else outer(name)

    return value
