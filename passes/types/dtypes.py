"""The numpy dtypes of element types."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TypeProto, helper

Array = npt.NDArray[Any]


def numpy_dtype(elem_type: int) -> np.dtype[Any]:
    """The numpy dtype of a TensorProto element type; strings are objects."""
    return np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype holds real floating-point numbers, of any width."""
    if dtype.kind in "biucOSU":
        return False
    return dtype.kind == "f" or dtype.name not in ("int2", "uint2", "int4", "uint4")


def as_declared(array: Array, type_: TypeProto | None) -> Array:
    """An array of a numpy file in its declared type: such files hold bfloat16, float8 and int4 as
    bytes of no type, and strings in another one."""
    if array.dtype.kind == "U":
        return array.astype(object)
    if array.dtype.kind == "V" and type_ is not None and type_.HasField("tensor_type"):
        wanted = numpy_dtype(type_.tensor_type.elem_type)
        if wanted.itemsize == array.dtype.itemsize:
            return array.view(wanted)
    return array
