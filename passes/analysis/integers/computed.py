"""Values and sizes that nodes compute, though they are known before the model runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto

from passes.analysis.bodies.context import context_of
from passes.analysis.integers.integers import Integers
from passes.ir import scope as scoping
from passes.ir.attributes import attribute, has_references
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.ir.scope import Key, Scope
from passes.ir.site import Site
from passes.operators.exactness import Array
from passes.operators.table import traits_of
from passes.operators.traits import Values
from passes.types.value_types import dims_of, is_static

_MOST_BYTES = 1 << 16
_FARTHEST = 64


def computed(site: Site, name: str) -> Array | None:
    """The value of `name` at a site, where it is constant or computed from constants and sizes that
    are known."""
    return Computed(site).value(site.scope, name)


@dataclass(frozen=True)
class Computed:
    """The values computed so far, by scope and name."""

    site: Site
    known: dict[tuple[Key, str], Array | None] = field(default_factory=dict)

    def value(self, scope: Scope, name: str, distance: int = 0) -> Array | None:
        """The value that a name has in a scope, `distance` nodes before the site."""
        home = self.site.model.home(scope, name)
        if home is None or distance > _FARTHEST:
            return None
        key = (home.key, name)
        if key not in self.known:
            self.known[key] = self._at_home(home, name, distance)
        return self.known[key]

    def _at_home(self, home: Scope, name: str, distance: int) -> Array | None:
        fixed = Constants(self.site.model, home).value(name)
        node = self.site.model.producer(home.owner, name)
        if fixed is not None or node is None:
            return fixed
        if op_of(node) == "Shape":
            return self._shape(home, node)
        from passes.analysis.integers import evaluation  # loads the reference executor

        return evaluation.known_output(
            name,
            node,
            lambda operand: self.value(home, operand, distance + 1),
            self.site.opset,
            _MOST_BYTES,
        )

    def _shape(self, home: Scope, node: NodeProto) -> Array | None:
        """Return the result of a Shape of a value whose sizes are known; in a Loop they may
        change."""
        dims = dims_of(self.site.types.of(home, node.input[0]))
        sizes = [dim for dim in dims or () if isinstance(dim, int)]
        referring = has_references(node)
        if dims is None or len(sizes) < len(dims) or referring or stands_in_loop(home):
            return None
        asked = slice(attribute(node, "start", 0), attribute(node, "end", None))
        return np.array(sizes[asked], np.int64)


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
