"""Which cell the body of a loop is a step of, LSTM or GRU, and what its gates sum up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passes.loop_form import Carried
from passes.rules.cell_gates import Bias, Product, Scaled, Term
from passes.rules.cell_parts import Gate, GateReader


@dataclass(frozen=True)
class Cell:
    """The step of a recurrent operator, gates and carried values in the order of its document.

    `linear`: a GRU resets the state's product, not the state (linear_before_reset).
    """

    operator: str
    states: tuple[Carried, ...]
    gates: tuple[Gate, ...]
    linear: bool = False

    @property
    def hidden(self) -> int:
        """How wide the state is."""
        return self.gates[0].r.shape[1]

    @property
    def inputs(self) -> int:
        """How wide an element is."""
        return self.gates[0].w.shape[0]


class CellFinder(GateReader):
    """Reads one body as that of a cell."""

    def cell(self, states: Sequence[Carried]) -> Cell:
        """The cell.

        Raises:
            Refused: `not-a-cell` where the body computes something else; `weights` where a
                weight cannot be read outside.
        """
        if len(states) == 1:
            return self._gru(states[0])
        if len(states) != 2:
            raise self.read.refusal(
                f"the loop carries {len(states)} values, where an LSTM has two and a GRU has one"
            )
        first, second = states
        if self.read.made_by(first.body_output, "Mul") is None:
            first, second = second, first
        return self._lstm(first, second)

    def _factor(self, name: str, state: Carried) -> str:
        """The gate that a product multiplies with a state."""
        _, gate = self.pick(
            self.inputs(name, "Mul"),
            lambda one: self.origin(one) == state.body_input,
            f"{name!r} is no gate times {state.body_input!r}",
        )
        return gate

    # -- LSTM: c' = f * c + i * g, h' = o * tanh(c')

    def _lstm(self, h: Carried, c: Carried) -> Cell:
        after = self.origin(c.body_output)
        _, o = self.pick(
            self.inputs(h.body_output, "Mul"),
            lambda name: self.reads(name, "Tanh", after),
            f"{h.body_output!r} is no gate times the tanh of {c.body_output!r}",
        )
        kept, new = self.pick(
            self.inputs(c.body_output, "Add"),
            lambda name: self.reads(name, "Mul", c.body_input),
            f"no addend of {c.body_output!r} is a gate times {c.body_input!r}",
        )
        f = self._factor(kept, c)
        g, i = self.pick(
            self.inputs(new, "Mul"),
            lambda name: self.activation(name) == "Tanh",
            f"{new!r} is no gate times a tanh",
        )
        activated = [(i, "Sigmoid"), (o, "Sigmoid"), (f, "Sigmoid"), (g, "Tanh")]
        gates = [self.gate(h, self.summed(*one)) for one in activated]
        return Cell("LSTM", (h, c), tuple(gates))

    # -- GRU: h' = (1 - z) * n + z * h, or n + z * (h - n)

    def _gru(self, h: Carried) -> Cell:
        z, n = self._update(h)
        terms = self.summed(n, "Tanh")
        scaled = [one for one in terms if isinstance(one, Scaled)]
        r, new = self._linear(h, terms, scaled[0]) if scaled else self._reset_first(h, terms)
        gates = (self.gate(h, self.summed(z, "Sigmoid")), self.gate(h, r), new)
        return Cell("GRU", (h,), gates, linear=bool(scaled))

    def _update(self, h: Carried) -> tuple[str, str]:
        """The update gate z and the new value n."""
        minuend = self.read.made_by(h.body_output, "Sub")
        if minuend is not None:  # n - z * (n - h)
            n, step = minuend
            return self._step(step, n, (n, h.body_input)), n
        first, second = self.inputs(h.body_output, "Add")
        for n, step in ((first, second), (second, first)):
            if self.activation(n) == "Tanh":  # n + z * (h - n)
                return self._step(step, n, (h.body_input, n)), n
        kept, new = self.pick(
            [first, second],
            lambda name: self.reads(name, "Mul", h.body_input),
            f"no addend of {h.body_output!r} is a gate times {h.body_input!r}",
        )
        z = self._factor(kept, h)
        _, n = self.pick(
            self.inputs(new, "Mul"),
            lambda name: self._is_rest_of(name, z),
            f"{new!r} is no value times 1 - {z!r}",
        )
        return z, n

    def _step(self, name: str, n: str, difference: tuple[str, str]) -> str:
        """The gate that is multiplied with a difference of two values."""
        wanted = [self.origin(one) for one in difference]

        def is_difference(one: str) -> bool:
            return [self.origin(each) for each in self.read.made_by(one, "Sub") or ()] == wanted

        what = f"{name!r} is no gate times the difference of {n!r} and the state"
        return self.pick(self.inputs(name, "Mul"), is_difference, what)[1]

    def _is_rest_of(self, name: str, gate: str) -> bool:
        """Whether a value is 1 - gate."""
        inputs = self.read.made_by(name, "Sub")
        if inputs is None:
            return False
        one = self.read.body.rows.constants.get(self.origin(inputs[0]))
        fits = one is not None and one.ndim <= 2 and one.size in (1, self.hidden)
        ones = one is not None and fits and bool(np.all(one == 1))
        return ones and self.columns(inputs[1]) == self.columns(gate)

    def _linear(self, h: Carried, terms: Sequence[Term], scaled: Scaled) -> tuple[list[Term], Gate]:
        """The reset gate, and the gate whose product of the state it is multiplied with."""
        product, r = self.pick(
            list(scaled.factors),
            lambda name: self.activation_of(scaled.columns.at(name)) != "Sigmoid",
            f"{scaled.columns.name!r} is no gate times what the state gives",
        )
        inner = self.sums.terms(scaled.columns.at(product))
        outer = [one for one in terms if one is not scaled]
        biases = tuple(one for one in inner if isinstance(one, Bias))
        products = [one for one in inner if not isinstance(one, Bias)]
        gate = self.gate(h, [*outer, *products])
        if any(not isinstance(one, Product) or one.operand != h.body_input for one in products):
            raise self.read.refusal(f"{product!r} is no product of the state", product)
        reset = self.terms_of(scaled.columns.at(r), "Sigmoid")
        return reset, Gate(gate.w, gate.r, gate.biases, biases)

    def _reset_first(self, h: Carried, terms: Sequence[Term]) -> tuple[list[Term], Gate]:
        """The reset gate, and the gate whose state it is multiplied with."""
        products = [one for one in terms if isinstance(one, Product)]
        reset = [one for one in products if one.operand != self.element]
        if len(reset) != 1:
            raise self.read.refusal("no reset gate is multiplied with the state")
        r = self._factor(reset[0].operand, h)
        gate = self.gate(h, terms, state=reset[0].operand)
        return self.summed(r, "Sigmoid"), gate
