"""The recurrent operators of ONNX and their activation functions, after their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from onnx import NodeProto

from passes.ir.attributes import attribute_proto
from passes.ir.operators import op_of

#: The positions of the inputs.
X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P = range(8)
#: The batch axis of the inputs that have one; with `layout` 1 it is the first.
BATCH_AXES = {X: 1, LENGTHS: 0, INITIAL_H: 1, INITIAL_C: 1}
#: For each direction that a node has, whether it is reversed.
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class CellInputs(NamedTuple):
    """The names of the inputs of a node, "" for each that it omits."""

    x: str
    w: str
    r: str
    b: str
    lengths: str
    h: str
    c: str
    peepholes: str

    @classmethod
    def of(cls, node: NodeProto) -> CellInputs:
        """The operands of a node of a recurrent operator."""
        return cls._make([*node.input, *[""] * len(cls._fields)][: len(cls._fields)])


@dataclass(frozen=True)
class Cell:
    """A recurrent operator.

    `gates`: a letter for each, in the order of the parts of W, R and B. `states`: a letter for
    each, in the order of the initial and of the final states. `activations`: the defaults of one
    direction. `peepholes`: the gates that have a part of P, in its order.
    """

    gates: str
    states: str
    activations: tuple[str, ...]
    peepholes: str = ""


RECURRENT: Mapping[str, Cell] = {
    "RNN": Cell("i", "h", ("Tanh",)),
    "GRU": Cell("zrh", "h", ("Sigmoid", "Tanh")),
    "LSTM": Cell("iofc", "hc", ("Sigmoid", "Tanh", "Tanh"), peepholes="iof"),
}


@dataclass(frozen=True)
class Activation:
    """An activation function.

    `parameters`: alpha, beta, both or none. `defaults`: theirs in the operator of this name, none
    if there is no such operator. `agreed`: runtimes agree that these are the defaults in a
    recurrent operator, too. `overflows`: in a recurrent operator of onnxruntime.
    """

    name: str
    parameters: tuple[str, ...] = ()
    defaults: tuple[float, ...] = ()
    agreed: bool = True
    overflows: bool = False

    @property
    def is_operator(self) -> bool:
        """True if an operator of ONNX has this name."""
        return len(self.defaults) == len(self.parameters)

    def default(self, parameter: str) -> float | None:
        """The default of a parameter in a recurrent operator; None if runtimes differ."""
        known = self.agreed and self.is_operator
        return self.defaults[self.parameters.index(parameter)] if known else None


ACTIVATIONS: Mapping[str, Activation] = {
    one.name: one
    for one in (
        Activation("Affine", ("alpha", "beta")),
        Activation("Elu", ("alpha",), (1.0,)),
        Activation("HardSigmoid", ("alpha", "beta"), (0.2, 0.5)),
        Activation("LeakyRelu", ("alpha",), (0.01,)),
        Activation("Relu"),
        Activation("ScaledTanh", ("alpha", "beta")),
        Activation("Sigmoid"),
        Activation("Softplus", overflows=True),
        Activation("Softsign"),
        Activation("Tanh"),
        Activation("ThresholdedRelu", ("alpha",), (1.0,), agreed=False),
    )
}


def activation_named(written: str) -> Activation | None:
    """The activation function of a name, whose case is ignored; None if it is unknown."""
    return next((one for one in ACTIVATIONS.values() if one.name.lower() == written.lower()), None)


@dataclass(frozen=True)
class Function:
    """An activation function with the values of its parameters."""

    activation: Activation
    parameters: Mapping[str, Any]


class OpenActivations(ValueError):
    """Runtimes do not agree on the activations of a node; `code` is that of a refusal."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def functions_of(node: NodeProto, directions: int) -> list[list[Function]]:
    """The activations of each direction; parameters go in order to those that take one.

    Raises:
        OpenActivations: one is missing or unknown, or has no parameter where runtimes differ.
    """
    default = RECURRENT[op_of(node)].activations
    given = attribute_proto(node, "activations")
    names = [one.decode() for one in given.strings] if given else [*default] * directions
    every = len(default)
    if len(names) < every * directions:
        what = f"it has {len(names)} activations, {every * directions} are needed"
        raise OpenActivations("activation", what)
    lists = {one: iter(_floats(node, f"activation_{one}")) for one in ("alpha", "beta")}
    found = [_function(name, lists) for name in names]
    return [found[way * every : (way + 1) * every] for way in range(directions)]


def _function(written: str, lists: Mapping[str, Iterator[float]]) -> Function:
    known = activation_named(written)
    if known is None:
        raise OpenActivations("activation", f"the activation {written!r} is unknown")
    parameters = dict[str, float]()
    for parameter in known.parameters:
        value = next(lists[parameter], known.default(parameter))
        if value is None:
            what = f"runtimes differ on the {parameter} of {known.name} where it is left out"
            raise OpenActivations("default-differs", what)
        parameters[parameter] = value
    return Function(known, parameters)


def _floats(node: NodeProto, name: str) -> list[float]:
    given = attribute_proto(node, name)
    return list(given.floats) if given else []
