"""Bounds of the values that a site or its body sees, floats and conditions included."""

from __future__ import annotations

from dataclasses import dataclass, field

from passes.analysis.integers.affine import Affine
from passes.analysis.integers.integer_ops import is_settled
from passes.analysis.integers.integers import Integers
from passes.ir.constants import Constants
from passes.ir.scope import Key, Scope
from passes.operators.bounds import (
    NOTHING,
    Bounded,
    Interval,
    bounds_of_constant,
    bounds_of_output,
    held,
    hull,
    type_bounds,
)
from passes.types.value_types import elem_type_of

_DEEPEST = 50


@dataclass(frozen=True)
class Intervals:
    """Follows values back to constants, sizes and `start`, a number that lies in `within`."""

    integers: Integers
    start: Affine | None = None
    within: Interval = NOTHING
    _memo: dict[tuple[Key, str], Interval | None] = field(default_factory=dict)

    def of(self, name: str) -> Interval | None:
        """The bounds of all elements of a value; None where they are unknown."""
        return self._of(self.integers.inmost, name, 0)

    def _of(self, scope: Scope, name: str, depth: int) -> Interval | None:
        home = self.integers.site.model.home(scope, name) if name else None
        if home is None:
            return None
        key = (home.key, name)
        if key not in self._memo:
            elem_type = elem_type_of(self.integers.site.types.of(home, name))
            self._memo[key] = held(None, elem_type)  # in a cycle, which no valid model has
            self._memo[key] = self._computed(home, name, elem_type, depth)
        return self._memo[key]

    def _computed(self, home: Scope, name: str, elem_type: int, depth: int) -> Interval | None:
        model = self.integers.site.model
        ints = self.integers.seen_from(home, name)
        found = None if ints is None else held(hull(map(self._of_sum, ints.items)), elem_type)
        if found is not None and found != type_bounds(elem_type):
            return found
        fixed = Constants(model, home).value(name)
        if fixed is not None:
            return bounds_of_constant(fixed)
        node = model.producer(home.owner, name)
        if node is None or not is_settled(node) or depth > _DEEPEST:
            return held(None, elem_type)
        read = Bounded(
            node,
            elem_type,
            [self._of(home, operand, depth + 1) for operand in node.input],
            lambda operand: self.integers.proven_dims(home, operand),
            Constants(model, home).value,
        )
        return bounds_of_output(read, list(node.output).index(name))

    def _of_sum(self, number: Affine) -> Interval:
        ahead = None if self.start is None else (number - self.start).number
        if ahead is None:
            return number.least, number.most
        return self.within[0] + ahead, self.within[1] + ahead
