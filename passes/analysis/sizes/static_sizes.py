"""Sizes that a body computes, though they are known before the model runs."""

from __future__ import annotations

from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.integers import Integers
from passes.ir import scope as scoping
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.operators.exactness import Array
from passes.operators.table import traits_of
from passes.operators.traits import Values
from passes.rule import Site
from passes.types.value_types import dims_of, is_static

#: Ops that cut sizes out of a shape.
_CUTTING = ("Gather", "Slice")
_MOST = 32  # values between a row and what it is read from


def asks_for_sizes(node: NodeProto) -> bool:
    """Return whether a node may return only sizes of one tensor."""
    return traits_of(node).values is Values.SIZES or op_of(node) in _CUTTING


def static_sizes(site: Site) -> tuple[Array, tuple[NodeProto, ...]] | None:
    """The sizes that a node returns, int64, and the nodes from which they follow:
    the Shape that the node cuts, and, where no type declares the sizes, what determines them.

    None where some are known only at run time. What the body of a Loop computes of what it carries
    may change its shape between iterations, whatever is declared, and proves nothing.
    """
    asking = _asking(site)
    home = None if asking is None else site.model.home(site.scope, asking.input[0])
    if asking is None or home is None:
        return None
    if stands_in_loop(home) and not _is_read_from_outside(site, home, asking.input[0]):
        return None
    found = Integers(site).outside(site.node.output[0])
    sizes = None if found is None else found.constant
    if sizes is None:
        return None
    declared = dims_of(site.type_of(asking.input[0])) or (None,)
    if is_static(declared):
        return sizes, () if asking is site.node else (asking,)
    return sizes, context_of(site)


def _asking(site: Site) -> NodeProto | None:
    """The node itself, or the Shape that it cuts, which must be in the same graph."""
    node = site.node
    if traits_of(node).values is Values.SIZES:
        return node
    producer = site.model.producer(site.scope.owner, node.input[0])
    if producer is None or op_of(producer) != "Shape":
        return None
    return producer


def _is_read_from_outside(site: Site, body: Scope, name: str) -> bool:
    """Return whether a value of a Loop's body follows from outer values and the iteration
    number."""
    if stands_in_loop(body.outer or body) or body.outer is None:
        return False
    _, *others = scoping.input_names(body.owner)
    varying = {*others} - scoping.initializer_names(body.owner)
    pending, seen = [name], {name}
    while pending:
        read = pending.pop()
        node = site.model.producer(body.owner, read)
        if read in varying:
            return False
        if node is None:
            continue
        if len(seen) > _MOST or any(attribute.HasField("g") for attribute in node.attribute):
            return False
        pending += [one for one in node.input if one and one not in seen]
        seen.update(node.input)
    return True


def stands_in_loop(scope: Scope) -> bool:
    """Return whether a graph is the body of a Loop, or is located in one."""
    return any(op_of(place.node) == "Loop" for place in scope.holders())
