"""The cell that the body of a loop is a step of: its activations, and the terms of its gates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import number
from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.operators.cells import ACTIVATIONS
from passes.rules.recognize_cell.columns import Columns, Reader
from passes.rules.recognize_cell.gates import (
    Bias,
    GateTerm,
    Matrix,
    Product,
    Scaled,
    Sums,
)

#: The functions that a recurrent operator computes as the operator of their name does.
FUNCTIONS = {
    name: one for name, one in ACTIVATIONS.items() if one.is_operator and not one.overflows
}


@dataclass(frozen=True)
class Activation:
    """A function of a recurrent operator; `clip` bounds its argument, 0 where nothing does."""

    name: str
    parameters: tuple[float, ...] = ()
    clip: float = 0.0

    def __str__(self) -> str:
        bound = f" of what is clipped to {self.clip:g}" if self.clip else ""
        return f"{self.name}{self.parameters or ''}{bound}"


SIGMOID = Activation("Sigmoid")


def activation_of(read: Reader, name: str) -> tuple[Activation, str] | None:
    """The activation that a value is the result of, and its argument; None for another value."""
    node = read.node(read.origin(name))
    if node is None or op_of(node) not in FUNCTIONS:
        return None
    function = FUNCTIONS[op_of(node)]
    given = zip(function.parameters, function.defaults, strict=True)
    parameters = tuple(number(node, key, default) for key, default in given)
    argument = read.origin(node.input[0])
    clipped = read.node(argument)
    clip = 0.0 if clipped is None or op_of(clipped) != "Clip" else _bound(read, clipped)
    if clipped is not None and clip:
        argument = clipped.input[0]
    return Activation(function.name, parameters, clip), argument


def _bound(read: Reader, node: NodeProto) -> float:
    """The bound of a Clip from -bound to bound, 0.0 where it is none."""
    bounds = [read.body.rows.constants.get(read.origin(name)) for name in node.input[1:3]]
    values = [float(one.item()) for one in bounds if isinstance(one, np.ndarray) and one.size == 1]
    symmetric = len(values) == 2 and values[0] == -values[1] and 0 < values[1] < np.inf
    return values[1] if symmetric else 0.0


@dataclass(frozen=True)
class Gate:
    """The terms of a gate: the element times `w`, the state times `r`, and biases.

    `inner` are the biases that a GRU resets together with the state's product, `peepholes` the
    factors of the memory c.
    """

    w: Matrix
    r: Matrix
    biases: tuple[Bias, ...]
    inner: tuple[Bias, ...] = ()
    activation: Activation = SIGMOID
    peepholes: tuple[Bias, ...] = ()

    def negative(self) -> Gate:
        """The gate of the negated terms, whose sigmoid is 1 minus that of the terms."""
        return replace(
            self,
            w=replace(self.w, negative=True),
            r=replace(self.r, negative=True),
            biases=tuple(replace(bias, negative=True) for bias in self.biases),
            peepholes=tuple(replace(vector, negative=True) for vector in self.peepholes),
        )


@dataclass(frozen=True)
class Cell:
    """The step of a recurrent operator, gates and carried values in the operator's order.

    `inputs` is the width of an element, `hidden` that of a state. `activations`: one of each kind
    of gate, then that of the memory c. `linear`: a GRU resets the state's product, not the state
    (linear_before_reset). `coupled`: the gate f is 1 minus the gate i (input_forget).
    """

    operator: str
    states: tuple[Carried, ...]
    inputs: int
    hidden: int
    gates: tuple[Gate, ...] = ()
    activations: tuple[Activation, ...] = ()
    linear: bool = False
    coupled: bool = False


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
        (inputs, _), (_, hidden) = gates[0].w.shape, gates[0].r.shape
        return Cell(operator, tuple(states), inputs, hidden, tuple(gates), tuple(kinds))

    def gate(
        self, h: Carried, terms: Iterable[GateTerm], state: str = "", memory: str = ""
    ) -> Gate:
        """The gate with these terms, of which one must be a product of the element, one of the
        state; others may be the memory times a vector."""
        products: dict[str, list[Matrix]] = {self.element: [], state or h.body_input: []}
        biases, peepholes = [], []
        for term in terms:
            if isinstance(term, Bias):
                biases.append(term)
            elif isinstance(term, Product) and term.operand in products:
                products[term.operand].append(term.matrix)
            elif isinstance(term, Scaled) and (peephole := self._peephole(term, memory)):
                peepholes.append(peephole)
            else:
                name = term.operand if isinstance(term, Product) else term.columns.name
                what = f"a gate adds {name!r}, which depends neither on the element nor the state"
                raise self.read.refusal(what, name)
        w, r = products.values()
        if len(w) != 1 or len(r) != 1 or r[0].shape != (self.hidden, self.hidden):
            raise self.read.refusal(
                f"a gate adds {len(w)} products of the element and {len(r)} of the state"
            )
        return Gate(w[0], r[0], tuple(biases), peepholes=tuple(peepholes))

    def _peephole(self, term: Scaled, memory: str) -> Bias | None:
        """The vector by which a term multiplies the memory; None of another term."""
        if term.columns == self.whole(term.columns.name):
            for state, vector in permutations(term.factors):
                if self.origin(state) == memory:
                    return self.sums.bias(self.read.source(term.columns.of(vector)))
        return None

    def activated(self, columns: Columns) -> tuple[Activation, list[GateTerm]]:
        """The activation that these columns are the result of, and the terms of its argument."""
        source = self.read.source(columns)
        found = activation_of(self.read, source.name)
        if found is None:
            node = self.read.node(source.name)
            kind = "a value" if node is None else op_of(node)
            what = f"{columns.name!r} comes from {kind}, where a cell has an activation function"
            raise self.read.refusal(what, columns.name)
        return found[0], self.sums.terms(source.of(found[1]))

    def gate_of(self, h: Carried, columns: Columns, memory: str = "") -> Gate:
        """The gate that columns are."""
        activation, terms = self.activated(columns)
        return replace(self.gate(h, terms, memory=memory), activation=activation)

    def rest_of(self, gate: Gate) -> Gate:
        """The gate that is 1 minus another."""
        if gate.activation.name != "Sigmoid":
            raise self.read.refusal(f"1 minus a {gate.activation} is no gate of a cell")
        return gate.negative()

    def whole(self, name: str) -> Columns:
        """All columns of a value as wide as the states."""
        return Columns(name, self.hidden, 0, self.hidden)

    def kind(self, columns: Columns) -> Activation | None:
        """The activation that columns are the result of."""
        found = activation_of(self.read, self.read.source(columns).name)
        return found and found[0]

    def factor(self, name: str, state: Carried) -> Columns:
        """The value by which a product multiplies a state."""
        s = self.whole(state.body_input)
        match self.sums.expanded(self.whole(name)):
            case [(1, (first, second))] if s in (first, second):
                return second if first == s else first
        raise self.read.refusal(f"{name!r} is not a gate times {state.body_input!r}", name)

    def update(
        self, state: Carried, *, coupled: bool
    ) -> tuple[Columns | None, Columns | None, Columns]:
        """The gates a and b and the value n of a next state a * n + b * state, in any spelling.

        A gate that is 1 minus the other is None. `coupled`: one of them must be.
        """
        s, after = self.whole(state.body_input), self.whole(state.body_output)
        found = self.sums.expanded(after)
        total = sorted((sign, sorted(factors)) for sign, factors in found)
        values = {one: None for _, factors in found for one in factors if one != s}

        def fits(*products: tuple[int, Sequence[Columns]]) -> bool:
            return total == sorted((sign, sorted(factors)) for sign, factors in products)

        for g, n in product(values, values) if len(values) <= 3 else ():
            if fits((1, [n]), (-1, [g, n]), (1, [g, s])):  # (1 - g) * n + g * s
                return None, g, n
            if fits((1, [s]), (-1, [g, s]), (1, [g, n])):  # g * n + (1 - g) * s
                return g, None, n
            for b in () if coupled else values:
                if self.kind(g) == self.kind(b) and fits((1, [g, n]), (1, [b, s])):
                    return g, b, n
        terms = (
            ("-" if sign < 0 else "") + " * ".join(one.name for one in factors)
            for sign, factors in found
        )
        what = f"which are not a gate times {s.name!r} and a gate times a value"
        raise self.read.refusal(f"{after.name!r} adds {', '.join(terms)}, {what}", after.name)
