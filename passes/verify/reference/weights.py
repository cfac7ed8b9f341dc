"""Initializers as arrays: in the file, beside it, or sparse."""

from __future__ import annotations

import math
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
from onnx import GraphProto, SparseTensorProto, TensorProto, helper, numpy_helper

from passes.ir.external_data import byte_size, is_external
from passes.verify.executor import Array, CannotRun
from passes.verify.reference.value_types import blank

#: Types that pack two or more elements into a byte: their bytes are no numpy array.
_PACKED = {
    kind
    for name in ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2", "FLOAT6E2M3", "FLOAT6E3M2")
    if (kind := getattr(TensorProto, name, None)) is not None
}


def initial_values(graph: GraphProto, base_dir: Path | None) -> dict[str, Array]:
    """The dense and sparse initializers of a graph, sparse ones made dense.

    Raises `CannotRun` where external data is missing.
    """
    values = {tensor.name: array_of(tensor, base_dir) for tensor in graph.initializer}
    for sparse in graph.sparse_initializer:
        values[sparse.values.name] = dense(sparse, base_dir)
    return values


def array_of(tensor: TensorProto, base_dir: Path | None) -> Array:
    """The value of a tensor; external data is memory-mapped, not read.

    Raises `CannotRun` when its file is missing, too short, or outside of `base_dir`.
    """
    if not is_external(tensor):
        return np.asarray(numpy_helper.to_array(tensor))
    place = {entry.key: entry.value for entry in tensor.external_data}
    path = _inside(tensor, place.get("location", ""), base_dir)
    offset = int(place.get("offset", "0") or 0)
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type)
    count = math.prod(tensor.dims)
    packed = tensor.data_type in _PACKED
    length = int(place.get("length", "0") or 0)
    length = length or byte_size(tensor)
    available = path.stat().st_size - offset if path.is_file() else -1
    if available < length:
        have = "is missing" if available < 0 else f"has {available} bytes after offset {offset}"
        raise CannotRun(f"external data of {tensor.name!r}: {path} {have}, {length} are needed")
    if packed:
        return _unpacked(tensor, path, offset, length)
    if length < count * dtype.itemsize:
        raise CannotRun(
            f"external data of {tensor.name!r}: {length} bytes are given, "
            f"{count * dtype.itemsize} are needed for shape {tuple(tensor.dims)}"
        )
    if count == 0:
        return np.zeros(tuple(tensor.dims), dtype)
    raw = _mapped(path)[offset : offset + count * dtype.itemsize]
    return raw.view(dtype).reshape(tuple(tensor.dims))


#: Files that arrays lie in, by path and state: each is mapped once, and read-only.
_FILES: WeakValueDictionary[tuple[object, ...], Array] = WeakValueDictionary()


def _mapped(path: Path) -> Array:
    """A file as bytes: numpy's memory map does not know the small float types."""
    state = path.stat()
    key = (path, state.st_ino, state.st_size, state.st_mtime_ns)
    file = _FILES.get(key)
    if file is None:
        file = _FILES[key] = np.memmap(path, np.uint8, "r")
    return np.asarray(file)


def dense(sparse: SparseTensorProto, base_dir: Path | None) -> Array:
    """A sparse tensor with zeros filled in; its indices are linear or one row per element."""
    values = array_of(sparse.values, base_dir)
    indices = array_of(sparse.indices, base_dir)
    full = blank(tuple(sparse.dims), values.dtype)
    if indices.ndim == 2:
        full[tuple(indices.T)] = values
    else:
        full.reshape(-1)[indices] = values
    return full


def _inside(tensor: TensorProto, location: str, base_dir: Path | None) -> Path:
    if base_dir is None:
        raise CannotRun(f"{tensor.name!r} has external data, but no directory was given")
    root = base_dir.resolve()
    path = (root / location).resolve()
    if not location or not path.is_relative_to(root):
        raise CannotRun(f"external data of {tensor.name!r} lies outside of {base_dir}")
    return path


def _unpacked(tensor: TensorProto, path: Path, offset: int, length: int) -> Array:
    with path.open("rb") as file:
        file.seek(offset)
        raw = file.read(length) if length else file.read()
    inline = TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)
    return np.asarray(numpy_helper.to_array(inline))
