"""Constant nodes in all their spellings, as the tensor they hold."""

from __future__ import annotations

from onnx import NodeProto, SparseTensorProto, TensorProto, helper

from passes.ir.operators import op_of
from passes.ir.protos import copied, named


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
