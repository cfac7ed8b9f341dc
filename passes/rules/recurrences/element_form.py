"""States whose elements are independent of each other: h' = a * h + b, max(h + a, b), or
log(exp(h + a) + exp(b))."""

from __future__ import annotations

from dataclasses import dataclass

from passes.rules.recurrences.index_notation import ONE, Factor, Term
from passes.rules.recurrences.linear_states import LinearState
from passes.rules.recurrences.matrix_form import MatrixForm


@dataclass(frozen=True)
class ElementForm:
    """Linear states that are read element by element: `before` their update, `after` it.

    These are the names of the values; "" for one that is not read. States may feed each other:
    `decays` are what multiplies each state in the next of each, a sum of products, row by row of
    that matrix. `matrix`: rows alone read the one state, so its elements may be turned. `tropical`:
    the operator in place of the sum, Max, Min or LOG_ADD_EXP, where the sum is in place of the
    product; "" for linear states. `bounded`: the loop itself overflows where states are large.
    """

    states: tuple[LinearState, ...]
    decays: tuple[tuple[Term, ...], ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    tropical: str = ""
    bounded: bool = False
    matrix: MatrixForm | None = None

    @property
    def orders(self) -> list[list[int]]:
        """The indices of the axes of each state, turned."""
        form = self.matrix
        if form is None:
            return [[*state.at] for state in self.states]
        return [[*form.around, form.along, form.columns or ONE]]

    @property
    def is_plain(self) -> bool:
        """True if the state is kept as it is."""
        return self.decays == ((() if self.tropical else (Term(),)),)

    @property
    def in_order(self) -> bool:
        """True if the steps are to round as those of the loop: what reads a maximum both before its
        update and after it would take a difference in rounding between the two for a step, and
        the exponential of one is of any size."""
        return any(self.before) and any(self.after) and bool(self.tropical) and not self.is_plain

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that are read of them."""
        own = tuple(filter(None, (*self.before, *self.after)))
        return (*own, *(self.matrix.reads if self.matrix else ()))

    @property
    def inputs(self) -> list[Factor]:
        """All that they are computed of."""
        terms = [term for decay in self.decays for term in decay]
        terms += [term for state in self.states for term in state.updates]
        own = [factor for term in terms for factor in term.factors]
        return [*own, *(self.matrix.inputs if self.matrix else ())]
