"""Values in files: an `.npz`, or a folder in the layout of the onnx backend tests, in which a file
holds a TensorProto, SequenceProto or OptionalProto, by the type of the input."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from google.protobuf.message import DecodeError
from onnx import (
    ModelProto,
    OptionalProto,
    SequenceProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    numpy_helper,
)

from passes.errors import PassesError
from passes.types import signature
from passes.verify.executor import Array, Value
from passes.verify.inputs.arrays import numpy_dtype
from passes.verify.inputs.dims import declared


class BadInputs(PassesError):
    """The given inputs do not fit the model, or cannot be read; one sentence with both sides."""


def load(path: Path, model: ModelProto) -> dict[str, Value]:
    """The inputs in `path` by name, in the order of the model's inputs.

    An `.npz` holds arrays named like the inputs. A folder holds `input_N.pb`; a file belongs
    to the input whose name it bears, or else to the N-th. Overridable defaults may be left
    out; constants may be given as they are. Raises BadInputs for what is missing, unknown,
    unreadable or of another dtype, rank or size than declared.
    """
    required = signature.inputs(model.graph)
    allowed = signature.feedable(model)
    types = {value.name: value.type for value in allowed}
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise BadInputs(f"{path}: cannot be read ({error.strerror})") from error
    if not exists:
        raise BadInputs(f"{path}: there is no such file or folder")
    values = _from_folder(path, allowed) if is_folder else _from_npz(path, types)
    for tensor in model.graph.initializer:
        if tensor.name not in types and _is_constant(values.get(tensor.name), tensor):
            del values[tensor.name]
    if missing := [value.name for value in required if value.name not in values]:
        raise BadInputs(f"{path}: no value for input {', '.join(missing)}; it has {_names(values)}")
    if unknown := [name for name in values if name not in types]:
        raise BadInputs(f"{path}: {', '.join(unknown)} is no input; the model has {_names(types)}")
    for name, value in values.items():
        if sentence := misfit(name, value, types[name]):
            raise BadInputs(f"{path}: {sentence}")
    return {name: values[name] for name in types if name in values}


def _is_constant(value: Value, tensor: TensorProto) -> bool:
    """Return whether a value that is given for a constant equals it."""
    inside = tensor.data_location != TensorProto.EXTERNAL
    if not inside or not isinstance(value, np.ndarray):
        return False
    return np.array_equal(numpy_helper.to_array(tensor), value)


def misfit(name: str, value: Value, type_: TypeProto) -> str | None:
    """A sentence where a value has not the declared type, else None."""
    match type_.WhichOneof("value"):
        case "optional_type":
            return None if value is None else misfit(name, value, type_.optional_type.elem_type)
        case "sequence_type":
            if not isinstance(value, list):
                return f"input {name} is a sequence, a tensor is given"
            inner = type_.sequence_type.elem_type
            items = (misfit(f"{name}[{n}]", item, inner) for n, item in enumerate(value))
            return next((sentence for sentence in items if sentence), None)
    if not isinstance(value, np.ndarray):
        return f"input {name} is a tensor, {'nothing' if value is None else 'a sequence'} is given"
    return _tensor_misfit(name, value, type_)


def _tensor_misfit(name: str, value: Array, type_: TypeProto) -> str | None:
    wanted = numpy_dtype(type_.tensor_type.elem_type)
    is_text = wanted.kind == "O" and value.dtype.kind in "OUS"
    if value.dtype != wanted and not is_text:
        return f"input {name} is {wanted}, {value.dtype} is given"
    dims = declared(type_)
    if dims is None:
        return None
    fits = len(dims) == value.ndim and all(
        not isinstance(dim, int) or dim == size for dim, size in zip(dims, value.shape, strict=True)
    )
    if fits:
        return None
    return f"input {name} is {signature.describe_type(type_)}, shape {list(value.shape)} is given"


def _from_npz(path: Path, types: Mapping[str, TypeProto]) -> dict[str, Value]:
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise BadInputs(f"{path}: an .npz file is wanted, with one array per input")
        with archive:
            return {name: as_declared(archive[name], types.get(name)) for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        junk = str(error).startswith("Cannot load file")  # numpy goes on about pickles
        reason = "it holds no arrays" if junk else str(error)
        raise BadInputs(f"{path}: it cannot be read as .npz: {reason}") from error


def as_declared(array: Array, type_: TypeProto | None) -> Value:
    """numpy files lose the names of bfloat16, float8 and int4: raw bytes become them again."""
    if array.dtype.kind == "U":
        return array.astype(object)
    if array.dtype.kind == "V" and type_ is not None and type_.HasField("tensor_type"):
        wanted = numpy_dtype(type_.tensor_type.elem_type)
        if wanted.itemsize == array.dtype.itemsize:
            return array.view(wanted)
    return array


def _from_folder(path: Path, allowed: Sequence[ValueInfoProto]) -> dict[str, Value]:
    files = [(int(match[1]), file) for file in path.iterdir() if (match := _numbered(file))]
    if not files:
        raise BadInputs(f"{path}: it holds no input_0.pb, input_1.pb, ...")
    values: dict[str, Value] = {}
    for number, file in sorted(files):
        name, value = _read(file, number, allowed)
        if name in values:
            raise BadInputs(f"{file}: input {name} is given twice")
        values[name] = value
    return values


def _numbered(file: Path) -> re.Match[str] | None:
    return re.fullmatch(r"input_(\d+)\.pb", file.name)


def _read(file: Path, number: int, allowed: Sequence[ValueInfoProto]) -> tuple[str, Value]:
    """The input a file is for, and its value."""
    by_name = {value.name: value for value in allowed}
    if number >= len(allowed):
        raise BadInputs(f"{file}: the model has {len(allowed)} inputs: {_names(by_name)}")
    data, position = file.read_bytes(), allowed[number]
    try:
        name, value = _from_bytes(data, position.type)
        named = by_name.get(name, position)
        if named is not position:  # a sequence reads otherwise than a tensor
            _, value = _from_bytes(data, named.type)
    except (DecodeError, ValueError, TypeError, KeyError) as error:
        raise BadInputs(f"{file}: it cannot be read: {error}") from error
    return named.name, value


def _from_bytes(data: bytes, type_: TypeProto) -> tuple[str, Value]:
    """The name and value in a file."""
    match type_.WhichOneof("value"):
        case "optional_type":
            optional = OptionalProto.FromString(data)
            return optional.name, numpy_helper.to_optional(optional)
        case "sequence_type":
            sequence = SequenceProto.FromString(data)
            return sequence.name, numpy_helper.to_list(sequence)
    tensor = TensorProto.FromString(data)
    return tensor.name, numpy_helper.to_array(tensor)


def write(
    folder: Path, prefix: str, values: Mapping[str, Value], types: Sequence[ValueInfoProto]
) -> None:
    """Write `values` (by name) as `prefix_N.pb`, N being the place in `types`."""
    for place, value in enumerate(types):
        if value.name in values:
            proto = _to_proto(value.name, values[value.name], value.type)
            (folder / f"{prefix}_{place}.pb").write_bytes(proto.SerializeToString())


def _to_proto(
    name: str, value: Value, type_: TypeProto
) -> TensorProto | SequenceProto | OptionalProto:
    """A value as the proto that its declared type asks for."""
    if type_.HasField("optional_type"):
        return numpy_helper.from_optional(value, name)
    if isinstance(value, list):
        nested = type_.sequence_type.elem_type.HasField("sequence_type")
        kind = SequenceProto.SEQUENCE if nested else SequenceProto.TENSOR
        return numpy_helper.from_list(value, name, kind)
    if value is None:
        raise ValueError(f"{name} has no value, and its type is no optional")
    return numpy_helper.from_array(np.asarray(value), name)


def _names(values: Mapping[str, object]) -> str:
    return ", ".join(values) or "none"
