"""Limits the number of nodes that unrolling may write, in all loops of a model together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from passes.analysis.safety.randomness import first_random
from passes.ir import scope as scoping
from passes.ir.draft import ITERATION_KEY
from passes.ir.operators import op_of
from passes.ir.site import Refused, Site, Slot
from passes.loops.form import LoopForm

MOST_BYTES = 1 << 30  # protobuf reads no message of 2 GB
#: How often a body may be copied by loops around it, each of which copies its copies.
_MOST_COPIES = 128


@dataclass(frozen=True)
class Cost:
    """Nodes, at every depth, and bytes without weights."""

    nodes: int
    bytes: int

    def times(self, count: int) -> Cost:
        return Cost(self.nodes * count, self.bytes * count)

    def plus(self, other: Cost) -> Cost:
        return Cost(self.nodes + other.nodes, self.bytes + other.bytes)


_ALLOWED_BY_PATH: Slot[dict[str, Cost]] = Slot()
_WRITTEN_EARLIER: Slot[Cost] = Slot()


def allow(site: Site, form: LoopForm, count: int) -> None:
    """Check that `count` iterations may be written, beside what other loops were allowed.

    Raises:
        Refused: they are too many nodes or bytes; the sentence has the numbers.
    """
    allowed = site.memory.once(_ALLOWED_BY_PATH, dict)
    others = [cost for path, cost in allowed.items() if not _is_within(path, site.path)]
    spent = _sum(others, site)
    each = _cost_of(form)
    requested = each.times(count)
    most = Cost(site.options.max_nodes, MOST_BYTES)
    left = Cost(max(0, most.nodes - spent.nodes), max(0, most.bytes - spent.bytes))
    if requested.nodes > left.nodes or requested.bytes > left.bytes:
        raise _too_much(site, each, count, most, spent, left)
    allowed[site.path] = requested


def refuse_copies_of_copies(site: Site, form: LoopForm, count: int, key: str) -> None:
    """Check that what a loop writes grows with the nodes of the model, however deeply loops are
    nested.

    `count` copies of the body are to be written; loops in it whose metadata has the `key` were
    copied in the same way before.

    Raises:
        Refused: the innermost loop would be copied too often.
    """
    levels = max((_levels(node, key) for node in form.body.node), default=0)
    if levels and count ** (levels + 1) > _MOST_COPIES:
        raise site.refused(
            "too-many-nodes",
            f"{count} copies of a body in which {levels} nested loops were copied {count} "
            f"times are {count ** (levels + 1)} of the innermost one; at most {_MOST_COPIES} are "
            "allowed",
        )


def _levels(node: NodeProto, key: str) -> int:
    """The depth of nested nodes, this one included, that have a key in their metadata."""
    inner = (_levels(child, key) for child in scoping.inner_nodes(node))
    return max(inner, default=0) + any(entry.key == key for entry in node.metadata_props)


def _too_much(site: Site, each: Cost, count: int, most: Cost, spent: Cost, left: Cost) -> Refused:
    fits = min(left.nodes // each.nodes, left.bytes // max(1, each.bytes))
    taken = f", {spent.nodes} of which other loops take" if spent.nodes else ""
    what = (
        f"{count} iterations of {each.nodes} nodes are {each.nodes * count}; at most {most.nodes} "
        f"are allowed{taken}"
    )
    if each.nodes * count <= left.nodes:
        what = (
            f"{count} iterations of {each.bytes} bytes are {each.bytes * count}; at most "
            f"{most.bytes} are allowed"
        )
    return site.refused("too-many-nodes", f"{what}; {fits} iterations would fit")


def _sum(costs: list[Cost], site: Site) -> Cost:
    total = _written_earlier(site)
    for cost in costs:
        total = total.plus(cost)
    return total


def _is_within(path: str, outer: str) -> bool:
    """Return whether a loop lies in another one, whose iterations repeat it."""
    return path == outer or path.startswith(f"{outer}.")


def _cost_of(form: LoopForm) -> Cost:
    """The cost of one iteration: the nodes of the body, and one that reads each scanned input."""
    graphs = [graph for graph in scoping.graphs_below(form.body) if isinstance(graph, GraphProto)]
    nodes = sum(len(graph.node) for graph in graphs) + len(form.scanned)
    weights = sum(tensor.ByteSize() for graph in graphs for tensor in graph.initializer)
    return Cost(max(1, nodes), max(0, form.body.ByteSize() - weights))


def refuse_random(site: Site, nodes: Iterable[NodeProto]) -> None:
    """Refuse to write nodes of a body more than once if one of them draws random numbers."""
    drawing = first_random(site.model, nodes)
    if drawing is not None:
        raise site.refused("random", f"the body runs {op_of(drawing)}", *drawing.output)


def _written_earlier(site: Site) -> Cost:
    """The cost of what earlier rounds wrote into the model."""

    def counted() -> Cost:
        written = [
            node
            for _, top in scoping.owners(site.model.proto)
            for owner in scoping.graphs_below(top)
            for node in owner.node
            if any(entry.key == ITERATION_KEY for entry in node.metadata_props)
        ]
        return Cost(len(written), sum(node.ByteSize() for node in written))

    return site.memory.once(_WRITTEN_EARLIER, counted)
