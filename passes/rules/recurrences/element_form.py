"""A state whose elements are independent of each other: h' = a * h + b, or max(h + a, b)."""

from __future__ import annotations

from dataclasses import dataclass

from passes.rules.recurrences.index_notation import ONE, Factor
from passes.rules.recurrences.linear_states import LinearState
from passes.rules.recurrences.matrix_form import MatrixForm


@dataclass(frozen=True)
class ElementForm:
    """A linear state that is read element by element: `before` its update, `after` it.

    These are the names of the values; "" for one that is not read. `matrix`: rows alone read it,
    so its elements may be turned. `tropical`: the operator in place of the sum, Max or Min, where
    the sum is in place of the product; "" for a linear state.
    """

    state: LinearState
    before: str
    after: str
    tropical: str = ""
    matrix: MatrixForm | None = None

    @property
    def order(self) -> list[int]:
        """The indices of the state's axes, turned."""
        form = self.matrix
        if form is None:
            return [*self.state.at]
        return [*form.around, form.along, form.columns or ONE]

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that are read of it."""
        own = tuple(filter(None, (self.before, self.after)))
        return (*own, *(self.matrix.reads if self.matrix else ()))

    @property
    def inputs(self) -> list[Factor]:
        """All that it is computed of."""
        terms = (*self.state.decays, *self.state.updates)
        own = [factor for term in terms for factor in term.factors]
        return [*own, *(self.matrix.inputs if self.matrix else ())]
