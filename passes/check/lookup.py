"""Types, shapes and constants of values, by scope and name."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from onnx import GraphProto, TensorProto, TypeProto

from passes.check.graph_declarations import Headings
from passes.ir.constants import Constants
from passes.ir.model import Model
from passes.ir.scope import Scope
from passes.types.value_types import Dim, Dims, describe, dims_of


@dataclass(frozen=True)
class DeclaredTypes:
    """The declarations of values in the graphs of a model.

    They are consulted first: where all loops are declared, as exporters do, the model need
    not be inferred to be checked.
    """

    model: Model
    headings: Headings

    def kind(self, scope: Scope, name: str) -> str:
        """The type of a value in words, without the shape; empty if it is unknown."""
        current: Scope | None = scope
        while current is not None and isinstance(
            current.owner, GraphProto
        ):  # a function declares nothing
            kind = self.headings[current.key].kinds.get(name)
            if kind:
                return kind
            if kind is not None or self.model.producer(current.owner, name) is not None:
                return ""
            current = current.outer
        return ""

    def dims(self, scope: Scope, name: str) -> Dims | None:
        """The shape that a value is declared with, where all its sizes are static; else None."""
        for enclosing in scope.chain():
            heading = self.headings[enclosing.key]
            if name in heading.kinds:
                return heading.dims(name)
            if self.model.producer(enclosing.owner, name) is not None:
                return None
        return None


_LONGEST = 1 << 20  # entries; no batch is larger


@dataclass(frozen=True)
class Lookup:
    """The facts known about the values of a model."""

    model: Model
    headings: Headings

    def type(self, scope: Scope, name: str) -> TypeProto | None:
        """The type of what `name` means in `scope`; None where it is unknown.

        A body's input that shadows an outer value is never taken for that value.
        """
        for enclosing in scope.chain():
            found = self.model.types.within(enclosing, name)
            if found is not None:
                return found
            if enclosing.outer is not None and name in self.model.index(enclosing.owner).inputs:
                return None
        return None

    def kind(self, scope: Scope, name: str) -> str:
        """Its type in words, without the shape; empty where it is unknown."""
        declared = self.headings[scope.key].kinds.get(name)  # nearly always: the fastest first
        return (
            declared or self._declared_types.kind(scope, name) or describe(self.type(scope, name))
        )

    def no_tensor(self, scope: Scope, name: str) -> str:
        """The type in words of what is known not to be a tensor; else empty."""
        kind = self._declared_types.kind(scope, name)
        if kind:
            return kind if "(" in kind else ""
        known = self.type(scope, name)
        form = known.WhichOneof("value") if known is not None else None
        return "" if form in (None, "tensor_type") else describe(known) or str(form)

    def dims(self, scope: Scope, name: str) -> tuple[Dim, ...] | None:
        """Its shape; None where the rank is unknown."""
        declared = self._declared_types.dims(scope, name)
        return dims_of(self.type(scope, name)) if declared is None else declared

    def declared(self, scope: Scope, name: str) -> str:
        """The type that this very graph declares, in words; empty where there is none."""
        return self.headings[scope.key].kinds.get(name, "")

    @cached_property
    def _declared_types(self) -> DeclaredTypes:
        return DeclaredTypes(self.model, self.headings)

    def constant(self, scope: Scope, name: str) -> list[int] | None:
        """The integers of a small constant; else None."""
        tensor = Constants(self.model, scope).tensor(name)
        if tensor is None or math.prod(tensor.dims) > _LONGEST:
            return None
        if tensor.data_location == TensorProto.EXTERNAL and self.model.base_dir is None:
            return None
        return [int(value) for value in self.model.read(tensor).ravel()]
