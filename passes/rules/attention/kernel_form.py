"""A linear state as what onnxruntime's LinearAttention computes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import prod

from passes.rules.recurrences.forms import MatrixForm, Output
from passes.rules.recurrences.index_notation import Factor, Notation, NotLinear, Summand
from passes.types.value_types import is_static

#: What a factor is taken apart at.
_MOST_STEPS = 64


@dataclass(frozen=True)
class KernelForm:
    """S = decay * S; S = S + beta * key (value - key . S), or S + key value without `beta`; then
    one `output` reads it.

    `decay`: factors of a product, none of them where the state does not decay.
    """

    form: MatrixForm
    notation: Notation
    key: Summand
    value: Summand
    beta: Summand | None
    decay: tuple[Factor, ...]
    output: Output

    @classmethod
    def of(cls, form: MatrixForm, notation: Notation) -> KernelForm:
        """The form of a state.

        Raises:
            NotLinear: it is updated or read in another way, or a size is unknown.
        """
        if form.columns is None or len(form.updates) != 1 or len(form.outputs) != 1:
            raise NotLinear
        if len(form.state.decays) != 1 or form.state.decays[0].negative:
            raise NotLinear
        (output,) = form.outputs
        if len(output.products) != 1 or output.products[0][1]:
            raise NotLinear
        inner = (notation.sizes[form.along], notation.sizes[form.columns])
        if len(_open(form, notation)) > 1 or not is_static(inner):
            raise NotLinear
        (update,), decay = form.updates, form.state.decays[0].factors
        if form.correction is None:
            found = cls(form, notation, update.row, update.column, None, decay, output)
        else:
            left, right, scales = (
                form.correction.left,
                form.correction.right,
                form.correction.scales,
            )
            if len(scales) != 1 or any(term.negative for term in (left, right, *scales)):
                raise NotLinear
            corrected, seen = left.factors, (*right.factors, *scales[0].factors)
            updated = (*update.row.factors, *update.column.factors)
            try:
                parts = _delta(form.along, corrected, seen, updated, decay)
            except NotLinear:
                products = (_factors(notation, one) for one in (corrected, seen, updated, decay))
                parts = _delta(form.along, *products)
            if update.row.negative != update.column.negative:
                parts = parts[0], replace(parts[1], negative=True), parts[2]
            found = cls(form, notation, *parts, decay, output)
        rate = found.beta or Summand()
        wrong = ((found.key, form.columns), (found.value, form.along), (rate, form.columns))
        if any(index in term.indices for term, index in (*wrong, (rate, form.along))):
            raise NotLinear
        return found

    @property
    def rule(self) -> str:
        """The update rule."""
        kind = "linear" if self.beta is None else "delta"
        if not self.decay:
            return kind
        return "gated" if self.beta is None else "gated_delta"

    @property
    def batch(self) -> tuple[int, ...]:
        """The axis around rows and columns whose size is unknown, if there is one."""
        return _open(self.form, self.notation)

    @property
    def heads(self) -> tuple[int, ...]:
        """The other ones."""
        return tuple(index for index in self.form.around if index not in self.batch)

    def size(self, *indices: int) -> int:
        """The product of the sizes of these axes, which are known."""
        return prod(int(self.notation.sizes[index] or 0) for index in indices)

    @property
    def rows(self) -> int:
        """The size of a key."""
        return self.size(self.form.along)

    @property
    def columns(self) -> int:
        """The size of a value."""
        return self.size(self.form.columns or 0)


def _open(form: MatrixForm, notation: Notation) -> tuple[int, ...]:
    """The axes around whose size is unknown."""
    return tuple(one for one in form.around if not isinstance(notation.sizes[one], int))


def _delta(
    along: int,
    corrected: tuple[Factor, ...],
    seen: tuple[Factor, ...],
    updated: tuple[Factor, ...],
    decay: tuple[Factor, ...],
) -> tuple[Summand, Summand, Summand]:
    """Key, value and rate: the state, decayed, is read by the key that it is updated with.

    Raises:
        NotLinear: by another one.
    """
    key = tuple(factor for factor in seen if along in factor.at and factor not in decay)
    rate = _without((*corrected, *seen), (*key, *key, *decay))
    return Summand(key), Summand(_without(updated, (*key, *rate))), Summand(rate)


def _without(factors: tuple[Factor, ...], gone: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Factors without others, each as often.

    Raises:
        NotLinear: one is not among them.
    """
    left = Counter(factors)
    left.subtract(Counter(gone))
    if any(count < 0 for count in left.values()):
        raise NotLinear
    return tuple(left.elements())


def _factors(notation: Notation, factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """Return the factors of these products, as far as they are products."""
    pending, found = list(factors), list[Factor]()
    for _ in range(_MOST_STEPS):
        if not pending:
            return tuple(found)
        factor = pending.pop(0)
        try:
            (term,) = notation.step(factor)
            if term.sums or term.negative:
                raise NotLinear
            pending = [*term.factors, *pending]
        except (NotLinear, ValueError):
            found.append(factor)
    raise NotLinear
