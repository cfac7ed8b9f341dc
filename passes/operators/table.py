"""The table of operators, a row for each.

Sets that only one algorithm uses are located beside it, and so are those that were measured for
a release of onnxruntime. The reference executor has kernels of its own, so that it does not share
mistakes made here; of this table it reads only where an operator rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from passes.ir.operators import Operation, op_of
from passes.operators import (
    comparisons,
    elementwise,
    generators,
    images,
    moving,
    products,
    reductions,
    sequences,
)
from passes.operators.traits import Traits

_FAMILIES = (
    comparisons,
    elementwise,
    generators,
    images,
    moving,
    products,
    reductions,
    sequences,
)

#: The rows by operator, as `op_of` names it.
TRAITS: Mapping[str, Traits] = {op: row for family in _FAMILIES for op, row in family.ROWS.items()}
UNKNOWN = Traits()


def traits_of(node: Operation) -> Traits:
    """The traits of a node's operator, which hold for all its versions."""
    return TRAITS.get(op_of(node), UNKNOWN)


def where(holds: Callable[[Traits], object]) -> frozenset[str]:
    """The operators whose rows fulfil a condition."""
    return frozenset(op for op, row in TRAITS.items() if holds(row))


def positions(column: str) -> Mapping[str, Sequence[int]]:
    """A column of positions, of the operators that have any."""
    found = {op: getattr(row, column) for op, row in TRAITS.items()}
    return {op: places for op, places in found.items() if places}
