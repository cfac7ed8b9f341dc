"""Loops of a few iterations: whether to leave them as they are, or to write them out.

Where nothing but nodes that start can be saved, those are counted, for loops that run as often as
is expected: where only the run tells a number, `FEW` times. Measured (onnxruntime 1.32, one thread,
3 numbers a row, microseconds before and behind, of whiles with 3 iterations; and with 16):

- `while` as a Scan 26.6 -> 34.6 (71 -> 47), with a trip count 26.6 -> 23.2 (71 -> 58)
- `while_steps` as a Scan 23.1 -> 37.4 (43 -> 51), with a trip count 23.1 -> 33.6 (43 -> 50)
- `while_and_limit` as a Scan 30.9 -> 50.3 (66 -> 64), with a trip count 30.9 -> 40.1

Such a Loop that always runs 3 times takes 22.8 as it is, 26.1 as a Scan, whose guards run once,
and 13.5 written out; 33.1, 31.2 and 16.5 for 6 times. A Scan that needs no guard takes as long as
its iterations written out: 0.93 to 1.04 times that for 2 to 4 of them, more for 8.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onnx import GraphProto, NodeProto

from passes.analysis.integers.affine import Affine
from passes.analysis.trip_count import facts
from passes.ir import scope as scoping
from passes.ir.operators import is_onnx_domain, op_of
from passes.loops.form import Carried, LoopForm
from passes.rule import Refused, Site
from passes.rules.dissolve_map.recurrences import FLOATS, KINDS
from passes.rules.time_axis.time_cost import PRODUCTS, UNKNOWN_TRIPS, is_worth_it
from passes.types.value_types import elem_type_of

#: How often a loop is taken to run whose trip count is no size, and only known in the run.
FEW = 3
#: The nodes that a loop may take that is written out.
MOST_NODES = 32
#: What a loop takes in itself, in nodes.
_ENTERED = 3
#: What each iteration of a Loop takes in itself, for its number and its condition.
_NUMBERED = 1
_FREE = ("Constant", "Identity")
#: Of what these cost, most may be saved; the last ones collect, which a loop copies each time.
# fmt: off
_HEAVY = PRODUCTS | {
    "Einsum", "GRU", "LSTM", "RNN", "QLinearMatMul", "QLinearConv", "Concat", "ScatterElements",
    "ScatterND", "SequenceInsert",
}
# fmt: on


def may_be_written_out(site: Site, form: LoopForm, trips: int) -> bool:
    """Whether a Loop of a known trip count is so small that it may be quicker written out."""
    if op_of(site.node) != "Loop" or not only_steps(site, form):
        return False
    return starts(form.body.node, trips) * trips <= MOST_NODES


def refuse_few(site: Site, nodes: Sequence[NodeProto], covered: Iterable[int], trips: int) -> None:
    """See that nodes take no longer than the loop of a site, which runs so many times, and what
    goes with it.

    Raises:
        Refused: `few-iterations`.
    """
    if not site.options.quicker or not only_steps(site, LoopForm.from_node(site.node, site.opset)):
        return
    gone = [site.node, *(site.scope.owner.node[at] for at in covered)]
    before, after = starts(gone, trips), starts(nodes, trips)
    if after > before:
        raise Refused(
            "few-iterations",
            f"with {trips} iterations, of which no more are expected, {after} nodes would run in "
            f"place of {before}; --target scan-only does not ask",
            [site.path],
        )


def expected(sizes: Iterable[Affine]) -> int:
    """How often a loop is taken to run that ends at the least of these."""
    return min(map(_expected, sizes), default=FEW)


def _expected(size: Affine) -> int:
    if size.number is not None:
        return max(0, size.number)
    return UNKNOWN_TRIPS if all(atom.axis is not None for atom, _ in size.terms) else FEW


def starts(nodes: Iterable[NodeProto], trips: int) -> int:
    """How many nodes start where loops run so many times, and of branches the longer one.

    Of a Scan, what computes something and is no step from state to state runs once, outside.
    """
    return sum(_starts_of(node, trips) for node in nodes)


def _starts_of(node: NodeProto, trips: int) -> int:
    inner = [_starts_of_body(node, graph, trips) for _, graph in scoping.subgraphs(node)]
    own = _ENTERED if op_of(node) in ("Loop", "Scan") else op_of(node) not in _FREE
    return max(inner, default=0) + own


def _starts_of_body(node: NodeProto, graph: GraphProto, trips: int) -> int:
    if op_of(node) == "If":
        return starts(graph.node, trips)
    if op_of(node) == "Loop":
        return (starts(graph.node, trips) + _NUMBERED) * trips
    form = LoopForm.from_node(node, opset=9)  # a Scan is read alike from there on
    late = {one.body_input for one in form.carried}
    needed = {one.body_output for one in form.carried}
    for one in graph.node:
        if not late.isdisjoint(scoping.free_names(one)):
            late.update(one.output)
    for one in reversed(graph.node):
        if not needed.isdisjoint(one.output):
            needed.update(scoping.free_names(one))
    found = 0
    for one in graph.node:
        steps = not (late.isdisjoint(one.output) or needed.isdisjoint(one.output))
        found += _starts_of(one, trips) * (trips if steps or not is_worth_it(one) else 1)
    return found


def only_steps(site: Site, form: LoopForm) -> bool:
    """Whether the body of a loop computes little but the next state from the last one, so that
    there is nothing to gain but the starts of nodes."""
    nodes = form.body.node
    for node in nodes:
        light = is_onnx_domain(node.domain) and op_of(node) not in _HEAVY
        if not light or scoping.holds_graphs(node):
            return False
    stepping = {name for group in facts.recurrences(form) for name in group}
    carried = [one for one in form.carried if one.body_input in stepping]
    return any(not _has_operator(site, form, one) for one in carried)


def _has_operator(site: Site, form: LoopForm, carried: Carried) -> bool:
    """Whether a state is a running sum or the like, which an operator gives for all iterations."""
    maker = next((one for one in form.body.node if carried.body_output in one.output), None)
    if maker is None or op_of(maker) not in KINDS or carried.body_input not in maker.input:
        return maker is None or op_of(maker) == "Identity"
    floats = elem_type_of(site.type_of(carried.initial)) in FLOATS
    return not floats or site.options.allow_reassociation
