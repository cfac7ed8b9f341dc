"""The activation functions of a recurrent node, with their parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto

from passes.ir.attributes import attribute_proto
from passes.ir.operators import op_of
from passes.operators.cells import RECURRENT, Activation, activation_named


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
