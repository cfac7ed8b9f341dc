"""Nodes that nobody needs any more once a loop is gone."""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from passes.analysis.bodies.readers import makers_around, readers_around
from passes.analysis.integers.integers import Integers
from passes.analysis.safety.shape_checks import Reading
from passes.analysis.safety.shapes_fit import fits
from passes.analysis.safety.speculation import SPECULATABLE
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.rule import Site

_FAILS_ON_SHAPES_ONLY = SPECULATABLE | {"Squeeze", "Unsqueeze"}


def dead_after_rewrite(
    site: Site, integers: Integers, covered: Iterable[int], written: Iterable[NodeProto]
) -> tuple[int, ...]:
    """The positions of the covered nodes and of those that only fed the nodes that go.

    Only nodes that cannot fail, or give nothing but sizes and guards of sizes, go unseen.
    """
    owner, readers, makers = site.scope.owner, readers_around(site), makers_around(site)
    gone = {site.place.index, *covered}
    still = {name for node in written for name in scoping.free_names(node)}
    reading = Reading(
        site.opset, lambda name: integers.proven_dims(site.scope, name), site.constant
    )
    pending = list(gone)
    while pending:
        node = owner.node[pending.pop()]
        for name in scoping.free_names(node):
            at = makers.get(name)
            if at is None or at in gone or not _may_go(integers, owner.node[at], reading):
                continue
            outputs = [one for one in owner.node[at].output if one]
            if any(one in still or not gone.issuperset(readers.get(one, ())) for one in outputs):
                continue
            gone.add(at)
            pending.append(at)
    return tuple(sorted(gone - {site.place.index}))


def _may_go(integers: Integers, node: NodeProto, reading: Reading) -> bool:
    if any(True for _ in scoping.subgraphs(node)):
        return False
    if op_of(node) == "SequenceEmpty":
        return True
    if op_of(node) in _FAILS_ON_SHAPES_ONLY and fits(node, reading):
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
