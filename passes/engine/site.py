"""Where a rule looks: a node in its model, and what is known of the values around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy.typing as npt
from onnx import FunctionProto, NodeProto, TypeProto

from passes.choices import RuleOptions
from passes.engine.memory import Memory
from passes.ir import scope as scoping
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.scope import Place, Scope
from passes.types.inference import ValueTypes


@dataclass(frozen=True)
class Site:
    """A node that a rule considers, where it stands in its model; read-only.

    `opset` is the version the node is written in, `target` the one the Edit must be written in.
    Bodies of the node have been brought to `target` already; `types` still knows every name of
    the model as it was read. `memory` is that of the round.
    """

    model: Model
    place: Place
    opset: int
    target: int
    names: Names
    types: ValueTypes
    options: RuleOptions = field(default_factory=RuleOptions)
    memory: Memory = field(default_factory=Memory)

    @property
    def node(self) -> NodeProto:
        return self.place.node

    @property
    def path(self) -> str:
        return self.place.path

    @property
    def scope(self) -> Scope:
        return self.place.scope

    def assumes(self, assumption: str) -> bool:
        """Whether the user lets rewrites take this for granted."""
        return assumption in self.options.assume

    @property
    def in_function(self) -> bool:
        """Whether the site lies in a model-local function, at any depth."""
        *_, top = self.scope.chain()
        return isinstance(top.owner, FunctionProto)

    def fresh(self, hint: str) -> str:
        """A value name that occurs nowhere in the model."""
        return self.names.fresh(hint)

    def is_visible(self, name: str) -> bool:
        """Whether a name already means something where the site is: a node must not write it."""
        return any(self.model.defines(at.owner, name) for at in self.scope.chain())

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value as seen from the site, None where nothing tells it."""
        return self.types.of(self.scope, name) if name else None

    def body_type_of(self, attribute: str, name: str) -> TypeProto | None:
        """The type of a value inside a body of the site's node."""
        key = (*self.scope.key, self.place.index, attribute)
        graph = next(graph for part, graph in scoping.subgraphs(self.node) if part == attribute)
        return self.types.of(Scope("", key, graph, self.scope), name)

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        """The value of `name` where it is fixed now and small, else None.

        Fixed are Constant nodes and initializers that no caller can override. A referenced
        attribute is no constant.
        """
        return self._constants.value(name)

    @cached_property
    def _constants(self) -> Constants:
        return Constants(self.model, self.scope)
