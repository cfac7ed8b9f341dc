"""Values and their ONNX types, both ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, TypeProto, helper

from passes.types.value_types import dims_of
from passes.verify.executor import Array, Value


def type_of(value: Value, *, shaped: bool = True) -> TypeProto:
    """The ONNX type of a value; an empty type for an omitted one.

    `shaped=False` leaves the shape of tensors open. Elements of an empty sequence have no known
    type.
    """
    if value is None:
        return TypeProto()
    if isinstance(value, list):
        element = type_of(value[0], shaped=False) if value else TypeProto()
        return helper.make_sequence_type_proto(element)
    return tensor_type(value.dtype, value.shape if shaped else None)


def element_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the elements; of arrays that hold the numbers of terms in their place, the
    dtype that their one field is named after."""
    if dtype.names is None:
        return dtype
    return np.dtype(getattr(ml_dtypes, dtype.names[0], dtype.names[0]))


def tensor_type(dtype: np.dtype[np.generic], shape: Sequence[int | None] | None) -> TypeProto:
    """The type of a tensor, None for open dims; `shape=None` leaves it open, rank included."""
    return helper.make_tensor_type_proto(
        helper.np_dtype_to_tensor_dtype(element_dtype(dtype)), shape
    )


def known_shape(kind: TypeProto) -> list[int | None] | None:
    """The dims of a tensor type, None for each one that is not a number; None without a rank."""
    dims = dims_of(kind)
    return None if dims is None else [dim if isinstance(dim, int) else None for dim in dims]


def known_dtype(kind: TypeProto) -> np.dtype[np.generic] | None:
    """The numpy dtype of a tensor type, None if it is unknown."""
    elem_type = kind.tensor_type.elem_type
    if elem_type == TensorProto.UNDEFINED:
        return None
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))


def blank(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Array:
    """An array of zeros: 0, False, or the empty string."""
    if dtype.kind == "O":
        return np.full(shape, "", object)
    return np.zeros(shape, dtype)
