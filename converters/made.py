"""What the conversion of one node has made so far, and the values that conversions share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import (
    AttributeProto,
    FunctionProto,
    NodeProto,
    TensorProto,
    TypeProto,
    defs,
    helper,
    numpy_helper,
    shape_inference,
)

from converters.fixed_value import FixedValue
from passes.ir.operators import called_key
from passes.rule import Site
from passes.types.value_types import tensor_type

TypeOf = Callable[[str], TypeProto | None]


@dataclass
class Made:
    """Nodes, initializers and constants that take the place of one node.

    `leading` are nodes without inputs, already in the target opset, that go in front. `fixed`
    are the values that were made, by name. `asked`: the conversion rests
    on more than the node itself, on a type, a constant or a fresh name.
    """

    leading: list[NodeProto] = field(default_factory=list)
    initializers: dict[str, TensorProto] = field(default_factory=dict)
    constants: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    fixed: dict[str, FixedValue] = field(default_factory=dict)
    asked: bool = False
    _producers: dict[str, tuple[NodeProto, int]] = field(default_factory=dict)
    _types: dict[str, TypeProto | None] = field(default_factory=dict)

    def add(self, node: NodeProto, version: int) -> NodeProto:
        """Remember what computes the node's outputs; a node may be added again when changed."""
        for name in node.output:
            self._producers[name] = (node, version)
            self._types.pop(name, None)
        return node

    def version_of(self, node: NodeProto) -> int:
        """The opset that a node was made in, 0 where it was not made here."""
        first = next((name for name in node.output if name), "")
        return self._producers[first][1] if first in self._producers else 0

    def value(self, array: npt.NDArray[Any], hint: str, site: Site) -> str:
        """The name of a fixed value as seen from `site`."""
        if isinstance(site.scope.owner, FunctionProto):
            tensor = _same(array, self._own_constants()) or self._constant_node(array, hint, site)
        else:
            fixed = FixedValue(array, hint)
            tensor = fixed(site)
            self.initializers[tensor.name] = tensor
            self.fixed[tensor.name] = fixed
        self.constants[tensor.name] = array
        return tensor.name

    def referring_constant(
        self, form: str, reference: AttributeProto, dtype: np.dtype[Any], site: Site
    ) -> str:
        """The name of a Constant-12 that holds what an attribute of the function says.

        Args:
            form: the attribute of Constant: `value_int` or `value_float`, (), with -s (n).
            reference: an attribute that refers to one of the function.
            dtype: what the Constant gives.
            site: a node in the function.
        """
        name = site.fresh(reference.name)
        node = helper.make_node("Constant", [], [name], domain=site.node.domain)
        node.attribute.add(name=form, type=reference.type, ref_attr_name=reference.ref_attr_name)
        self.leading.append(node)
        dims = (None,) if form.endswith("s") else ()
        self._types[name] = tensor_type(helper.np_dtype_to_tensor_dtype(dtype), dims)
        return name

    def type_of(self, name: str, type_of: TypeOf) -> TypeProto | None:
        """The type of a value made here, None where it cannot be inferred or is none of ours.

        Args:
            name: a value.
            type_of: tells the types of other values.
        """
        if name not in self._types and name in self.constants:
            array = self.constants[name]
            elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
            self._types[name] = tensor_type(elem_type, array.shape)
        if name not in self._types and name in self._producers:
            node, version = self._producers[name]
            self._types.update(dict.fromkeys(node.output))
            self._types.update(_inferred(node, version, type_of, self.constants))
        return self._types.get(name)

    def _own_constants(self) -> list[TensorProto]:
        return [node.attribute[0].t for node in self.leading if node.attribute[0].name == "value"]

    def _constant_node(self, array: npt.NDArray[Any], hint: str, site: Site) -> TensorProto:
        tensor = numpy_helper.from_array(array, site.fresh(hint))
        node = helper.make_node(
            "Constant", [], [tensor.name], domain=site.node.domain, value=tensor
        )
        self.leading.append(node)
        return tensor


def _inferred(
    node: NodeProto, version: int, type_of: TypeOf, constants: dict[str, npt.NDArray[Any]]
) -> dict[str, TypeProto]:
    types = {name: known for name in node.input if (known := type_of(name)) is not None}
    values = {
        name: numpy_helper.from_array(constants[name], name)
        for name in node.input
        if name in constants
    }
    imports = [helper.make_opsetid(node.domain, version)]
    schema = defs.get_schema(called_key(node)[1], version)
    try:
        found: dict[str, TypeProto] = shape_inference.infer_node_outputs(
            schema, node, types, input_data=values, opset_imports=imports
        )
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return {}
    return found


def _same(array: npt.NDArray[Any], tensors: list[TensorProto]) -> TensorProto | None:
    wanted = numpy_helper.from_array(array)
    for tensor in tensors:
        wanted.name = tensor.name
        if wanted == tensor:
            return tensor
    return None
