"""Constant nodes in all their spellings, and values that are known before a model runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, SparseTensorProto, TensorProto, helper

from passes.ir.external_data import byte_size, is_external
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.protos import copied, named
from passes.ir.scope import Scope
from passes.ir.versions import FREE_INITIALIZERS

_MOST_CONSTANT_BYTES = 1 << 20  # a rule reads shapes, axes and lengths, not weights


@dataclass(frozen=True)
class Constants:
    """Constants, as seen from a scope."""

    model: Model
    scope: Scope

    def value(self, name: str) -> npt.NDArray[Any] | None:
        """The value of `name`; None where it is not constant, larger than a rule should read, or
        in a file of an unknown folder."""
        tensor = self.tensor(name)
        if tensor is None or byte_size(tensor) > _MOST_CONSTANT_BYTES:
            return None
        if is_external(tensor) and self.model.base_dir is None:
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


def constant_tensor(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node, under the name of its output.

    None for other nodes, for sparse values, and for attribute references.
    """
    if op_of(node) != "Constant":
        return None
    (attribute,) = node.attribute
    if attribute.ref_attr_name:
        return None
    if attribute.name == "value":
        return named(attribute.t, node.output[0])
    if attribute.name not in CONSTANT_TYPES:
        return None
    value = helper.get_attribute_value(attribute)
    dims = [len(value)] if isinstance(value, list) else []
    values = value if isinstance(value, list) else [value]
    elem_type = CONSTANT_TYPES[attribute.name]
    return helper.make_tensor(node.output[0], elem_type, dims, values)


def sparse_constant(sparse: SparseTensorProto, name: str) -> NodeProto:
    """A Constant node that holds a sparse initializer, under the name `name`."""
    value = copied(sparse)
    value.values.name = ""
    return helper.make_node("Constant", [], [name], sparse_value=value)


CONSTANT_TYPES = {
    "value_int": TensorProto.INT64,
    "value_ints": TensorProto.INT64,
    "value_float": TensorProto.FLOAT,
    "value_floats": TensorProto.FLOAT,
    "value_string": TensorProto.STRING,
    "value_strings": TensorProto.STRING,
}
