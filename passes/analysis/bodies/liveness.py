"""Finds the nodes that contribute to values that are read; others may be removed, unless they might
fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from onnx import GraphProto, NodeProto

from passes.analysis.bodies.nested_graphs import NestedGraph
from passes.analysis.integers.integers import Integers
from passes.analysis.safety.may_fail import may_go
from passes.analysis.safety.randomness import is_pure
from passes.analysis.safety.shapes_fit import Known
from passes.ir import scope as scoping
from passes.ir.live import Walk, orphaned
from passes.ir.operators import op_of
from passes.ir.site import Site
from passes.loops.form import LoopForm
from passes.types.value_types import Dims


@dataclass(frozen=True)
class Live:
    """The positions of the nodes of a body that stay, and the names that these or others read.

    `blockers` are the positions of unused nodes that may fail, and so stay.
    """

    nodes: frozenset[int]
    names: frozenset[str]
    blockers: tuple[int, ...]

    @classmethod
    def of(cls, level: NestedGraph, wanted: Iterable[str], feeds: Mapping[str, str]) -> Live:
        """Return the nodes and inputs that contribute to the `wanted` names; `feeds` maps inputs of
        the body to the outputs that the next iteration receives there.

        Random nodes and those of unknown operators stay. What might fail, as it does in the
        original, stays too, unless inputs are assumed to be valid.
        """
        walk = Walk(level.graph.node, feeds)
        impure = [position for position, node in enumerate(level.graph.node) if not is_pure(node)]
        walk.reach(wanted, impure)
        blockers: list[int] = []
        if not level.site.assumes("valid-inputs"):
            rest = enumerate(level.graph.node)
            dead = [(position, node) for position, node in rest if position not in walk.nodes]
            blockers = [position for position, node in dead if not level.may_go(node)]
            walk.reach((), blockers)
        return cls(frozenset(walk.nodes), frozenset(walk.names), tuple(blockers))


def doubts_of(
    site: Site, form: LoopForm, dims: Callable[[str], Dims | None] | None = None
) -> frozenset[str]:
    """Outputs of the nodes of a loop's body that might fail, and so stay even if they are unused.

    Also those that are read: their readers may turn out to be constant, as a Shape does.
    `dims` returns the shapes in the body, where more is known about them than the model declares.
    """
    level = NestedGraph.of(site, form.body, "body")
    known = level.known
    if dims is not None:
        trusted = site.assumes("valid-inputs")
        known = replace(known, dims_of=level.as_here(dims), trusted=trusted)
    return frozenset(
        name for node in form.body.node if not may_go(node, known) for name in node.output if name
    )


def outputs_of(graph: GraphProto, positions: Iterable[int]) -> list[str]:
    """The outputs of the nodes at these positions, for culprits."""
    nodes: list[NodeProto] = [graph.node[position] for position in positions]
    return [name for node in nodes for name in node.output if name]


def dead_after_rewrite(
    site: Site, integers: Integers, covered: Iterable[int], written: Iterable[NodeProto]
) -> tuple[int, ...]:
    """The positions of the covered nodes, and of those that only fed nodes that go.

    Only nodes that cannot fail, or compute only sizes and guards of sizes, are dropped; where
    inputs are assumed to be valid, all that draw no random numbers.
    """
    owner = site.scope.owner
    gone = {site.place.index, *covered}
    still = {name for node in written for name in scoping.free_names(node)}
    known = Known(
        site.opset,
        lambda name: integers.proven_dims(site.scope, name),
        site.constant,
        type_of=site.type_of,
    )

    def goes(node: NodeProto) -> bool:
        return still.isdisjoint(node.output) and _goes_unseen(integers, node, known)

    fed = [name for position in gone for name in scoping.free_names(owner.node[position])]
    return tuple(sorted(orphaned(site.graph, fed, gone, goes) - {site.place.index}))


def _goes_unseen(integers: Integers, node: NodeProto, known: Known) -> bool:
    if integers.site.assumes("valid-inputs") and is_pure(node):
        return True
    if scoping.holds_graphs(node):
        return False
    if may_go(node, known):
        return True
    if op_of(node) == "ConstantOfShape":
        sizes = integers.outside(node.input[0])
        if sizes is None or sizes.rank != 1:
            return False
        return all(size.at_least(0) for size in sizes.items)
    found = integers.outside(node.output[0])
    return found is not None and all(
        atom.axis is not None for item in found.items for atom, _ in item.terms
    )
