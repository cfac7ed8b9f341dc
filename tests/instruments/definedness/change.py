"""A change of a model at one place, found again in a copy by its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from passes.ir.model import Model
from passes.ir.places import Place, Scope, walk_model
from passes.ir.protos import replace_all
from passes.ir.scope import defined
from passes.types.inference import ValueTypes
from passes.types.value_types import dims_of, elem_type_of


@dataclass(frozen=True)
class Change:
    """What is changed, and a function that changes it in the model in which it was found."""

    kind: str
    text: str
    make: Callable[[], None]


Found = Iterator[tuple[str, Callable[[], None]]]


@dataclass(frozen=True)
class Site:
    """A node, its location, and the types of the values that it sees."""

    place: Place
    types: ValueTypes
    _kinds: dict[tuple[object, str], tuple[int, int] | None] = field(default_factory=dict)

    @property
    def node(self) -> NodeProto:
        """The node."""
        return self.place.node

    @property
    def scope(self) -> Scope:
        """The graph that holds it."""
        return self.place.scope

    def kind_of(self, name: str) -> tuple[int, int] | None:
        """The element type and the rank of a value; None if one is unknown."""
        key = self.scope.key, name
        if key not in self._kinds:
            found = self.types.of(self.scope, name)
            dims = dims_of(found)
            self._kinds[key] = None if dims is None else (elem_type_of(found), len(dims))
        return self._kinds[key]

    def visible(self) -> list[str]:
        """The names that the node may read, innermost first."""
        found: dict[str, None] = {}
        index: int | None = self.place.index
        for scope in self.scope.chain():
            later = {name for node in list(scope.owner.node)[index:] for name in node.output}
            found.update(dict.fromkeys(sorted(defined(scope.owner) - later)))
            index = int(scope.key[-2]) if scope.outer is not None else None
        return [name for name in found if name]

    def like(self, name: str) -> list[str]:
        """Other values of the element type and the rank of this one."""
        kind = self.kind_of(name)
        if kind is None:
            return []
        return [one for one in self.visible() if one != name and self.kind_of(one) == kind]

    def insert(self, *nodes: NodeProto) -> None:
        """Put nodes before this one."""
        owner = self.scope.owner
        found = list(owner.node)
        replace_all(owner.node, [*found[: self.place.index], *nodes, *found[self.place.index :]])

    def replace(self, *nodes: NodeProto) -> None:
        """Put nodes in the place of this one."""
        owner = self.scope.owner
        found = list(owner.node)
        kept = found[: self.place.index], found[self.place.index + 1 :]
        replace_all(owner.node, [*kept[0], *nodes, *kept[1]])

    def read(self, position: int, operator: str, *values: Sequence[int] | int) -> None:
        """Read an input through an operator with whole numbers as its other inputs."""
        name = self.node.input[position]
        made = [whole(f"mutated_{number}", value) for number, value in enumerate(values)]
        inputs = [name, *(node.output[0] for node in made)]
        node = helper.make_node(operator, inputs, ["mutated"])
        self.node.input[position] = "mutated"
        self.insert(*made, node)


def whole(name: str, value: Sequence[int] | int) -> NodeProto:
    """A constant of int64."""
    tensor = numpy_helper.from_array(np.array(value, np.int64), name)
    return helper.make_node("Constant", [], [name], value=tensor)


def sites(model: ModelProto) -> Iterator[Site]:
    """Every node of a model."""
    types, kinds = Model.load(model).types, dict[tuple[object, str], tuple[int, int] | None]()
    yield from (Site(place, types, kinds) for place in walk_model(model))
