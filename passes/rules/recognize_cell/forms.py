"""The cell that the body of a loop is a step of, LSTM or GRU, and the terms of its gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.rules.recognize_cell.columns import Columns, Reader
from passes.rules.recognize_cell.gates import Bias, Matrix, Product, Scaled, Sums, Term


@dataclass(frozen=True)
class Gate:
    """The terms of a gate: the element times `w`, the state times `r`, and biases.

    `inner` are the biases that a GRU resets together with the state's product.
    """

    w: Matrix
    r: Matrix
    biases: tuple[Bias, ...]
    inner: tuple[Bias, ...] = ()


class GateReader:
    """Reads the gates of one body. `element` is the name of the scanned element, `hidden` the width
    of the states."""

    def __init__(self, read: Reader, element: str, hidden: int) -> None:
        self.read, self.element, self.hidden = read, element, hidden
        self.sums = Sums(read)
        self.origin = read.body.index.source

    def gate(self, h: Carried, terms: Iterable[Term], state: str = "") -> Gate:
        """The gate with these terms, of which one must be a product of the element, one of the
        state."""
        products: dict[str, list[Matrix]] = {self.element: [], state or h.body_input: []}
        biases = []
        for term in terms:
            if isinstance(term, Bias):
                biases.append(term)
            elif isinstance(term, Product) and term.operand in products:
                products[term.operand].append(term.matrix)
            else:
                name = term.operand if isinstance(term, Product) else term.columns.name
                what = f"a gate adds {name!r}, which depends neither on the element nor the state"
                raise self.read.refusal(what, name)
        w, r = products.values()
        if len(w) != 1 or len(r) != 1 or r[0].shape != (self.hidden, self.hidden):
            raise self.read.refusal(
                f"a gate adds {len(w)} products of the element and {len(r)} of the state"
            )
        return Gate(w[0], r[0], tuple(biases))

    def summed(self, name: str, activation: str) -> list[Term]:
        return self.terms_of(self.columns(name), activation)

    def terms_of(self, columns: Columns, activation: str) -> list[Term]:
        """The terms of the sum that is the argument of an activation function."""
        source = self.read.source(columns)
        node = self.read.node(source.name)
        if node is None or op_of(node) != activation:
            kind = "a value" if node is None else op_of(node)
            what = f"{columns.name!r} comes from {kind}, where a cell has {activation}"
            raise self.read.refusal(what, columns.name)
        return self.sums.terms(source.of(node.input[0]))

    def columns(self, name: str) -> Columns:
        return self.read.source(Columns(name, self.hidden, 0, self.hidden))

    def activation(self, name: str) -> str:
        return self.activation_of(Columns(name, self.hidden, 0, self.hidden))

    def activation_of(self, columns: Columns) -> str:
        node = self.read.node(self.read.source(columns).name)
        return "" if node is None else op_of(node)

    def inputs(self, name: str, op_type: str) -> list[str]:
        """The two inputs of the node that computes a value."""
        inputs = self.read.made_by(name, op_type)
        if inputs is None or len(inputs) != 2:
            raise self.read.refusal(f"{name!r} is not computed by a {op_type} of two values", name)
        return inputs

    def reads(self, name: str, op_type: str, value: str) -> bool:
        """Return whether a value is computed by an operator that reads another value."""
        return value in map(self.origin, self.read.made_by(name, op_type) or ())

    def pick(
        self, names: Sequence[str], test: Callable[[str], bool], otherwise: str
    ) -> tuple[str, str]:
        """The one of two values that passes a test, and the other one."""
        first, second = names
        if test(first):
            return first, second
        if test(second):
            return second, first
        raise self.read.refusal(otherwise, *names)


@dataclass(frozen=True)
class Cell:
    """The step of a recurrent operator, gates and carried values in the operator's order.

    `linear`: a GRU resets the state's product, not the state (linear_before_reset).
    """

    operator: str
    states: tuple[Carried, ...]
    gates: tuple[Gate, ...]
    linear: bool = False

    @property
    def hidden(self) -> int:
        """The width of the state."""
        return self.gates[0].r.shape[1]

    @property
    def inputs(self) -> int:
        """The width of an element."""
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
        """The gate by which a product multiplies a state."""
        _, gate = self.pick(
            self.inputs(name, "Mul"),
            lambda factor: self.origin(factor) == state.body_input,
            f"{name!r} is not a gate times {state.body_input!r}",
        )
        return gate

    # -- LSTM: c' = f * c + i * g, h' = o * tanh(c')

    def _lstm(self, h: Carried, c: Carried) -> Cell:
        after = self.origin(c.body_output)
        _, o = self.pick(
            self.inputs(h.body_output, "Mul"),
            lambda name: self.reads(name, "Tanh", after),
            f"{h.body_output!r} is not a gate times the tanh of {c.body_output!r}",
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
            f"{new!r} is not a gate times a tanh",
        )
        activated = [(i, "Sigmoid"), (o, "Sigmoid"), (f, "Sigmoid"), (g, "Tanh")]
        gates = [self.gate(h, self.summed(*pair)) for pair in activated]
        return Cell("LSTM", (h, c), tuple(gates))

    # -- GRU: h' = (1 - z) * n + z * h, or n + z * (h - n)

    def _gru(self, h: Carried) -> Cell:
        z, n = self._update(h)
        terms = self.summed(n, "Tanh")
        scaled = [term for term in terms if isinstance(term, Scaled)]
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
            f"{new!r} is not a value times 1 - {z!r}",
        )
        return z, n

    def _step(self, name: str, n: str, difference: tuple[str, str]) -> str:
        """The gate that is multiplied by a difference of two values."""
        origins = [self.origin(side) for side in difference]

        def is_difference(factor: str) -> bool:
            return [self.origin(each) for each in self.read.made_by(factor, "Sub") or ()] == origins

        what = f"{name!r} is not a gate times the difference of {n!r} and the state"
        return self.pick(self.inputs(name, "Mul"), is_difference, what)[1]

    def _is_rest_of(self, name: str, gate: str) -> bool:
        """Return whether a value is 1 - gate."""
        inputs = self.read.made_by(name, "Sub")
        if inputs is None:
            return False
        one = self.read.body.rows.constants.get(self.origin(inputs[0]))
        fits = one is not None and one.ndim <= 2 and one.size in (1, self.hidden)
        ones = one is not None and fits and bool(np.all(one == 1))
        return ones and self.columns(inputs[1]) == self.columns(gate)

    def _linear(self, h: Carried, terms: Sequence[Term], scaled: Scaled) -> tuple[list[Term], Gate]:
        """The reset gate, and the gate whose product with the state it scales."""
        product, r = self.pick(
            list(scaled.factors),
            lambda name: self.activation_of(scaled.columns.of(name)) != "Sigmoid",
            f"{scaled.columns.name!r} is not a gate times a product of the state",
        )
        inner = self.sums.terms(scaled.columns.of(product))
        outer = [term for term in terms if term is not scaled]
        biases = tuple(term for term in inner if isinstance(term, Bias))
        products = [term for term in inner if not isinstance(term, Bias)]
        gate = self.gate(h, [*outer, *products])
        if any(not isinstance(term, Product) or term.operand != h.body_input for term in products):
            raise self.read.refusal(f"{product!r} is not a product of the state", product)
        reset = self.terms_of(scaled.columns.of(r), "Sigmoid")
        return reset, Gate(gate.w, gate.r, gate.biases, biases)

    def _reset_first(self, h: Carried, terms: Sequence[Term]) -> tuple[list[Term], Gate]:
        """The reset gate, and the gate whose state it scales."""
        products = [term for term in terms if isinstance(term, Product)]
        reset = [product for product in products if product.operand != self.element]
        if len(reset) != 1:
            raise self.read.refusal("no reset gate is multiplied with the state")
        r = self._factor(reset[0].operand, h)
        gate = self.gate(h, terms, state=reset[0].operand)
        return self.summed(r, "Sigmoid"), gate
