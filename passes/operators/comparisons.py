"""Comparisons, and operators of truth values."""

from __future__ import annotations

from collections.abc import Mapping

from passes.operators.table import TRAITS

#: The comparisons, with the signs of the difference of their operands for which they are true.
COMPARISONS: Mapping[str, str] = {op: row.compares for op, row in TRAITS.items() if row.compares}
_BY_SIGNS = {frozenset(signs): op for op, signs in COMPARISONS.items()}
_OPPOSITE = str.maketrans("<>", "><")
#: The comparison that is true of the same two operands in reverse order.
SWAPPED: Mapping[str, str] = {
    op: _BY_SIGNS[frozenset(signs.translate(_OPPOSITE))] for op, signs in COMPARISONS.items()
}
#: The comparison that is true where another one is false, NaN aside; Equal has none.
NEGATED: Mapping[str, str] = {
    op: _BY_SIGNS[others]
    for op, signs in COMPARISONS.items()
    if (others := frozenset("<=>").difference(signs)) in _BY_SIGNS
}
#: The comparisons that are true on one side of a bound.
ORDERINGS = frozenset(op for op, signs in COMPARISONS.items() if ("<" in signs) != (">" in signs))
#: The operators of truth values.
LOGIC = tuple(op for op, row in TRAITS.items() if row.logic)


def holds(op: str, least: float, most: float) -> bool | None:
    """Return whether a comparison is true of operands whose difference lies in this range; None if
    that depends on the difference, or may. An end that is NaN, as that of infinities, is open."""
    excluded = {"<": least >= 0, "=": least > 0 or most < 0, ">": most <= 0}
    outcomes = {sign in COMPARISONS[op] for sign, is_out in excluded.items() if not is_out}
    return outcomes.pop() if len(outcomes) == 1 else None
