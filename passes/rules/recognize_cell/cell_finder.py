"""Finds the cell that a body computes: an LSTM, a GRU or an RNN, or that operator for one step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

from onnx import NodeProto

from passes.ir.attributes import attribute, text
from passes.ir.operators import op_of
from passes.loops.form import Carried
from passes.operators.cells import RECURRENT, CellInputs
from passes.rules.recognize_cell.columns import Columns, Reader
from passes.rules.recognize_cell.forms import Activation, Cell, Gate, GateReader, activation_of
from passes.rules.recognize_cell.gates import Bias, GateTerm, Product, Scaled


@dataclass(frozen=True)
class OperatorCell(Cell):
    """The step of a recurrent operator, written as that operator, `node`, over one step."""

    node: NodeProto = field(default_factory=NodeProto)

    @property
    def weights(self) -> tuple[str, str, str, str]:
        """W, R, B and P of the operator, "" where one is left out."""
        operands = CellInputs.of(self.node)
        return operands.w, operands.r, operands.b, operands.peepholes


def operator_cell(read: Reader, element: str, states: Sequence[Carried]) -> OperatorCell | None:
    """The cell, None where the body has no recurrent operator.

    Raises:
        Refused: `not-a-cell` where the body does something else with an element or a state.
    """
    steps = [node for node in read.body.nodes if op_of(node) in RECURRENT]
    if not steps:
        return None
    (node, *others), operator = steps, op_of(steps[0])
    x, *weights, lengths, h, c, peepholes = CellInputs.of(node)
    if (
        others
        or lengths
        or attribute(node, "layout", 0)
        or text(node, "direction", "") not in _WAYS
    ):
        raise read.refusal(f"its {operator} is not alone, or has lengths or directions")
    if read.origin(x) != element:
        raise read.refusal(f"its {operator} reads {x!r}, which is not an element", x)
    ordered = []
    for place, initial in enumerate([h, c][: len(RECURRENT[operator].states)]):
        found = [one for one in states if one.body_input == read.origin(initial)]
        after = [read.origin(one.body_output) for one in found]
        made = {read.origin(name) for name in _made(node, place)}
        if len(found) != 1 or after[0] not in made:
            what = f"its {operator} does not read state {place} of the step before"
            raise read.refusal(what, *node.output)
        ordered.append(found[0])
    given = [name for name in (*weights, peepholes) if name]
    dims = [read.dims(name) or () for name in given[:2]]
    widths = [one[-1] for one in dims if len(one) == 3 and isinstance(one[-1], int)]
    if len(ordered) != len(states) or len(widths) != 2 or not all(map(read.is_leaf, given)):
        raise read.refusal(f"the body does more than its {operator}, or computes its weights")
    return OperatorCell(operator, tuple(ordered), widths[0], widths[1], node=node)


_WAYS = ("", "forward", "reverse")


def _made(node: NodeProto, place: int) -> list[str]:
    """The outputs that are a state after one step: Y is h, too."""
    names = node.output[:2] if place == 0 else node.output[2:3]
    return [name for name in names if name]


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

    def _linear(self, h: Carried, terms: Sequence[GateTerm], scaled: Scaled) -> tuple[Gate, Gate]:
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

    def _reset_first(self, h: Carried, terms: Sequence[GateTerm]) -> tuple[Gate, Gate]:
        """The reset gate, and the gate whose state it scales."""
        products = [term for term in terms if isinstance(term, Product)]
        reset = [product for product in products if product.operand != self.element]
        if len(reset) != 1:
            raise self.read.refusal("no reset gate is multiplied with the state")
        r = self.factor(reset[0].operand, h)
        return self.gate_of(h, r), self.gate(h, terms, state=reset[0].operand)
