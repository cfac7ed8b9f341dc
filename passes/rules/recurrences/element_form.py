"""A state whose elements are independent of each other: h' = a * h + b, or max(h + a, b)."""

from __future__ import annotations

from dataclasses import dataclass

from passes.rules.recurrences.index_notation import Factor
from passes.rules.recurrences.linear_states import LinearState


@dataclass(frozen=True)
class ElementForm:
    """A linear state that is read element by element: `before` its update, `after` it.

    These are the names of the values; "" for one that is not read. `tropical`: the operator
    in place of the sum, Max or Min, where the sum is in place of the product; "" for a
    linear state.
    """

    state: LinearState
    before: str
    after: str
    tropical: str = ""

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that are read of it."""
        return tuple(filter(None, (self.before, self.after)))

    @property
    def inputs(self) -> list[Factor]:
        """All that it is computed of."""
        terms = (*self.state.decays, *self.state.updates)
        return [factor for term in terms for factor in term.factors]
