"""The cell that a body computes: an LSTM, a GRU or an RNN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from passes.loops.form import Carried
from passes.rules.recognize_cell.activations import Activation, activation_of
from passes.rules.recognize_cell.reading.columns import Columns
from passes.rules.recognize_cell.reading.forms import Cell, Gate, GateReader
from passes.rules.recognize_cell.reading.gates import Bias, Product, Scaled, Term


class CellFinder(GateReader):
    """Reads one body as that of a cell.

    An RNN computes its gate, a GRU h' = (1 - z) * n + z * h, an LSTM c' = i * g + f * c, and
    h' = o * tanh(c').
    """

    def found(self, states: Sequence[Carried]) -> Cell:
        """The cell.

        Raises:
            Refused: `not-a-cell` where the body computes something else; `weights` where a
                weight cannot be read outside.
        """
        if len(states) == 2:
            return self._lstm(states)
        if len(states) != 1:
            raise self.read.refusal(
                f"the loop carries {len(states)} values, where a recurrent operator has one or two"
            )
        (h,) = states
        after = self.whole(h.body_output)
        if self.kind(after):
            return self.cell("RNN", states, [self.gate_of(h, after)])
        return self._gru(h)

    def _lstm(self, states: Sequence[Carried]) -> Cell:
        h, c, o, output = self._output(states)
        i, f, g = self.update(c, coupled=False)
        gates = [self.gate_of(h, one, c.body_input) for one in (i, f) if one]
        if i is None:
            gates.insert(0, self.rest_of(gates[0]))
        last = self.gate_of(h, o, self.origin(c.body_output))
        cell = self.cell("LSTM", (h, c), [gates[0], last, gates[-1], self.gate_of(h, g)])
        return replace(cell, activations=(*cell.activations, output), coupled=f is None)

    def _output(self, states: Sequence[Carried]) -> tuple[Carried, Carried, Columns, Activation]:
        """The states h and c, the output gate, and the activation of c that it multiplies."""
        for h, c in permutations(states, 2):
            for name, o in permutations(self.read.made_by(h.body_output, "Mul") or (), 2):
                found = activation_of(self.read, name)
                if found and found[1] == self.origin(c.body_output) and not found[0].clip:
                    return h, c, self.whole(o), found[0]
        what = f"{h.body_output!r} is not a gate times an activation of {c.body_output!r}"
        raise self.read.refusal(what, h.body_output)

    def _gru(self, h: Carried) -> Cell:
        rest, z, n = self.update(h, coupled=True)
        activation, terms = self.activated(n)
        scaled = [term for term in terms if isinstance(term, Scaled)]
        r, new = self._linear(h, terms, scaled[0]) if scaled else self._reset_first(h, terms)
        (update,) = (self.gate_of(h, one) for one in (rest, z) if one)
        gates = (update if z else self.rest_of(update), r, replace(new, activation=activation))
        return replace(self.cell("GRU", (h,), gates), linear=bool(scaled))

    def _linear(self, h: Carried, terms: Sequence[Term], scaled: Scaled) -> tuple[Gate, Gate]:
        """The reset gate, and the gate whose product with the state it scales."""
        factors = map(scaled.columns.of, scaled.factors)
        r, product = sorted(factors, key=lambda factor: self.kind(factor) is None)
        inner = self.sums.terms(product)
        outer = [term for term in terms if term is not scaled]
        biases = tuple(term for term in inner if isinstance(term, Bias))
        products = [term for term in inner if not isinstance(term, Bias)]
        gate = self.gate(h, [*outer, *products])
        if any(not isinstance(term, Product) or term.operand != h.body_input for term in products):
            raise self.read.refusal(f"{product.name!r} is not a product of the state", product.name)
        return self.gate_of(h, r), replace(gate, inner=biases)

    def _reset_first(self, h: Carried, terms: Sequence[Term]) -> tuple[Gate, Gate]:
        """The reset gate, and the gate whose state it scales."""
        products = [term for term in terms if isinstance(term, Product)]
        reset = [product for product in products if product.operand != self.element]
        if len(reset) != 1:
            raise self.read.refusal("no reset gate is multiplied with the state")
        r = self.factor(reset[0].operand, h)
        return self.gate_of(h, r), self.gate(h, terms, state=reset[0].operand)
