"""Do tensors hold what their dims and dtype require, and texts UTF-8?"""

from __future__ import annotations

import math
from collections.abc import Iterable

import onnx
from onnx import AttributeProto, FunctionProto, ModelProto, TensorProto, helper

from passes.check.operators import NodeInScope
from passes.errors import BadModel, count
from passes.ir import scope as scoping
from passes.ir.external_data import byte_size
from passes.ir.operators import is_onnx_domain
from passes.ir.scope import Owner
from passes.types.value_types import element

#: More elements than any file or memory holds: the dims are garbage.
_ABSURD = 1 << 48
_SHOWN = 20  # bytes of a damaged text
_COMPLEX = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)
_PACKED: dict[int, int] = {
    TensorProto.INT4: 2,
    TensorProto.UINT4: 2,
    TensorProto.FLOAT4E2M1: 2,
    TensorProto.INT2: 4,
    TensorProto.UINT2: 4,
}


def check_tensors(model: ModelProto, places: Iterable[NodeInScope]) -> None:
    """Initializers of every graph, and the tensors and texts of the nodes at `places`.

    External data was measured when the model was loaded; only its dims and dtype are checked.
    """
    _check_initializers(model.graph, scoping.MAIN)
    for place in places:
        for attribute in place.node.attribute[:]:
            if attribute.type == AttributeProto.TENSOR:
                check_tensor(attribute.t, f"the tensor of attribute {attribute.name}", place.path)
            elif is_onnx_domain(place.node.domain):  # another one may keep any bytes there
                texts = (attribute.s, *attribute.strings)
                _check_texts(texts, f"attribute {attribute.name}", place.path)
        for inner in place.bodies:
            _check_initializers(inner.owner, inner.path)


def _check_initializers(owner: Owner, path: str) -> None:
    if not isinstance(owner, FunctionProto):
        for tensor in owner.initializer[:]:
            check_tensor(tensor, f"initializer {tensor.name!r}", path)


def check_tensor(tensor: TensorProto, what: str, path: str) -> None:
    """Check one tensor; `what` names it in messages."""
    dtype = element(tensor.data_type)
    if not dtype:
        raise BadModel(
            f"{what} has data type {tensor.data_type}, which the installed onnx "
            f"{onnx.__version__} does not know"
            if tensor.data_type
            else f"{what} has no data type",
            path=path,
        )
    dims = list(tensor.dims)
    if any(dim < 0 for dim in dims):
        raise BadModel(f"{what} has a negative dim in {dims}", path=path)
    if math.prod(dims) > _ABSURD:
        raise BadModel(f"{what} has dims {dims}, more than any file can hold", path=path)
    if tensor.data_location != TensorProto.EXTERNAL:
        _check_size(tensor, what, path)


def _check_size(tensor: TensorProto, what: str, path: str) -> None:
    dims, dtype = list(tensor.dims), element(tensor.data_type)
    if not tensor.HasField("raw_data"):
        _check_count(tensor, what, path)
        _check_texts(tensor.string_data, what, path)
        return
    if tensor.data_type == TensorProto.STRING:
        raise BadModel(f"{what} holds strings as raw data", path=path)
    found, expected = len(tensor.raw_data), byte_size(tensor)
    if found != expected:
        raise BadModel(
            f"{what} holds {count(found, 'byte')}, but dims {dims} of {dtype} take {expected}",
            path=path,
        )


def _check_texts(texts: Iterable[bytes], what: str, path: str) -> None:
    for text in texts:
        try:
            text.decode()
        except UnicodeDecodeError as error:
            shown = text[:_SHOWN]
            raise BadModel(f"{what} holds {shown!r}, which is no UTF-8", path=path) from error


def _check_count(tensor: TensorProto, what: str, path: str) -> None:
    expected = math.prod(tensor.dims)
    if tensor.data_type in _COMPLEX:
        expected *= 2
    elif tensor.data_type in _PACKED:
        expected = -(-expected // _PACKED[tensor.data_type])
    name = helper.tensor_dtype_to_field(tensor.data_type)
    found = len(getattr(tensor, name))
    if found != expected:
        raise BadModel(
            f"{what} holds {count(found, 'value')} in {name}, but dims {list(tensor.dims)} of "
            f"{element(tensor.data_type)} take {expected}",
            path=path,
        )
