"""Facts about the body of a loop: recurrences, invariants, stable shapes.

networkx does the graph work: a recurrence is a strongly connected component of the body in
which every carried value is tied from its output back to its input. It is imported where it is
used: importing it takes longer than the upgrade of a small model, which does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import NodeProto

from passes.analysis.safety.randomness import is_pure
from passes.ir import scope as scoping
from passes.ir.site import Site
from passes.loops.form import LoopForm
from passes.types.value_types import dims_of, is_static

if TYPE_CHECKING:
    import networkx as nx


def dependencies(form: LoopForm) -> nx.DiGraph:
    """The body as a graph of values: an edge from each value to those computed from it.

    Carried outputs lead back to their inputs, so that recurrences are cycles.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(form.body_inputs)
    for node in form.body.node:
        for target in filter(None, node.output):
            graph.add_node(target)
            graph.add_edges_from((name, target) for name in scoping.free_names(node))
    graph.add_edges_from((carried.body_output, carried.body_input) for carried in form.carried)
    return graph


def recurrences(form: LoopForm) -> list[frozenset[str]]:
    """The carried values (body inputs) that feed each other, each group once."""
    import networkx as nx

    inputs = {carried.body_input for carried in form.carried}
    graph = dependencies(form)
    found = [
        frozenset(part & inputs)
        for part in nx.strongly_connected_components(graph)
        if part & inputs and (len(part) > 1 or any(graph.has_edge(name, name) for name in part))
    ]
    return sorted(found, key=sorted)


def invariant_nodes(form: LoopForm) -> list[NodeProto]:
    """Nodes of the body that compute the same in every iteration.

    Neither they nor what they depend on read a carried or scanned value, the iteration
    number or the condition, or are impure.
    """
    reached = {form.iteration} | {carried.body_input for carried in form.carried}
    reached |= {scanned.body_input for scanned in form.scanned}
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
    """For each carried value (body input), whether inference shows that its shape is stable.

    `symbols`: sizes of one symbol count as equal. At run time sizes may still differ from what
    the symbols promise: if that must be noticed, only known sizes are a proof.
    """
    stable = {}
    for carried in form.carried:
        before = dims_of(site.body_type_of("body", carried.body_input))
        after = dims_of(site.body_type_of("body", carried.body_output))
        known = before is not None and None not in before and before == after
        stable[carried.body_input] = known and (symbols or is_static(before))
    return stable
