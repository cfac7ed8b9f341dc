"""What a body sees: what its names mean, inside and outside, and which node makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, NodeProto, TypeProto, numpy_helper

from passes.analysis.integers.guards import Guard, guarded
from passes.analysis.integers.integer_ops import FOLLOWED
from passes.ir import scope as scoping
from passes.ir.constant_nodes import constant_tensor
from passes.ir.constants import Constants
from passes.ir.operators import op_of
from passes.ir.scope import Scope
from passes.rule import Site
from passes.types.value_types import dims_of


@dataclass
class BodyView:
    """The names of a body, and of what is around its site; only the latter where no body is given.

    Of a scope that may be None, None is the body itself.
    """

    site: Site
    body: GraphProto | None = None

    def __post_init__(self) -> None:
        body = self.body or GraphProto()
        self._producers = {name: node for node in body.node for name in node.output if name}
        self._initializers = {tensor.name: tensor for tensor in body.initializer}
        self._inputs = set(scoping.input_names(body)) - set(self._initializers)

    def is_own(self, name: str) -> bool:
        """Whether the body itself defines a name."""
        return name in self._producers or name in self._initializers or name in self._inputs

    def constant_inside(self, name: str) -> npt.NDArray[Any] | None:
        """The fixed value of what the body sees under a name."""
        return self._constant(None if self.is_own(name) else self.site.scope, name)

    def source(self, name: str) -> NodeProto | None:
        """The node that makes a value, as the body sees it, inside or outside."""
        if name in self._producers:
            return self._producers[name]
        return self.producer(name)

    def producer(self, name: str) -> NodeProto | None:
        """The node that makes an outer value."""
        home = self._home(self.site.scope, name)
        return None if home is None else self.site.model.producer(home.owner, name)

    def guard(self, node: NodeProto) -> Guard | None:
        """The guard that a node outside the loop is."""
        return self._guard(self.site.scope, node)

    def guards(self, name: str) -> dict[str, Guard]:
        """The guards on the way to a number, by what they give, as the body sees it."""
        found: dict[str, Guard] = {}
        pending, seen = [name], {name}
        while pending:
            node = self.source(pending.pop())
            if node is None or op_of(node) not in FOLLOWED or op_of(node) in ("Shape", "Size"):
                continue
            inside = node.output[0] in self._producers
            guard = self._guard(None if inside else self.site.scope, node)
            if guard is not None:
                found[node.output[0]] = guard
            reads = [node.input[0]] if guard is not None else list(node.input)
            pending += [one for one in reads if one and one not in seen]
            seen.update(reads)
        return found

    def is_outer(self, name: str) -> bool:
        """Whether the body takes a value from outside."""
        return not self.is_own(name) and self._home(self.site.scope, name) is not None

    def same_meaning(self, node: NodeProto, output: str) -> bool:
        """Whether what an outer node reads is called the same at the site, and in the body."""
        home = self._home(self.site.scope, output)
        return home is not None and all(self.means(name, home) for name in scoping.free_names(node))

    def means(self, name: str, scope: Scope) -> bool:
        """Whether a name of another scope is called the same at the site, and in the body."""
        home = self._home(self.site.scope, name)
        return home is not None and not self.is_own(name) and self._home(scope, name) == home

    def _home(self, scope: Scope, name: str) -> Scope | None:
        """The scope that defines what a name means."""
        return next((at for at in scope.chain() if self.site.model.defines(at.owner, name)), None)

    def _guard(self, scope: Scope | None, node: NodeProto) -> Guard | None:
        return guarded(
            node,
            lambda name: self._producer(scope, name),
            lambda name: self._constant(scope, name),
            lambda name: dims_of(self._type(scope, name)),
        )

    def _producer(self, scope: Scope | None, name: str) -> NodeProto | None:
        if scope is None:
            return self._producers.get(name)
        return self.site.model.producer(scope.owner, name)

    def _constant(self, scope: Scope | None, name: str) -> npt.NDArray[Any] | None:
        if scope is not None:
            return Constants(self.site.model, scope).value(name)
        if name in self._initializers:
            return np.asarray(self.site.model.read(self._initializers[name]))
        node = self._producers.get(name)
        tensor = constant_tensor(node) if node is not None else None
        return None if tensor is None else np.asarray(numpy_helper.to_array(tensor))

    def _type(self, scope: Scope | None, name: str) -> TypeProto | None:
        if scope is not None:
            return self.site.types.of(scope, name)
        return self.site.body_type_of("body", name)
