"""Reads the bodies that carry one state: a GRU's and an RNN's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from passes.loops.form import Carried
from passes.rules.recognize_cell.reading.forms import Cell, Gate, LstmReader
from passes.rules.recognize_cell.reading.gates import Bias, Product, Scaled, Term


class CellFinder(LstmReader):
    """Reads one body as that of a cell."""

    def found(self, states: Sequence[Carried]) -> Cell:
        """The cell.

        Raises:
            Refused: `not-a-cell` where the body computes something else; `weights` where a
                weight cannot be read outside.
        """
        if len(states) == 2:
            return self.lstm(states)
        if len(states) != 1:
            raise self.read.refusal(
                f"the loop carries {len(states)} values, where a recurrent operator has one or two"
            )
        (h,) = states
        if self.kind(self.columns(h.body_output)):
            return self.cell("RNN", states, [self.gate_of(h, h.body_output)])
        return self._gru(h)

    # -- GRU: h' = (1 - z) * n + z * h, or n + z * (h - n)

    def _gru(self, h: Carried) -> Cell:
        z, n, negated = self._update(h)
        activation, terms = self.activated(self.columns(n))
        scaled = [term for term in terms if isinstance(term, Scaled)]
        r, new = self._linear(h, terms, scaled[0]) if scaled else self._reset_first(h, terms)
        update = self.gate_of(h, z)
        if negated and update.activation.name != "Sigmoid":
            what = f"the new value is multiplied by the gate {z!r}, the state by 1 minus it"
            raise self.read.refusal(what, z)
        gates = (update.negative() if negated else update, r, replace(new, activation=activation))
        return replace(self.cell("GRU", (h,), gates), linear=bool(scaled))

    def _update(self, h: Carried) -> tuple[str, str, bool]:
        """The update gate z, the new value n, and whether z multiplies n, not the state."""
        minuend = self.read.made_by(h.body_output, "Sub")
        if minuend is not None:  # n - z * (n - h), or h - z * (h - n)
            n, step = minuend
            return self._step(h, n, step, inverse=True)
        first, second = self.inputs(h.body_output, "Add")
        for n, step in ((first, second), (second, first)):
            factors = self.read.made_by(step, "Mul") or []
            if any(self.read.made_by(one, "Sub") and not self.rest(one) for one in factors):
                return self._step(h, n, step, inverse=False)  # n + z * (h - n), or h + z * (n - h)
        kept, new = self.pick(
            [first, second],
            lambda name: self.reads(name, "Mul", h.body_input),
            f"no addend of {h.body_output!r} is a gate times {h.body_input!r}",
        )
        z, factors = self.factor(kept, h), self.inputs(new, "Mul")
        other = self.rest(z)
        if other:  # (1 - z) * h + z * n
            _, n = self.pick(
                factors,
                lambda name: self.columns(name) == self.columns(other),
                f"{new!r} is not a value times {other!r}",
            )
            return other, n, True
        what = f"{new!r} is not a value times 1 - {z!r}"
        _, n = self.pick(factors, lambda name: self.is_rest_of(name, z), what)
        return z, n, False

    def _step(self, h: Carried, base: str, name: str, *, inverse: bool) -> tuple[str, str, bool]:
        """Reads base + gate * (other - base); `inverse`: base - gate * (base - other)."""
        factors = self.inputs(name, "Mul")
        for difference, gate in zip(factors, reversed(factors), strict=True):
            sides = self.read.made_by(difference, "Sub") or ["", ""]
            other, subtrahend = reversed(sides) if inverse else sides
            if self.origin(subtrahend) != self.origin(base):
                continue
            if self.origin(other) == h.body_input:
                return gate, base, False
            if self.origin(base) == h.body_input:
                return gate, other, True
        what = f"{name!r} is not a gate times the difference of {base!r} and the state"
        raise self.read.refusal(what, name)

    def _linear(self, h: Carried, terms: Sequence[Term], scaled: Scaled) -> tuple[Gate, Gate]:
        """The reset gate, and the gate whose product with the state it scales."""
        product, r = self.pick(
            list(scaled.factors),
            lambda name: self.kind(scaled.columns.of(name)) is None,
            f"{scaled.columns.name!r} is not a gate times a product of the state",
        )
        inner = self.sums.terms(scaled.columns.of(product))
        outer = [term for term in terms if term is not scaled]
        biases = tuple(term for term in inner if isinstance(term, Bias))
        products = [term for term in inner if not isinstance(term, Bias)]
        gate = self.gate(h, [*outer, *products])
        if any(not isinstance(term, Product) or term.operand != h.body_input for term in products):
            raise self.read.refusal(f"{product!r} is not a product of the state", product)
        activation, reset = self.activated(scaled.columns.of(r))
        first = replace(self.gate(h, reset), activation=activation)
        return first, replace(gate, inner=biases)

    def _reset_first(self, h: Carried, terms: Sequence[Term]) -> tuple[Gate, Gate]:
        """The reset gate, and the gate whose state it scales."""
        products = [term for term in terms if isinstance(term, Product)]
        reset = [product for product in products if product.operand != self.element]
        if len(reset) != 1:
            raise self.read.refusal("no reset gate is multiplied with the state")
        r = self.factor(reset[0].operand, h)
        return self.gate_of(h, r), self.gate(h, terms, state=reset[0].operand)
