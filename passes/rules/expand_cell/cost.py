"""Decides whether a recurrent operator is to be expanded."""

from __future__ import annotations

from passes.ir.attributes import attribute
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.rule import Site
from passes.types.value_types import dims_of

#: From how many rows on a Scan of an RNN is quicker than the operator, by its width.
_QUICKER = {128: 1, 64: 2, 32: 4}
#: The overhead of the Scan is that of so many steps.
_FEW_STEPS = 16


def is_wanted(site: Site) -> bool:
    """Return whether the operator is to be expanded: always, unless the target has it; even then
    where the loop is quicker."""
    options = site.options
    if options.lacking_cells and op_of(site.node) not in options.lacks:
        return options.quicker_cells and _is_quicker(site)
    return True


def _is_quicker(site: Site) -> bool:
    """Return whether the loop is quicker in onnxruntime, as measured in docs/expand.md, for weights
    that are known: others may be anything, with which an RNN is chaotic and cannot be verified."""
    node = site.node
    known = Constants(site.model, site.scope)
    if any(known.tensor(weight) is None for weight in node.input[1:3]):
        return False
    x, r = (dims_of(site.type_of(name)) or (None,) * 3 for name in (node.input[0], node.input[2]))
    if op_of(node) != "RNN" or attribute(node, "layout", 0):
        return False
    steps, rows, hidden = x[0], x[1], r[2]
    if not isinstance(hidden, int) or (isinstance(steps, int) and steps < _FEW_STEPS):
        return False
    least = [count for width, count in _QUICKER.items() if hidden >= width]
    return bool(least) and least[0] <= (rows if isinstance(rows, int) else 1)
