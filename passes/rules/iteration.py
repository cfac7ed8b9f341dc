"""One iteration of a loop, written out: the body's nodes with names of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import (
    GraphProto,
    NodeProto,
    StringStringEntryProto,
    TensorAnnotation,
    ValueInfoProto,
)

from passes import scope as scoping
from passes.author import Author
from passes.rules.shared_body import SharedBody

#: The metadata that says which iteration a node was written for.
ITERATION_KEY = "passes.iteration"

_FREE_SYMBOLS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Iteration:
    """The nodes of one iteration, what the body's outputs are called, and types of its values.

    `names` says what the values of the body are called in this iteration.
    """

    nodes: list[NodeProto]
    outputs: list[str]
    value_info: list[ValueInfoProto]
    annotations: list[TensorAnnotation]
    names: Mapping[str, str]


def write_iteration(
    author: Author,
    body: SharedBody,
    inputs: Mapping[str, str],
    tag: str,
    symbols: frozenset[str] = _FREE_SYMBOLS,
) -> Iteration:
    """Clone the body's nodes: `inputs` says what its inputs are called outside, `tag` (`it3`)
    ends the new names. Of the symbolic dims, `symbols` are those that mean the same outside."""
    mapping = dict(inputs)
    own: dict[str, str] = {}
    nodes = GraphProto().node  # in one place: a message of its own takes several times as much
    fresh, note = author.names.fresh, [StringStringEntryProto(key=ITERATION_KEY, value=tag)]
    for pattern in body.patterns:
        made = {name: fresh(f"{name}/{tag}") for name in pattern.outputs if name}
        given = [made.get(name, "") for name in pattern.outputs]
        pattern.write(nodes, mapping, given, tag, note)
        own |= made
        mapping |= made
    outputs = [mapping.get(name, name) for name in scoping.output_names(body.graph)]
    infos = [retyped(one, own, symbols) for one in body.graph.value_info if one.name in own]
    annotations = [
        _renamed(one, mapping)
        for one in body.graph.quantization_annotation
        if one.tensor_name in own
    ]
    return Iteration(list(nodes), outputs, infos, annotations, mapping)


def retyped(
    value: ValueInfoProto, own: Mapping[str, str], symbols: frozenset[str]
) -> ValueInfoProto:
    """The type under the new name; a symbol of the body may differ from iteration to iteration."""
    copy = ValueInfoProto()
    copy.CopyFrom(value)
    copy.name = own[value.name]
    for dim in copy.type.tensor_type.shape.dim if copy.type.HasField("tensor_type") else ():
        if dim.HasField("dim_param") and dim.dim_param not in symbols:
            dim.ClearField("dim_param")
    return copy


def _renamed(annotation: TensorAnnotation, mapping: Mapping[str, str]) -> TensorAnnotation:
    copy = TensorAnnotation()
    copy.CopyFrom(annotation)
    copy.tensor_name = mapping.get(copy.tensor_name, copy.tensor_name)
    for entry in copy.quant_parameter_tensor_names:
        entry.value = mapping.get(entry.value, entry.value)
    return copy
