"""The nodes made so far in the conversion of one node, and the values that conversions share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import (
    AttributeProto,
    FunctionProto,
    NodeProto,
    TensorProto,
    TypeProto,
    checker,
    defs,
    helper,
    numpy_helper,
    shape_inference,
)

from passes.ir.operators import bare_op, op_of
from passes.ir.protos import named
from passes.ir.versions import CONSTANT_OF_ANY_TYPE
from passes.rule import Site, Slot
from passes.types.value_types import dims_of, is_known, tensor_type
from passes.writing.spelling import content

_TENSORS: Slot[dict[Hashable, TensorProto]] = Slot()


@dataclass(frozen=True, eq=False)
class FixedValue:
    """A value and a hint for its name; called with a site it gives the tensor of that graph."""

    array: npt.NDArray[Any]
    hint: str

    def __call__(self, site: Site) -> TensorProto:
        """One tensor for all equal values of a graph; equal means dtype, shape and bytes."""
        known = site.memory.once(_TENSORS, dict, site.scope.owner)
        if self._content not in known:
            known[self._content] = named(self._tensor, site.fresh(self.hint))
        return known[self._content]

    @cached_property
    def _content(self) -> Hashable:
        return content(self.array)

    @cached_property
    def _tensor(self) -> TensorProto:
        plain = np.ascontiguousarray(self.array).reshape(self.array.shape)
        return numpy_helper.from_array(plain)


@dataclass(frozen=True)
class Noted:
    """Types and constants of values, by their positions in a list of names."""

    types: dict[int, TypeProto | None]
    constants: dict[int, npt.NDArray[Any]]


TypeOf = Callable[[str], TypeProto | None]


@dataclass
class Made:
    """Nodes, initializers and constants that take the place of one node.

    `leading` are nodes without inputs, already in the target opset, that go in front. `fixed`
    are the values that were made, by name. `reads_model`: the conversion rests
    on more than the node itself, on a type, a constant or a fresh name; of the constants that the
    node itself reads, `fixed_inputs` are those it rests on, `folded` the values that other nodes
    compute from constants. `expanded` are the first
    outputs of nodes of a function body with bodies, which are in its opset, too.
    """

    leading: list[NodeProto] = field(default_factory=list)
    initializers: dict[str, TensorProto] = field(default_factory=dict)
    constants: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    fixed: dict[str, FixedValue] = field(default_factory=dict)
    reads_model: bool = False
    fixed_inputs: set[str] = field(default_factory=set)
    folded: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    expanded: set[str] = field(default_factory=set)
    _nodes: dict[Hashable, str] = field(default_factory=dict)
    _producers: dict[str, tuple[NodeProto, int]] = field(default_factory=dict)
    _types: dict[str, TypeProto | None] = field(default_factory=dict)

    def add(self, node: NodeProto, version: int) -> NodeProto:
        """Remember what computes the node's outputs; a node may be added again when changed.

        A type that was found before still holds.
        """
        for name in node.output:
            self._producers[name] = (node, version)
            if self._types.get(name) is None:
                self._types.pop(name, None)
        return node

    def declare(self, name: str, type_: TypeProto) -> None:
        """Note the type of a value that no node computes, where it is known."""
        self._types[name] = type_ if is_known(type_) else None

    def noted(self, names: Sequence[str]) -> Noted:
        """Return the facts found about these values so far."""
        places = list(enumerate(names))
        return Noted(
            {place: self._types[name] for place, name in places if name in self._types},
            {place: self.constants[name] for place, name in places if name in self.constants},
        )

    def note(self, names: Sequence[str], noted: Noted) -> None:
        """Note the same of values in whose nodes only the names are others."""
        self.reads_model = True
        self._types.update({names[place]: known for place, known in noted.types.items()})
        self.constants.update({names[place]: known for place, known in noted.constants.items()})

    def version_of(self, node: NodeProto) -> int:
        """The opset that a node was made in, 0 where it was not made here."""
        first = next((name for name in node.output if name), "")
        return self._producers[first][1] if first in self._producers else 0

    def value(self, array: npt.NDArray[Any], hint: str, site: Site) -> str:
        """The name of a fixed value as seen from `site`."""
        if isinstance(site.scope.owner, FunctionProto):
            key = content(array)
            if key not in self._nodes:
                self._nodes[key] = self._constant_node(array, hint, site)
            name = self._nodes[key]
        else:
            fixed = FixedValue(array, hint)
            tensor = fixed(site)
            name = tensor.name
            self.initializers[name], self.fixed[name] = tensor, fixed
        self.constants[name] = array
        return name

    def referring_constant(
        self, form: str, reference: AttributeProto, dtype: np.dtype[Any], site: Site
    ) -> str:
        """Return the name of a Constant-12 that holds an attribute of the function.

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
            type_of: gives the types of other values.
        """
        if name not in self._types and name in self.constants:
            array = self.constants[name]
            elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
            self._types[name] = tensor_type(elem_type, array.shape)
        if name not in self._types and name in self._producers:
            node, version = self._producers[name]
            self._types.update(dict.fromkeys(node.output))
            self._types.update(_inferred(node, version, type_of, self.constants))
            if op_of(node) == "Shape" and not node.attribute:
                dims = dims_of(type_of(node.input[0])) or (None,)
                sizes = [dim for dim in dims if isinstance(dim, int)]
                if len(sizes) == len(dims):  # so a Reshape to them has a shape, too
                    self.constants[name] = np.array(sizes, np.int64)
        return self._types.get(name)

    def _constant_node(self, array: npt.NDArray[Any], hint: str, site: Site) -> str:
        tensor = numpy_helper.from_array(array, site.fresh(hint))
        held, casts = tensor, []
        if site.target < CONSTANT_OF_ANY_TYPE and array.dtype.kind in "biu":
            wide = array.astype(np.float64)
            if np.array_equal(wide.astype(array.dtype), array):
                held = numpy_helper.from_array(wide, site.fresh(hint))
                to = tensor.data_type
                casts = [helper.make_node("Cast", [held.name], [tensor.name], to=to)]
        nodes = [helper.make_node("Constant", [], [held.name], value=held), *casts]
        for node in nodes:
            node.domain = site.node.domain
        self.leading.extend(nodes)
        return tensor.name


def _inferred(
    node: NodeProto, version: int, type_of: TypeOf, constants: dict[str, npt.NDArray[Any]]
) -> dict[str, TypeProto]:
    types = {name: known for name in node.input if (known := type_of(name)) is not None}
    if not types.keys() >= set(filter(None, node.input)):
        return {}
    values = {
        name: numpy_helper.from_array(constants[name], name)
        for name in node.input
        if name in constants
    }
    schema = defs.get_schema(bare_op(node), version)
    newest = defs.get_schema(schema.name)
    # where the version does not take the types, which get Casts later, the newest may do
    alike = [newest] if newest.attributes.keys() == schema.attributes.keys() else []
    failures = (shape_inference.InferenceError, checker.ValidationError, RuntimeError, ValueError)
    for one in (schema, *alike):
        imports = [helper.make_opsetid(node.domain, max(version, one.since_version))]
        with suppress(*failures):
            found: dict[str, TypeProto] = shape_inference.infer_node_outputs(
                one, node, types, input_data=values, opset_imports=imports
            )
            return found
    return {}
