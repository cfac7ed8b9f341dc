"""Loops of a few iterations: whether to leave them as they are, or to write them out.

Where only node starts can be saved, these are counted, for the expected trip count, which is `FEW`
where it is known only at run time. Measured (onnxruntime 1.32, 1 thread,
3 numbers a row, microseconds before and after, of whiles with 3 iterations; and with 16):

- `while` as a Scan 26.6 -> 34.6 (71 -> 47), with a trip count 26.6 -> 23.2 (71 -> 58)
- `while_steps` as a Scan 23.1 -> 37.4 (43 -> 51), with a trip count 23.1 -> 33.6 (43 -> 50)
- `while_and_limit` as a Scan 30.9 -> 50.3 (66 -> 64), with a trip count 30.9 -> 40.1

Such a Loop that always runs 3 times takes 22.8 as it is, 26.1 as a Scan, whose guards run once,
and 13.5 written out; 33.1, 31.2 and 16.5 for 6 times. A Scan that needs no guard takes as long as
its iterations written out: 0.93 to 1.04 times that for 2 to 4 of them, more for 8.

Bodies of 1 to 4 nodes, 1 to 64 iterations, in microseconds: a node 0.4, a Loop 2.3 and 0.6 for each
iteration, a Scan 3.2 and 0.25, an If with its comparison and a Range 2.2. So a Scan in an If gains
on a Loop of the same nodes from 8 iterations on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import GraphProto, NodeProto

from passes.analysis.bodies import body_facts
from passes.analysis.integers.affine import Affine
from passes.bodies.recurrences import KINDS
from passes.bodies.time_cost import UNKNOWN_TRIPS, is_worth_it
from passes.ir import scope as scoping
from passes.ir.live import dependents, live
from passes.ir.operators import is_onnx_domain, op_of
from passes.ir.site import Site
from passes.loops.form import Carried, LoopForm
from passes.operators.cells import RECURRENT
from passes.operators.table import traits_of
from passes.operators.traits import Work
from passes.types.value_types import FLOATS, elem_type_of

#: The assumed trip count where it is not a size, and known only at run time.
FEW = 3
#: The most nodes of a loop that is written out.
MOST_NODES = 32
#: What a node that holds graphs takes besides what is in them, in starts of a node.
_ENTERED = {"If": 4, "Loop": 4, "Scan": 6}
#: The overhead of each iteration of a Loop, for its number and its condition.
_NUMBERED = 1
_FREE = ("Constant", "Identity")
#: Nodes whose own cost, as that of products, outweighs their start; the last ones collect, which
#: a loop copies each time.
_HEAVY = frozenset(
    {
        *("Einsum", *RECURRENT, "QLinearMatMul", "QLinearConv"),
        *("Concat", "ScatterElements", "ScatterND", "SequenceInsert"),
    }
)


def may_be_written_out(site: Site, form: LoopForm, trips: int) -> bool:
    """Return whether a Loop of a known trip count is so small that it may be faster written out."""
    if op_of(site.node) != "Loop" or not only_steps(site, form, trips):
        return False
    return starts(form.body.node, trips) * trips <= MOST_NODES


def refuse_few(site: Site, nodes: Sequence[NodeProto], covered: Iterable[int], trips: int) -> None:
    """Check that `nodes` take no longer than the loop of a site, which runs `trips` times, and the
    `covered` nodes.

    Raises:
        Refused: `few-iterations`.
    """
    form = LoopForm.from_node(site.node, site.opset)
    if not site.options.weigh_few_iterations or not only_steps(site, form, trips):
        return
    gone = [site.node, *(site.scope.owner.node[position] for position in covered)]
    before, after = starts(gone, trips), starts(nodes, trips)
    if after > before:
        raise site.refused(
            "few-iterations",
            f"with {trips} iterations, the most that are expected, {after} nodes would run in "
            f"place of {before}; --target scan-only does not check this",
        )


def expected(sizes: Iterable[Affine]) -> int:
    """The assumed trip count of a loop that ends at the least of these."""
    return min(map(_expected, sizes), default=FEW)


def _expected(size: Affine) -> int:
    if size.number is not None:
        return max(0, size.number)
    return UNKNOWN_TRIPS if all(atom.axis is not None for atom, _ in size.terms) else FEW


def starts(nodes: Iterable[NodeProto], trips: int) -> int:
    """Return the number of nodes that start if loops run `trips` times; of branches, the longer one
    counts.

    In a Scan, what computes something and is no step from state to state runs once, outside.
    """
    return sum(_starts_of(node, trips) for node in nodes)


def _starts_of(node: NodeProto, trips: int) -> int:
    inner = [_starts_of_body(node, graph, trips) for _, graph in scoping.subgraphs(node)]
    return max(inner, default=0) + _ENTERED.get(op_of(node), op_of(node) not in _FREE)


def _starts_of_body(node: NodeProto, graph: GraphProto, trips: int) -> int:
    if op_of(node) == "If":
        return starts(graph.node, trips)
    if op_of(node) == "Loop":
        return (starts(graph.node, trips) + _NUMBERED) * trips
    form = LoopForm.from_node(node, opset=9)  # later Scans are read in the same way
    varying = dependents(graph.node, (carried.body_input for carried in form.carried))
    states = [carried.body_output for carried in form.carried]
    _, needed = live(graph.node, states, scoping.free_names)
    found = 0
    for inner in graph.node:
        steps = not (varying.isdisjoint(inner.output) or needed.isdisjoint(inner.output))
        found += _starts_of(inner, trips) * (trips if steps or not is_worth_it(inner) else 1)
    return found


def only_steps(site: Site, form: LoopForm, trips: int) -> bool:
    """Return whether the body of a loop, of so many expected iterations, computes little but the
    next state from the previous one, so that only node starts can be saved."""
    varying = dependents(form.body.node, (carried.body_input for carried in form.carried))
    for node in form.body.node:
        heavy = op_of(node) in _HEAVY or traits_of(node).work is Work.PRODUCT
        unknown = not is_onnx_domain(node.domain) or scoping.holds_graphs(node)
        if heavy or (unknown and varying.isdisjoint(node.output)):
            return False
    stepping = {name for group in body_facts.recurrences(form) for name in group}
    carried = [state for state in form.carried if state.body_input in stepping]
    return any(not _has_operator(site, form, state, trips) for state in carried)


def _has_operator(site: Site, form: LoopForm, carried: Carried, trips: int) -> bool:
    """Return whether a state is a running sum or the like, which an operator computes at once; of
    floats, if that regroups more than a few of them."""
    producer = form.index.producers.get(carried.body_output)
    if producer is None or op_of(producer) not in KINDS or carried.body_input not in producer.input:
        return producer is None or op_of(producer) == "Identity"
    floats = elem_type_of(site.type_of(carried.initial)) in FLOATS
    return not floats or (site.options.allow_reassociation and trips > MOST_NODES)
