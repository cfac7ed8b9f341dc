"""Values that are known before the model runs: Constant nodes, and initializers that stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from onnx import TensorProto

from passes.ir.constant_nodes import constant_tensor
from passes.ir.external_data import byte_size
from passes.ir.model import Model
from passes.ir.scope import Scope
from passes.ir.versions import FREE_INITIALIZERS

_MOST_CONSTANT_BYTES = 1 << 20  # a rule reads shapes, axes and lengths, not weights


@dataclass(frozen=True)
class Constants:
    """Constants, as seen from a scope."""

    model: Model
    scope: Scope

    def value(self, name: str) -> npt.NDArray[Any] | None:
        """The value of `name`; None where it is not constant, or larger than a rule should read."""
        tensor = self.tensor(name)
        if tensor is None or byte_size(tensor) > _MOST_CONSTANT_BYTES:
            return None
        return self.model.read(tensor)

    def tensor(self, name: str) -> TensorProto | None:
        """The tensor of `name`, perhaps with external data; None where it is not constant."""
        for enclosing in self.scope.chain():
            tensor = self.model.index(enclosing.owner).initializers.get(name)
            if tensor is not None:
                return None if self._overridable(enclosing, name) else tensor
            node = self.model.producer(enclosing.owner, name)
            if node is not None:
                return constant_tensor(node)
            if self.model.defines(enclosing.owner, name):  # as an input, or sparse
                return None
        return None

    def _overridable(self, owner_scope: Scope, name: str) -> bool:
        """Return whether an initializer of the main graph is only the default of an input."""
        if owner_scope.outer is not None or self.model.proto.ir_version < FREE_INITIALIZERS:
            return False
        return name in self.model.index(owner_scope.owner).inputs
