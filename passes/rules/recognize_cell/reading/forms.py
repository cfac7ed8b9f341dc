"""The cell that the body of a loop is a step of, and the terms of its gates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.rules.recognize_cell.activations import SIGMOID, Activation, activation_of
from passes.rules.recognize_cell.reading.columns import Columns, Reader
from passes.rules.recognize_cell.reading.gates import Bias, Matrix, Product, Scaled, Sums, Term


@dataclass(frozen=True)
class Gate:
    """The terms of a gate: the element times `w`, the state times `r`, and biases.

    `inner` are the biases that a GRU resets together with the state's product, `peephole` is the
    factor of an LSTM's memory.
    """

    w: Matrix
    r: Matrix
    biases: tuple[Bias, ...]
    inner: tuple[Bias, ...] = ()
    activation: Activation = SIGMOID
    peephole: Bias | None = None

    def negative(self) -> Gate:
        """The gate of the negated terms, whose sigmoid is 1 minus that of the terms."""
        return replace(
            self,
            w=replace(self.w, negative=True),
            r=replace(self.r, negative=True),
            biases=tuple(replace(bias, negative=True) for bias in self.biases),
            peephole=self.peephole and replace(self.peephole, negative=True),
        )


@dataclass(frozen=True)
class Cell:
    """The step of a recurrent operator, gates and carried values in the operator's order.

    `activations`: one of each kind of gate, then that of an LSTM's output. `linear`: a GRU resets
    the state's product, not the state (linear_before_reset). `coupled`: the gate f of an LSTM is 1
    minus the gate i (input_forget).
    """

    operator: str
    states: tuple[Carried, ...]
    gates: tuple[Gate, ...]
    activations: tuple[Activation, ...]
    linear: bool = False
    coupled: bool = False

    @property
    def hidden(self) -> int:
        """The width of the state."""
        return self.gates[0].r.shape[1]

    @property
    def inputs(self) -> int:
        """The width of an element."""
        return self.gates[0].w.shape[0]


class GateReader:
    """Reads the gates of one body. `element` is the name of the scanned element, `hidden` the width
    of the states."""

    def __init__(self, read: Reader, element: str, hidden: int) -> None:
        self.read, self.element, self.hidden = read, element, hidden
        self.sums = Sums(read)
        self.origin = read.origin

    def cell(self, operator: str, states: Sequence[Carried], gates: Sequence[Gate]) -> Cell:
        """The cell with these gates, all but the last with one activation.

        Raises:
            Refused: `not-a-cell` where activations or bounds differ.
        """
        kinds = list(dict.fromkeys(gate.activation for gate in gates[:-1]))
        kinds.append(gates[-1].activation)
        if len(kinds) > 2 or len({kind.clip for kind in kinds}) > 1:
            found = ", ".join(map(str, kinds))
            raise self.read.refusal(f"its gates have the activations {found}")
        return Cell(operator, tuple(states), tuple(gates), tuple(kinds))

    def gate(self, h: Carried, terms: Iterable[Term], state: str = "", memory: str = "") -> Gate:
        """The gate with these terms, of which one must be a product of the element, one of the
        state; one may be the memory times a vector."""
        products: dict[str, list[Matrix]] = {self.element: [], state or h.body_input: []}
        biases, peepholes = [], []
        for term in terms:
            if isinstance(term, Bias):
                biases.append(term)
            elif isinstance(term, Product) and term.operand in products:
                products[term.operand].append(term.matrix)
            elif isinstance(term, Scaled) and memory and self._scales(term, memory):
                peepholes.append(self._factor_of(term, memory))
            else:
                name = term.operand if isinstance(term, Product) else term.columns.name
                what = f"a gate adds {name!r}, which depends neither on the element nor the state"
                raise self.read.refusal(what, name)
        w, r = products.values()
        if len(w) != 1 or len(r) != 1 or r[0].shape != (self.hidden, self.hidden):
            raise self.read.refusal(
                f"a gate adds {len(w)} products of the element and {len(r)} of the state"
            )
        if len(peepholes) > 1:
            raise self.read.refusal("a gate adds the memory twice")
        return Gate(w[0], r[0], tuple(biases), peephole=peepholes[0] if peepholes else None)

    def _scales(self, term: Scaled, memory: str) -> bool:
        whole = term.columns == Columns(term.columns.name, self.hidden, 0, self.hidden)
        return whole and memory in map(self.origin, term.factors)

    def _factor_of(self, term: Scaled, memory: str) -> Bias:
        """The vector by which a term multiplies the memory."""
        first, second = term.factors
        other = second if self.origin(first) == memory else first
        return self.sums.bias(self.read.source(term.columns.of(other)))

    def activated(self, columns: Columns) -> tuple[Activation, list[Term]]:
        """The activation that these columns are the result of, and the terms of its argument."""
        source = self.read.source(columns)
        found = activation_of(self.read, source.name)
        if found is None:
            node = self.read.node(source.name)
            kind = "a value" if node is None else op_of(node)
            what = f"{columns.name!r} comes from {kind}, where a cell has an activation function"
            raise self.read.refusal(what, columns.name)
        return found[0], self.sums.terms(source.of(found[1]))

    def gate_of(self, h: Carried, name: str, memory: str = "") -> Gate:
        """The gate that a value is."""
        activation, terms = self.activated(self.columns(name))
        return replace(self.gate(h, terms, memory=memory), activation=activation)

    def columns(self, name: str) -> Columns:
        """The columns that a value as wide as the states is cut out of."""
        return self.read.source(Columns(name, self.hidden, 0, self.hidden))

    def kind(self, columns: Columns) -> Activation | None:
        """The activation that columns are the result of."""
        found = activation_of(self.read, self.read.source(columns).name)
        return found and found[0]

    def inputs(self, name: str, op_type: str) -> list[str]:
        """The two inputs of the node that computes a value."""
        inputs = self.read.made_by(name, op_type)
        if inputs is None or len(inputs) != 2:
            raise self.read.refusal(f"{name!r} is not computed by a {op_type} of two values", name)
        return inputs

    def reads(self, name: str, op_type: str, value: str) -> bool:
        """Return whether a value is computed by an operator that reads another value."""
        return value in map(self.origin, self.read.made_by(name, op_type) or ())

    def factor(self, name: str, state: Carried) -> str:
        """The gate by which a product multiplies a state."""
        _, gate = self.pick(
            self.inputs(name, "Mul"),
            lambda factor: self.origin(factor) == state.body_input,
            f"{name!r} is not a gate times {state.body_input!r}",
        )
        return gate

    def rest(self, name: str) -> str:
        """The value of which this one is the rest, 1 minus it; "" where it is none."""
        inputs = self.read.made_by(name, "Sub")
        if inputs is None:
            return ""
        one = self.read.body.rows.constants.get(self.origin(inputs[0]))
        fits = one is not None and one.ndim <= 2 and one.size in (1, self.hidden)
        return inputs[1] if one is not None and fits and bool(np.all(one == 1)) else ""

    def is_rest_of(self, name: str, gate: str) -> bool:
        """Return whether a value is 1 - gate."""
        other = self.rest(name)
        return bool(other) and self.columns(other) == self.columns(gate)

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


class LstmReader(GateReader):
    """Reads one body as that of an LSTM: c' = f * c + i * g, h' = o * tanh(c')."""

    def lstm(self, states: Sequence[Carried]) -> Cell:
        """The cell.

        Raises:
            Refused: `not-a-cell` where the body computes something else.
        """
        h, c = states
        if self._output(h, c) is None:
            h, c = c, h
        found = self._output(h, c)
        if found is None:
            what = f"{h.body_output!r} is not a gate times an activation of {c.body_output!r}"
            raise self.read.refusal(what, h.body_output)
        o, output = found
        kept, new = self.pick(
            self.inputs(c.body_output, "Add"),
            lambda name: self.reads(name, "Mul", c.body_input),
            f"no addend of {c.body_output!r} is a gate times {c.body_input!r}",
        )
        f, factors = self.factor(kept, c), self.inputs(new, "Mul")
        memory = c.body_input
        if self.rest(f):
            i, g = self.pick(
                factors, lambda name: self.is_rest_of(f, name), f"{f!r} is 1 minus another gate"
            )
            gates = [self.gate_of(h, i, memory)] * 2
        else:
            gates, g = self._apart(h, f, factors, memory)
        last = self.gate_of(h, o, self.origin(c.body_output))
        ordered = [gates[0], last, gates[1], self.gate_of(h, g)]
        cell = self.cell("LSTM", (h, c), ordered)
        return replace(cell, activations=(*cell.activations, output), coupled=bool(self.rest(f)))

    def _output(self, h: Carried, c: Carried) -> tuple[str, Activation] | None:
        """The output gate, and the activation of the memory that it multiplies."""
        factors = self.read.made_by(h.body_output, "Mul")
        for name, o in zip(factors or (), reversed(factors or ()), strict=True):
            found = activation_of(self.read, name)
            if found and found[1] == self.origin(c.body_output) and not found[0].clip:
                return o, found[0]
        return None

    def _apart(
        self, h: Carried, f: str, factors: Sequence[str], memory: str
    ) -> tuple[list[Gate], str]:
        """The gates i and f, and the name of g."""
        forget = self.gate_of(h, f, memory)
        for i, g in (factors, factors[::-1]):
            if self.is_rest_of(i, f) and forget.activation.name == "Sigmoid":
                return [forget.negative(), forget], g
        for i, g in (factors, factors[::-1]):
            if self.kind(self.columns(i)) == forget.activation:
                return [self.gate_of(h, i, memory), forget], g
        raise self.read.refusal(f"no factor of {factors} has the activation of {f!r}", f)
