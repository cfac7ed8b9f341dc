"""The trip count of a loop, exact or at most: what unrolling writes out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import NodeProto, numpy_helper

from passes.analysis.trip_count.trip_count import TripCount
from passes.ir.operators import op_of
from passes.loops.form import Kind, LoopForm
from passes.operators.exactness import Array
from passes.operators.folding import folded
from passes.rule import Edit, NothingToDo, Refused, Site
from passes.rules.count_loop.count_loop import considers, count_loop

_MOST = 1 << 31  # with an M above this, exporters say that only the condition ends the loop


@dataclass(frozen=True)
class Bound:
    """The trip count of a loop: `size`, or at most that, according to M or the user."""

    size: int
    exact: bool = False
    promised: bool = False  # by a user: the loop itself might run more often


def bound_of(site: Site, form: LoopForm) -> Bound:
    """Return the bound of a Scan-9+ or Loop: its trip count, M, or the option `max_trips`.

    A Loop that ends by a counter whose start, step and bound are constants has a trip count; or, if
    data may end it before, a most.

    Raises:
        Refused: `trip-count-not-static` where nothing bounds it.
    """
    count = TripCount(site, form)
    if count.static is not None:
        return Bound(count.static, exact=True)
    if form.kind is Kind.LOOP:
        counted = _counted(site) if count.conditional else None
        if counted is not None and counted.exact:
            return counted
        most = count.declared if isinstance(count.declared, int) else _MOST
        most = most if counted is None else min(most, counted.size)
        declared = site.options.max_trips
        endless = count.unlimited and not count.conditional
        if declared is not None and not endless and declared < most:
            return Bound(declared, promised=True)
        if most < _MOST:
            return Bound(most)
    raise _unbounded(count)


def _unbounded(count: TripCount) -> Refused:
    form, path = count.form, count.site.path
    if count.unlimited and not count.conditional:
        return Refused("trip-count-not-static", "nothing ends the loop", [path])
    culprits = [form.trip_count, *(scanned.tensor for scanned in form.scanned)]
    why = "the trip count of the loop is known only at run time"
    if count.declared is not None:
        why = f"the loop runs {count} times, which is known only at run time"
    if count.conditional:
        why = "a condition ends the loop, and its trip count has no known bound"
        assert form.condition is not None
        culprits.append(form.condition.body_output)
    if form.kind is Kind.LOOP:
        why += " (--max-trips bounds it)"
    return Refused("trip-count-not-static", why, [path, *filter(None, culprits)])


def _counted(site: Site) -> Bound | None:
    """The trip count that the rule `count-loop` finds for a while loop, where it is a number; not
    exact where data may end the loop before."""
    if not considers(site.node, site.opset, site.target):
        return None
    try:
        edit = count_loop(site)
    except (NothingToDo, Refused):
        return None
    (loop,) = [node for node in edit.nodes if op_of(node) == "Loop"]
    trips = _evaluation(edit, site.constant)(loop.input[0])
    if trips is None or trips.size != 1:
        return None
    return Bound(max(0, int(trips.item())), exact=not considers(loop, site.opset, site.target))


def _evaluation(edit: Edit, outer: Callable[[str], Array | None]) -> Callable[[str], Array | None]:
    """The values that an Edit writes, where they follow from constants."""
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in edit.initializers}
    producers: dict[str, NodeProto] = {name: node for node in edit.nodes for name in node.output}

    def value(name: str) -> Array | None:
        if name in values:
            return values[name]
        return folded(producers[name], value) if name in producers else outer(name)

    return value
