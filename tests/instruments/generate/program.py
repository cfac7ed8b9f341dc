"""What all blocks of one model share: decisions, names, inputs, weights, functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import FunctionProto, NodeProto, TensorProto

from tests.instruments.generate.choices import Choices
from tests.instruments.generate.values import Shape, Value


@dataclass
class Signature:
    """A function of the model, and what it takes and gives."""

    proto: FunctionProto
    inputs: list[Value]
    outputs: list[Value]
    attributes: dict[str, float] = field(default_factory=dict)


@dataclass
class Program:
    """One model in the making. `roles` say what the values of an input mean: `lengths T` are
    numbers up to the size of T, `count` is a number of trips, `exactly 3` that number; others are
    data. `careless`: bodies return what is not their own. `odd`: which of `odd.KINDS` it has."""

    choices: Choices
    opset: int
    ir: int
    reuses_names: bool
    careless: bool
    budget: int
    odd: frozenset[str] = frozenset()
    inputs: list[Value] = field(default_factory=list)
    roles: dict[str, str] = field(default_factory=dict)
    initializers: list[TensorProto] = field(default_factory=list)
    functions: list[Signature] = field(default_factory=list)
    foreign: dict[str, FunctionProto] = field(default_factory=dict)
    symbols: int = 0
    _names: int = 0

    def name(self, hint: str) -> str:
        """A name that no other value has."""
        self._names += 1
        return f"{hint}{self._names}_"

    def symbol(self) -> str:
        """A dim of a size that nobody knows."""
        self.symbols += 1
        return f"u{self.symbols - 1}"

    def input(self, elem: int, shape: Shape, role: str = "", sequence: bool = False) -> Value:
        """A new input of the model."""
        value = Value(self.name("x"), elem, shape, sequence)
        self.inputs.append(value)
        self.roles[value.name] = role
        return value

    def decorate(self, node: NodeProto) -> None:
        """Now and then a name, documentation or metadata, and count the node."""
        self.budget -= 1
        if self.choices.one_in(6):
            node.name = self.name("node")
        if self.choices.one_in(16):
            node.doc_string = f"what {node.op_type} does"
            if self.ir >= 10:
                node.metadata_props.add(key="written_by", value="the generator")
