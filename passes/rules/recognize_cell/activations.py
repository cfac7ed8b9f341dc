"""The activation functions of recurrent operators, and the operators of a body that are one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto

from passes.ir.attributes import number
from passes.ir.operators import op_of
from passes.operators.cells import ACTIVATIONS
from passes.rules.recognize_cell.reading.columns import Reader

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
