"""The forms of linear states: a matrix whose rows are read, and what is multiplied with it; states
whose elements are independent of each other: h' = a * h + b, max(h + a, b), or
log(exp(h + a) + exp(b))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from passes.rules.recurrences.index_notation import ONE, Factor, Notation, NotLinear, Summand
from passes.rules.recurrences.linear_states import LinearState, Read


@dataclass(frozen=True)
class Product:
    """A product of a row, which has the index `along`, with a column, which may have `columns`."""

    row: Summand
    column: Summand


@dataclass(frozen=True)
class Output:
    """A read of a state: rows times the state, `before` its update or after it, times columns; and
    products of other values."""

    read: Read
    products: tuple[tuple[Product, bool], ...]
    others: tuple[tuple[Product, int], ...]


@dataclass(frozen=True)
class Corrected:
    """The row `left`, times what the row `right` reads of a state, times the sum of `scales`."""

    left: Summand
    right: Summand
    scales: tuple[Summand, ...]


@dataclass(frozen=True)
class MatrixForm:
    """A linear state as a matrix [around.., along, columns], updated by rows times columns.

    These are indices of its axes; `columns` is None for a state that is a vector.
    """

    state: LinearState
    along: int
    columns: int | None
    around: tuple[int, ...]
    updates: tuple[Product, ...]
    correction: Corrected | None
    outputs: tuple[Output, ...]

    @classmethod
    def of(
        cls, notation: Notation, state: LinearState, reads: Sequence[Read], *, decays: bool = True
    ) -> MatrixForm:
        """The form of a state that is read only along one axis.

        Without `decays`, each element may have a decay of its own.

        Raises:
            NotLinear: there is none.
        """
        along = {*(read.along for read in reads), *(one.along for one in state.corrections)}
        if len(along) != 1 or not state.decays:
            raise NotLinear
        (row,) = along
        rows = [
            *(part for one in state.corrections for part in (one.left, one.right)),
            *(term for read in reads for term, _ in read.terms),
        ]
        used = {index for term in rows for index in _rows_of(term, row)}
        if decays:
            used |= {index for term in state.decays for index in term.indices}
        free = [index for index in state.at if index and index != row and index not in used]
        columns = free[-1] if free else None

        def apart(term: Summand, index: int = row) -> tuple[Product, ...]:
            return _taken_apart(notation, term, index, columns)

        correction = None
        found = [(one.left, read) for one in state.corrections for read in apart(one.right)]
        if found:
            left, read = found[0]
            if any((left, read.row) != (other, one.row) for other, one in found):
                raise NotLinear
            scales = tuple(one.column for _, one in found)
            if any(columns in scale.indices for scale in scales):
                raise NotLinear
            correction = Corrected(left, read.row, scales)
        return cls(
            state,
            row,
            columns,
            tuple(index for index in state.at if index and index not in (row, columns)),
            tuple(product for term in state.updates for product in apart(term)),
            correction,
            tuple(
                Output(
                    read,
                    tuple(
                        (product, before) for term, before in read.terms for product in apart(term)
                    ),
                    tuple(
                        (product, index)
                        for term in read.others
                        for index in [_only(term)]
                        for product in apart(term, index)
                    ),
                )
                for read in reads
            ),
        )

    @property
    def states(self) -> tuple[LinearState, ...]:
        """The state, as one of a form that may have several."""
        return (self.state,)

    @property
    def factors(self) -> list[Factor]:
        """The factors of its products, without decays, each once."""
        products = [
            *self.updates,
            *(product for out in self.outputs for product, _ in (*out.products, *out.others)),
        ]
        terms = [part for product in products for part in (product.row, product.column)]
        if self.correction is not None:
            terms += [self.correction.left, self.correction.right, *self.correction.scales]
        return list(dict.fromkeys(factor for term in terms for factor in term.factors))

    @property
    def reads_before(self) -> bool:
        """True if the state is read before its update."""
        reads = (before for out in self.outputs for _, before in out.products)
        return self.correction is not None or any(reads)

    @property
    def inputs(self) -> list[Factor]:
        """All that it is computed of."""
        return [*self.factors, *(one for term in self.state.decays for one in term.factors)]

    @property
    def reads(self) -> tuple[str, ...]:
        """The values that are read of it."""
        return tuple(out.read.name for out in self.outputs)

    @property
    def decays(self) -> bool:
        """True if the state decays."""
        return self.state.decays != (Summand(),)

    @property
    def decays_by_row(self) -> bool:
        """True if each row of the state has a decay of its own."""
        return any(self.along in term.indices for term in self.state.decays)


def _rows_of(term: Summand, along: int) -> set[int]:
    """The indices of factors that have the index `along`."""
    return {index for factor in term.factors if along in factor.at for index in factor.at}


def _only(term: Summand) -> int:
    """The one index that a product sums over; `ONE` for none.

    Raises:
        NotLinear: there are several.
    """
    if len(term.sums) > 1:
        raise NotLinear
    return next(iter(term.sums), 0)


def _taken_apart(
    notation: Notation, term: Summand, along: int, columns: int | None
) -> tuple[Product, ...]:
    """A product, of whose factors some may have both axes, as one of rows with columns.

    Raises:
        NotLinear: a factor has both, and is no such product.
    """

    def has_both(factor: Factor) -> bool:
        return along in factor.at and columns in factor.at

    found = []
    for one in notation.read_term(term, has_both):
        if one.sums - {along}:
            raise NotLinear
        row = tuple(factor for factor in one.factors if along and along in factor.at)
        column = tuple(factor for factor in one.factors if factor not in row)
        if along and not row:
            raise NotLinear
        found.append(Product(Summand(row), Summand(column, negative=one.negative)))
    return tuple(found)


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
    decays: tuple[tuple[Summand, ...], ...]
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
        return self.decays == ((() if self.tropical else (Summand(),)),)

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
