"""The gates of a cell: what is summed up under each activation function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from passes.loop_form import Carried
from passes.operators import op_of
from passes.rules.cell_columns import Columns, Reader
from passes.rules.cell_gates import Bias, Matrix, Product, Sums, Term


@dataclass(frozen=True)
class Gate:
    """What a gate sums up: the element times `w`, the state times `r`, and biases.

    `inner` are the biases that a GRU resets together with the state's product.
    """

    w: Matrix
    r: Matrix
    biases: tuple[Bias, ...]
    inner: tuple[Bias, ...] = ()


class GateReader:
    """Reads the gates of one body. `element` is the name of what it scans, `hidden` how wide its
    states are."""

    def __init__(self, read: Reader, element: str, hidden: int) -> None:
        self.read, self.element, self.hidden = read, element, hidden
        self.sums = Sums(read)
        self.origin = read.body.origin

    def gate(self, h: Carried, terms: Iterable[Term], state: str = "") -> Gate:
        """The gate of a sum, which must hold one product of the element, and one of the state."""
        products: dict[str, list[Matrix]] = {self.element: [], state or h.body_input: []}
        biases = []
        for one in terms:
            if isinstance(one, Bias):
                biases.append(one)
            elif isinstance(one, Product) and one.operand in products:
                products[one.operand].append(one.matrix)
            else:
                name = one.operand if isinstance(one, Product) else one.columns.name
                what = f"a gate sums up {name!r}, which neither the element nor the state gives"
                raise self.read.refusal(what, name)
        w, r = products.values()
        if len(w) != 1 or len(r) != 1 or r[0].shape != (self.hidden, self.hidden):
            raise self.read.refusal(
                f"a gate sums up {len(w)} products of the element and {len(r)} of the state"
            )
        return Gate(w[0], r[0], tuple(biases))

    def summed(self, name: str, activation: str) -> list[Term]:
        return self.terms_of(self.columns(name), activation)

    def terms_of(self, columns: Columns, activation: str) -> list[Term]:
        """What is summed up under an activation function."""
        source = self.read.source(columns)
        node = self.read.node(source.name)
        if node is None or op_of(node) != activation:
            made = "a value" if node is None else op_of(node)
            what = f"{columns.name!r} comes from {made}, where a cell has {activation}"
            raise self.read.refusal(what, columns.name)
        return self.sums.terms(source.at(node.input[0]))

    def columns(self, name: str) -> Columns:
        return self.read.source(Columns(name, self.hidden, 0, self.hidden))

    def activation(self, name: str) -> str:
        return self.activation_of(Columns(name, self.hidden, 0, self.hidden))

    def activation_of(self, columns: Columns) -> str:
        node = self.read.node(self.read.source(columns).name)
        return "" if node is None else op_of(node)

    def inputs(self, name: str, op_type: str) -> list[str]:
        """The two inputs of the node that makes a value."""
        inputs = self.read.made_by(name, op_type)
        if inputs is None or len(inputs) != 2:
            raise self.read.refusal(f"{name!r} is made by no {op_type} of two values", name)
        return inputs

    def reads(self, name: str, op_type: str, value: str) -> bool:
        """Whether a value is made by an operator of another value."""
        return value in map(self.origin, self.read.made_by(name, op_type) or ())

    def pick(
        self, names: Sequence[str], test: Callable[[str], bool], otherwise: str
    ) -> tuple[str, str]:
        """That of two values which a test holds of, and the other one."""
        first, second = names
        if test(first):
            return first, second
        if test(second):
            return second, first
        raise self.read.refusal(otherwise, *names)
