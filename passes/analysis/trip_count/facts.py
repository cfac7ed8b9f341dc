"""What analysis knows of a loop: trip count, recurrences, invariants, stable shapes.

networkx does the graph work: a recurrence is a strongly connected component of the body in
which every carried value is tied from its output back to its input. It is imported where it is
used: that takes longer than the upgrade of a small model, which does without.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from onnx import NodeProto

from passes.analysis.safety.speculation import is_pure
from passes.ir import scope as scoping
from passes.ir.conditions import conjuncts, is_true
from passes.ir.constants import Constants
from passes.ir.scope import Scope
from passes.loops.form import Kind, LoopForm
from passes.rule import Site
from passes.types.value_types import Dim, dims_of

if TYPE_CHECKING:
    import networkx as nx


class Trip(StrEnum):
    """What is known of a trip count before the model runs."""

    STATIC = "static"
    SYMBOLIC = "symbolic"
    DYNAMIC = "dynamic"


@dataclass(frozen=True)
class TripCount:
    """How often a loop runs: `size` a number, a symbol, or None where only the run tells."""

    known: Trip
    size: Dim = None
    at_most: bool = False  # a condition or sequence_lens may end it earlier

    def __str__(self) -> str:
        shown = "dynamic" if self.size is None else str(self.size)
        return f"<= {shown}" if self.at_most and self.size is not None else shown


def trip_count(site: Site, form: LoopForm) -> TripCount:
    """The trip count of a loop, from the shapes of what it scans or from a constant M."""
    if form.kind is Kind.LOOP:
        return _loop_trips(site, form)
    known = [scanned_size(site, one.tensor, one.axis) for one in form.scanned]
    told = sorted((dim for dim in known if dim is not None), key=lambda dim: isinstance(dim, str))
    return _trip_count(told[0] if told else None, at_most=bool(form.lengths))


def _trip_count(size: Dim, at_most: bool) -> TripCount:
    if size is None:
        return TripCount(Trip.DYNAMIC, None, at_most)
    known = Trip.STATIC if isinstance(size, int) and not at_most else Trip.SYMBOLIC
    return TripCount(known, size, at_most)


def scanned_size(site: Site, tensor: str, axis: int) -> Dim:
    """The size of an axis of an outer tensor, None where it is not known."""
    dims = dims_of(site.type_of(tensor))
    return dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None


def _loop_trips(site: Site, form: LoopForm) -> TripCount:
    conditional = not condition_always_true(site, form)
    maximum = site.constant(form.trip_count) if form.trip_count else None
    size = max(0, int(maximum.item())) if maximum is not None and maximum.size == 1 else None
    return _trip_count(size, at_most=conditional)


def condition_always_true(site: Site, form: LoopForm) -> bool:
    """Whether a Loop's condition never ends it: omitted or true at first, and passed through."""
    initial = form.condition.initial if form.condition is not None else ""
    parts = conjuncts(initial, lambda name: site.model.producer(site.scope.owner, name))
    if not all(is_true(site.constant(name)) for _, name in parts):
        return False
    return form.goes_on(Constants(site.model, _body_scope(site, form)).value)


def _body_scope(site: Site, form: LoopForm) -> Scope:
    return Scope(f"{site.path}.body", (*site.scope.key, site.place.index), form.body, site.scope)


def dependencies(form: LoopForm) -> nx.DiGraph:
    """The body as a graph of values: an edge from each value to what is computed from it.

    Carried outputs lead back to their inputs, so that recurrences are cycles.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(form.body_inputs)
    for node in form.body.node:
        for target in filter(None, node.output):
            graph.add_node(target)
            graph.add_edges_from((name, target) for name in scoping.free_names(node))
    graph.add_edges_from((one.body_output, one.body_input) for one in form.carried)
    return graph


def recurrences(form: LoopForm) -> list[frozenset[str]]:
    """The carried values (body inputs) that feed each other, each group once."""
    import networkx as nx

    inputs = {one.body_input for one in form.carried}
    graph = dependencies(form)
    found = [
        frozenset(part & inputs)
        for part in nx.strongly_connected_components(graph)
        if part & inputs and (len(part) > 1 or any(graph.has_edge(name, name) for name in part))
    ]
    return sorted(found, key=sorted)


def invariant_nodes(form: LoopForm) -> list[NodeProto]:
    """Nodes of the body that give the same in every iteration.

    Neither they nor what they are computed from see a carried or scanned value, the iteration
    number or the condition, or are impure.
    """
    reached = {form.iteration} | {one.body_input for one in form.carried}
    reached |= {one.body_input for one in form.scanned}
    if form.condition is not None:
        reached.add(form.condition.body_input)
    invariant = []
    for node in form.body.node:
        if is_pure(node) and reached.isdisjoint(scoping.free_names(node)):
            invariant.append(node)
        else:
            reached.update(node.output)
    return invariant


def keeps_shape(site: Site, form: LoopForm, *, symbols: bool = True) -> dict[str, bool]:
    """For each carried value (body input) whether inference shows that its shape is stable.

    `symbols`: sizes that are called alike count as equal. A run may still give other sizes than
    the symbols say: where that must be noticed, only sizes that are known are a proof.
    """
    stable = {}
    for one in form.carried:
        before = dims_of(site.body_type_of("body", one.body_input))
        after = dims_of(site.body_type_of("body", one.body_output))
        told = before is not None and None not in before and before == after
        fixed = before is not None and all(isinstance(dim, int) for dim in before)
        stable[one.body_input] = told and (symbols or fixed)
    return stable
