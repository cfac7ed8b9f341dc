"""Nodes as terms hold them: versions, attributes and element types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from google.protobuf.message import Message
from onnx import (
    AttributeProto,
    NodeProto,
    OperatorSetIdProto,
    TypeProto,
    defs,
    helper,
    numpy_helper,
)

from passes.converters.steps import Identical
from passes.converters.table import steps
from passes.ir.operators import is_onnx_domain, op_of, plain_domain
from passes.ir.versions import OLDEST_OPSET
from passes.proving.families import odd_flag
from passes.proving.terms.arrays import Array, NotProvable

#: Attributes by name, as parts of terms.
Data = tuple[tuple[str, object], ...]


def versions(imported: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """The opset of each domain.

    Raises:
        NotProvable: the operators of ONNX are older than what is modelled.
    """
    found = {plain_domain(one.domain): one.version for one in imported}
    if found.get("", 0) < OLDEST_OPSET:
        raise NotProvable("opset", f"opset {found.get('', 0)} is older than {OLDEST_OPSET}")
    return found


def attributes_of(node: NodeProto, opset: int) -> dict[str, Any]:
    """The attributes of a node, with the defaults of its version; None where there is none."""
    found: dict[str, Any] = {}
    if is_onnx_domain(node.domain):
        for name, declared in defs.get_schema(op_of(node), opset, "").attributes.items():
            default = declared.default_value
            found[name] = _value(default) if default.type else None
    for one in node.attribute:
        if one.ref_attr_name:
            sentence = f"no caller of the function gives the attribute {one.ref_attr_name!r}"
            raise NotProvable("function", sentence)
        found[one.name] = _value(one)
    if odd_flag(found):
        raise NotProvable("model", odd_flag(found))
    return found


def _value(attribute: AttributeProto) -> Any:
    if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
        return None
    if attribute.type == AttributeProto.TENSOR:
        return numpy_helper.to_array(attribute.t)
    value = helper.get_attribute_value(attribute)
    return tuple(value) if isinstance(value, list) else value


def meaning(node: NodeProto, opsets: Mapping[str, int], *, newer: bool = True) -> tuple[int, Data]:
    """The version of a node, or the newest one in which it means the same, and its attributes
    there, without bodies."""
    version = opsets.get(node.domain, 0)
    if is_onnx_domain(node.domain):
        version = defs.get_schema(op_of(node), opsets[""], "").since_version
        for step in steps(op_of(node), opsets[""], defs.onnx_opset_version()) if newer else ():
            if not isinstance(step, Identical):
                break
            version = step.version
    return version, data_of(attributes_of(node, version))


def data_of(attributes: Mapping[str, object]) -> Data:
    """The attributes that there are, as parts of a term."""
    return tuple((n, exact(v)) for n, v in sorted(attributes.items()) if v is not None)


def exact(value: object) -> object:
    """An attribute as part of a term: a float by its bits, since 0.0 and -0.0 are equal keys."""
    match value:
        case tuple():
            return tuple(map(exact, value))
        case float():
            return value.hex()
        case np.ndarray():
            items = value.tolist() if value.dtype == object else value.tobytes()
            return "tensor", str(value.dtype), value.shape, repr(items)
        case Message():
            return type(value).__name__, value.SerializeToString(deterministic=True)
    return value


def dtype_name(element: int) -> str:
    """The element type of a number of ONNX. Raises NotProvable."""
    if element not in helper.get_all_tensor_dtypes():
        raise NotProvable("type", f"the element type {element} is not modelled")
    name = np.dtype(helper.tensor_dtype_to_np_dtype(element)).name
    return "string" if name in ("object", "str") else str(name)


def type_of(array: Array) -> TypeProto:
    """The type of an array with the sizes that are known."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype.replace("string", "O")))
    return helper.make_tensor_type_proto(element, list(map(array.algebra.number, array.shape)))
