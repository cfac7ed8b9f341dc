"""External data: where the bytes of a weight lie, checked without reading them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import AttributeProto, FunctionProto, ModelProto, TensorProto, helper
from onnx.numpy_helper import to_array

from passes.errors import BadModel
from passes.ir import scope as scoping

#: Bits of the types whose elements share bytes.
_PACKED_BITS: dict[int, int] = {
    TensorProto.INT4: 4,
    TensorProto.UINT4: 4,
    TensorProto.FLOAT4E2M1: 4,
    TensorProto.INT2: 2,
    TensorProto.UINT2: 2,
    TensorProto.FLOAT6E2M3: 6,
    TensorProto.FLOAT6E3M2: 6,
}


@dataclass(frozen=True)
class ExternalTensor:
    """The location of a tensor's bytes; `offset` and `length` in bytes; without a length, the dims
    decide."""

    location: str
    offset: int
    length: int | None

    @classmethod
    def of(cls, tensor: TensorProto) -> ExternalTensor:
        """Read the `external_data` entries of a tensor.

        Raises:
            BadModel: offset or length is no number of 0 or more, or there is no location.
        """
        entries = {entry.key: entry.value for entry in tensor.external_data}
        try:
            offset = int(entries.get("offset") or 0)
            length = int(entries["length"]) if entries.get("length") else None
        except ValueError as error:
            raise BadModel(f"external data of {tensor.name!r}: {error}") from error
        if not entries.get("location") or offset < 0 or (length is not None and length < 0):
            raise BadModel(f"external data of {tensor.name!r} has no usable location")
        return cls(entries["location"], offset, length)

    def size(self, tensor: TensorProto) -> int:
        """Return the number of bytes of the tensor."""
        return self.length if self.length is not None else byte_size(tensor)

    def read(self, tensor: TensorProto, base_dir: Path) -> npt.NDArray[Any]:
        """The value, memory mapped where the dtype allows it."""
        size = byte_size(tensor)
        path = base_dir / self.location
        if size == 0:
            raw: npt.NDArray[Any] = np.zeros(0, np.uint8)
        else:
            raw = np.memmap(path, np.uint8, "r", self.offset, (size,))
        if tensor.data_type in _PACKED_BITS:
            inline = TensorProto(
                data_type=tensor.data_type, dims=tensor.dims, raw_data=raw.tobytes()
            )
            return np.asarray(to_array(inline))
        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
        return raw.view(dtype.newbyteorder("<")).reshape(tuple(tensor.dims))


def byte_size(tensor: TensorProto) -> int:
    """Bytes of the tensor's raw data, from its dims and dtype.

    Raises:
        BadModel: a dim is negative, or there is no such dtype.
    """
    if any(dim < 0 for dim in tensor.dims):
        raise BadModel(f"{tensor.name!r} has the dims {list(tensor.dims)}")
    if tensor.data_type not in helper.get_all_tensor_dtypes():
        raise BadModel(f"{tensor.name!r} has the unknown data type {tensor.data_type}")
    count = math.prod(tensor.dims)
    if tensor.data_type in _PACKED_BITS:
        return (count * _PACKED_BITS[tensor.data_type] + 7) // 8
    return count * int(np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize)


def tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor of a model: initializers, sparse ones, attributes, at every depth."""
    for function in model.functions:
        yield from _attribute_tensors(function.attribute_proto)
    for _, owner in scoping.owners(model):
        for graph in scoping.graphs_below(owner):
            if not isinstance(graph, FunctionProto):
                yield from graph.initializer[:]
                for sparse in graph.sparse_initializer:
                    yield sparse.values
                    yield sparse.indices
            for node in graph.node[:]:
                attributes = node.attribute[:]
                if attributes:
                    yield from _attribute_tensors(attributes)


def _attribute_tensors(attributes: Iterable[AttributeProto]) -> Iterator[TensorProto]:
    for attribute in attributes:
        if attribute.type == AttributeProto.TENSOR:
            yield attribute.t
        elif attribute.type == AttributeProto.TENSORS:
            yield from attribute.tensors
        elif attribute.type == AttributeProto.SPARSE_TENSOR:
            yield attribute.sparse_tensor.values
            yield attribute.sparse_tensor.indices


def external_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor whose data lies in another file."""
    return filter(is_external, tensors(model))


def is_external(tensor: TensorProto) -> bool:
    """Return whether the data of a tensor lies in another file."""
    return tensor.data_location == TensorProto.EXTERNAL


def external_files(model: ModelProto, folder: Path) -> list[Path]:
    """The files that hold external data of a model in this folder."""
    places = (ExternalTensor.of(tensor).location for tensor in external_tensors(model))
    return [folder / location for location in dict.fromkeys(places)]


def check_external_data(model: ModelProto, folder: Path, file: str) -> None:
    """Check that every external tensor's bytes exist, inside the model's folder; `file` is for the
    sentence.

    Raises:
        BadModel: a file is missing, too short, no regular file, a link, or outside the folder.
    """
    sizes: dict[str, int] = {}
    for tensor in external_tensors(model):
        try:
            where = ExternalTensor.of(tensor)
            if where.location not in sizes:
                sizes[where.location] = _file_size(folder, where.location, tensor.name)
            end = where.offset + where.size(tensor)
            if where.size(tensor) != byte_size(tensor):
                raise BadModel(
                    f"external data of {tensor.name!r} has length {where.size(tensor)}, its dims "
                    f"and type make {byte_size(tensor)} bytes"
                )
            if end > sizes[where.location]:
                raise BadModel(
                    f"external data of {tensor.name!r} wants {byte_size(tensor)} bytes at "
                    f"{where.offset} of {where.location!r}, which has {sizes[where.location]}"
                )
        except BadModel as error:
            raise error.at(file=file) from None


def _file_size(folder: Path, location: str, name: str) -> int:
    relative = Path(location)
    file = folder / relative
    if relative.is_absolute() or ".." in relative.parts:
        raise BadModel(f"external data of {name!r} points outside the folder: {location!r}")
    parts = (relative, *list(relative.parents)[:-1])
    try:
        if any((folder / part).is_symlink() for part in parts):
            raise BadModel(f"external data of {name!r} is a symbolic link: {location!r}")
        if not file.is_file():
            raise BadModel(f"external data of {name!r} is missing: {location!r}")
        if not os.access(file, os.R_OK):
            raise BadModel(f"external data of {name!r} may not be read: {location!r}")
        return file.stat().st_size
    except (OSError, ValueError) as error:  # a name that no file can have: too long, with a NUL
        reason = getattr(error, "strerror", None) or error
        raise BadModel(f"external data of {name!r} has no usable location: {reason}") from None
