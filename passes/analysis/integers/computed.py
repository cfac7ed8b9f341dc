"""Values that nodes compute from constants and known sizes, before the model runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from onnx import NodeProto

from passes.analysis.sizes.static_sizes import stands_in_loop
from passes.ir.attributes import attribute, has_references
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.ir.scope import Key, Scope
from passes.operators.exactness import Array
from passes.rule import Site
from passes.types.value_types import dims_of

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
