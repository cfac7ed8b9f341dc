"""Sizes that a body asks a tensor for, though they are known before the model runs."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.exactness import Array
from passes.analysis.integers.integers import Integers
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.rule import Site
from passes.types.value_types import dims_of

#: What cuts sizes out of a shape.
_CUTTING = ("Gather", "Slice")
_ASKING = ("Shape", "Size")


def asks_for_sizes(node: NodeProto) -> bool:
    """Whether a node may give nothing but sizes of one tensor."""
    return op_of(node) in (*_ASKING, *_CUTTING)


def static_sizes(site: Site) -> tuple[Array, tuple[NodeProto, ...]] | None:
    """The sizes that a node gives, int64, and the nodes on which it rests that they are these:
    the Shape that the node cuts, and, where no type declares the sizes, what tells them.

    None where some are only known when the model runs. What stands in the body of a Loop may
    change its shape from one iteration to the next, whatever is declared, and tells nothing.
    """
    asking = _asking(site)
    home = None if asking is None else _home(site, asking.input[0])
    if asking is None or home is None or stands_in_loop(home):
        return None
    found = Integers(site).outside(site.node.output[0])
    numbers = [] if found is None else [item.number for item in found.items]
    if found is None or None in numbers:
        return None
    sizes = np.array(numbers if found.rank else numbers[0], np.int64)
    declared = dims_of(site.type_of(asking.input[0])) or (None,)
    if all(isinstance(dim, int) for dim in declared):
        return sizes, () if asking is site.node else (asking,)
    return sizes, context_of(site)


def _asking(site: Site) -> NodeProto | None:
    """The node itself, or the Shape that it cuts, which must stand next to it."""
    node = site.node
    if op_of(node) in _ASKING:
        return node
    made = site.model.producer(site.scope.owner, node.input[0])
    if made is None or op_of(made) != "Shape":
        return None
    return made


def _home(site: Site, name: str) -> Scope | None:
    """The scope that defines what a name means at the site."""
    return next((at for at in site.scope.chain() if site.model.defines(at.owner, name)), None)


def stands_in_loop(scope: Scope) -> bool:
    """Whether a graph is the body of a Loop, or stands in one."""
    for at in scope.chain():
        if at.outer is not None and op_of(at.outer.owner.node[int(at.key[-2])]) == "Loop":
            return True
    return False
