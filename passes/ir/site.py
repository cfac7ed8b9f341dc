"""The site of a rule: a node in its model, the facts known about the values around it, and what
rules remember in a round."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy.typing as npt
from onnx import FunctionProto, NodeProto, TypeProto, numpy_helper

from passes.choices import LIFTED_BY, Lifts, RuleOptions
from passes.ir import scope as scoping
from passes.ir.boundary import Outer
from passes.ir.constants import Constants
from passes.ir.graph_index import GraphIndex
from passes.ir.model import Model
from passes.ir.names import Names
from passes.ir.scope import Place, Scope
from passes.types.inference import ValueTypes

_T = TypeVar("_T")
#: The code of what an older opset lacks.
TOO_OLD = "opset-too-old"


class Refused(Exception):
    """A rule's answer where it cannot rewrite: a code, a sentence and the culprits.

    `culprits` are paths of nodes or names of values. `lifted_by` are options by name, each of which
    would lift it: by default those of its code. It may be raised from any depth.
    """

    def __init__(
        self, code: str, sentence: str, culprits: Sequence[str] = (), lifted_by: Lifts = ()
    ) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code
        self.sentence = sentence
        self.culprits = tuple(culprits)
        self.lifted_by = tuple(lifted_by or LIFTED_BY.get(code, ()))


class Slot(Generic[_T]):
    """A key under which a round remembers values; one module defines and fills it."""


class Memory:
    """What rules found out in one round over a model, by key, kept for later sites."""

    def __init__(self) -> None:
        self._held: dict[tuple[Slot[Any], int], tuple[object, Any]] = {}

    def once(self, key: Slot[_T], make: Callable[[], _T], of: object = None) -> _T:
        """The value under a key, made on first use; each object `of` has its own."""
        own = (key, id(of))
        if own not in self._held:
            self._held[own] = (of, make())  # `of` is kept alive, so its id is its own
        held: _T = self._held[own][1]
        return held


@dataclass(frozen=True)
class Site:
    """A node that a rule considers, with its location in its model; read-only.

    `opset` is the version the node is written in, `target` the one the Edit must be written in.
    Bodies of the node have been brought to `target` already. `memory` is that of the round.
    """

    model: Model
    place: Place
    opset: int
    target: int
    names: Names
    options: RuleOptions = field(default_factory=RuleOptions)
    memory: Memory = field(default_factory=Memory)

    @classmethod
    def at(cls, model: Model, place: Place) -> Site:
        """What is known at a node that no rule considers."""
        opset = model.opset_at(place.scope)
        return cls(model, place, opset, opset, Names(()))

    @classmethod
    def of_graph(cls, model: Model, scope: Scope) -> Site:
        """What is known in a graph, at none of its nodes."""
        return cls.at(model, Place(NodeProto(), 0, scope))

    @property
    def types(self) -> ValueTypes:
        """The types of all values of the original model."""
        return self.model.types

    @property
    def node(self) -> NodeProto:
        return self.place.node

    @property
    def path(self) -> str:
        return self.place.path

    @property
    def scope(self) -> Scope:
        return self.place.scope

    @property
    def graph(self) -> GraphIndex:
        """The definitions and readers in the graph around the node, in the original model."""
        return self.model.index(self.scope.owner)

    def assumes(self, assumption: str) -> bool:
        """Return whether the user lets rewrites assume this."""
        return assumption in self.options.assume

    @property
    def in_function(self) -> bool:
        """True if the site lies in a model-local function, at any depth."""
        return isinstance(self.scope.outermost.owner, FunctionProto)

    def refused(self, code: str, sentence: str, *culprits: str, **lifted_by: Any) -> Refused:
        """A refusal of the site, whose path is the first culprit; `lifted_by` is an option that
        would lift it, with its value, where its code has no other meaning."""
        return Refused(code, sentence, [self.path, *culprits], [lifted_by] if lifted_by else ())

    def need_opset(self, least: int, lacks: str, *culprits: str, code: str = TOO_OLD) -> None:
        """Refuse an older target; `lacks` completes "opset 8 ..."."""
        if self.target < least:
            sentence = f"opset {self.target} {lacks}; opset {least} would do"
            raise self.refused(code, sentence, *culprits, opset=least)

    def fresh(self, hint: str) -> str:
        """A value name that occurs nowhere in the model."""
        return self.names.fresh(hint)

    def is_visible(self, name: str) -> bool:
        """Return whether a name already means something at the site, so that a node must not write
        it."""
        return self.model.home(self.scope, name) is not None

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value as seen from the site; None if it is unknown."""
        return self.types.of(self.scope, name) if name else None

    def body_type_of(self, attribute: str, name: str) -> TypeProto | None:
        """The type of a value inside a body of the site's node."""
        return self.types.of(self.body_scope(attribute), name)

    def body_scope(self, attribute: str) -> Scope:
        """A body of the site's node, as seen from inside."""
        key = (*self.scope.key, self.place.index, attribute)
        graph = next(graph for part, graph in scoping.subgraphs(self.node) if part == attribute)
        return Scope("", key, graph, self.scope)

    def constant(self, name: str) -> npt.NDArray[Any] | None:
        """The value of `name` if it is a small constant, else None.

        Constants are Constant nodes and initializers that no caller can override, but not
        attribute references.
        """
        return self._constants.value(name)

    def outer(self, name: str, most: float = math.inf) -> Outer:
        """The declaration of a value in a graph that captures it: the tensor of a constant of
        at most `most` elements, else its type."""
        fixed = self.constant(name)
        if fixed is not None and fixed.size <= most:
            return numpy_helper.from_array(fixed, name)
        return self.type_of(name)

    @cached_property
    def _constants(self) -> Constants:
        return Constants(self.model, self.scope)
