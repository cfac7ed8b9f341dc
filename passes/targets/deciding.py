"""Finds the inputs of a model that decide its Ifs, and the values they are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.places import walk_model
from passes.ir.scope import Scope, input_names
from passes.operators.comparisons import COMPARISONS
from passes.operators.table import traits_of
from passes.operators.traits import Values

#: Nodes that are looked at for one condition.
_MOST_NODES = 200
#: Values that are named of an input.
_FEW = 4


@dataclass(frozen=True)
class Deciding:
    """An input that decides `count` Ifs by itself; `values` are what it is compared with, most
    often first."""

    name: str
    count: int
    values: tuple[str, ...]

    def __str__(self) -> str:
        example = self.values[0] if self.values else "VALUE"
        others = f" or {', '.join(self.values[1:])}" if len(self.values) > 1 else ""
        many = "1 If" if self.count == 1 else f"{self.count} Ifs"
        return f"--set {self.name}={example}{others} (decides {many})"


@dataclass
class _Cone:
    """The inputs of the model that a value is computed from; `open`: and from what changes with
    iterations, or is too much to look at. `compared` are constants by the input they are compared
    with."""

    inputs: set[str] = field(default_factory=set)
    compared: Counter[tuple[str, str]] = field(default_factory=Counter)
    open: bool = False


def deciding(model: Model) -> list[Deciding]:
    """The inputs that decide Ifs by themselves, those that decide most first."""
    fed = set(input_names(model.proto.graph))
    counts: Counter[str] = Counter()
    compared: Counter[tuple[str, str]] = Counter()
    for place in walk_model(model.proto):
        if op_of(place.node) != "If":
            continue
        cone = _cone(model, place.scope, place.node.input[0], fed)
        if len(cone.inputs) == 1 and not cone.open:
            counts.update(cone.inputs)
            compared.update(cone.compared)
    return [Deciding(name, count, _values(compared, name)) for name, count in counts.most_common()]


def _values(compared: Mapping[tuple[str, str], int], name: str) -> tuple[str, ...]:
    found = Counter({value: count for (one, value), count in compared.items() if one == name})
    return tuple(value for value, _ in found.most_common(_FEW))


def _cone(model: Model, scope: Scope, condition: str, fed: set[str]) -> _Cone:
    cone = _Cone()
    waiting, seen = [(scope, condition)], 0
    while waiting:
        where, name = waiting.pop()
        home = model.home(where, name)
        seen += 1
        if home is None or seen > _MOST_NODES:
            cone.open = True
            return cone
        node = model.producer(home.owner, name)
        if node is None:
            if home.outer is None and name in fed and home.owner is model.proto.graph:
                cone.inputs.add(name)
            elif Constants(model, where).tensor(name) is None:
                cone.open = True
            continue
        if traits_of(node).values is Values.SIZES:
            cone.open = True  # a size decides, which --shape fixes
            continue
        if op_of(node) in COMPARISONS:
            cone.compared.update(_comparisons(model, home, list(node.input), fed))
        waiting += [(home, read) for read in node.input if read]
    return cone


def _comparisons(
    model: Model, scope: Scope, reads: list[str], fed: set[str]
) -> list[tuple[str, str]]:
    """The input of the model and the constant that a comparison reads."""
    constants = Constants(model, scope)
    inputs = [name for read in reads if (name := _passed_on(model, scope, read)) in fed]
    values = [value for read in reads if (value := constants.value(read)) is not None]
    if not inputs or not values or values[0].size != 1:
        return []
    return [(inputs[0], str(np.asarray(values[0]).reshape(-1)[0]))]


def _passed_on(model: Model, scope: Scope, name: str) -> str:
    """The value that this one is, but for its type and shape."""
    while (home := model.home(scope, name)) is not None:
        node = model.producer(home.owner, name)
        if node is None or op_of(node) not in ("Cast", "Identity", "Squeeze", "Unsqueeze"):
            return name
        scope, name = home, node.input[0]
    return name
