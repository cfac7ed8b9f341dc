"""Reads and writes values in the file layout of the onnx backend tests: `input_0.pb`,
`output_0.pb`, ...

Each file holds a TensorProto, SequenceProto or OptionalProto, according to the type of the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from onnx import (
    OptionalProto,
    SequenceProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    numpy_helper,
)

from passes.verify.executor import Value

Proto = TensorProto | SequenceProto | OptionalProto


def write(
    folder: Path, prefix: str, values: Mapping[str, Value], types: Sequence[ValueInfoProto]
) -> None:
    """Write `values` (by name) as `prefix_N.pb`, N being the place in `types`."""
    for place, declared in enumerate(types):
        if declared.name in values:
            proto = to_proto(declared.name, values[declared.name], declared.type)
            (folder / f"{prefix}_{place}.pb").write_bytes(proto.SerializeToString())


def to_proto(name: str, value: Value, type_: TypeProto) -> Proto:
    """A value as the proto its declared type asks for."""
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        return _optional(name, value, type_.optional_type.elem_type)
    if kind == "sequence_type" or isinstance(value, list):
        return _sequence(
            name, value if isinstance(value, list) else [], type_.sequence_type.elem_type
        )
    if value is None:
        raise ValueError(f"{name} has no value, and its type is no optional")
    return numpy_helper.from_array(np.asarray(value), name)


def from_bytes(data: bytes, type_: TypeProto) -> tuple[str, Value]:
    """The name and value in a file. Raises google.protobuf.message.DecodeError or ValueError."""
    match type_.WhichOneof("value"):
        case "optional_type":
            optional = OptionalProto.FromString(data)
            return optional.name, _from_optional(optional)
        case "sequence_type":
            sequence = SequenceProto.FromString(data)
            return sequence.name, _from_sequence(sequence)
    tensor = TensorProto.FromString(data)
    return tensor.name, numpy_helper.to_array(tensor)


def _sequence(name: str, items: Sequence[Value], element: TypeProto) -> SequenceProto:
    if element.WhichOneof("value") == "sequence_type":
        deeper = element.sequence_type.elem_type
        nested = [_sequence("", item if isinstance(item, list) else [], deeper) for item in items]
        return SequenceProto(name=name, elem_type=SequenceProto.SEQUENCE, sequence_values=nested)
    tensors = [numpy_helper.from_array(np.asarray(item)) for item in items]
    return SequenceProto(name=name, elem_type=SequenceProto.TENSOR, tensor_values=tensors)


def _optional(name: str, value: Value, element: TypeProto) -> OptionalProto:
    proto = OptionalProto(name=name)
    if isinstance(value, list):
        proto.elem_type = OptionalProto.SEQUENCE
        proto.sequence_value.CopyFrom(_sequence("", value, element.sequence_type.elem_type))
    elif value is not None:
        proto.elem_type = OptionalProto.TENSOR
        proto.tensor_value.CopyFrom(numpy_helper.from_array(np.asarray(value)))
    return proto


def _from_sequence(proto: SequenceProto) -> list[Value]:
    if proto.elem_type == SequenceProto.SEQUENCE:
        return [_from_sequence(item) for item in proto.sequence_values]
    return [numpy_helper.to_array(tensor) for tensor in proto.tensor_values]


def _from_optional(proto: OptionalProto) -> Value:
    if proto.elem_type == OptionalProto.SEQUENCE:
        return _from_sequence(proto.sequence_value)
    if proto.elem_type == OptionalProto.TENSOR:
        return numpy_helper.to_array(proto.tensor_value)
    return None
