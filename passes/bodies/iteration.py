"""One iteration of a loop, written out: the body's nodes under new names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import (
    TensorAnnotation,
    ValueInfoProto,
)

from passes.bodies.shared_body import SharedBody
from passes.ir import scope as scoping
from passes.ir.draft import Draft
from passes.ir.protos import named
from passes.writing.author import Author

_FREE_SYMBOLS: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Iteration:
    """The nodes of one iteration, the names of the body's outputs, and types of its values.

    `names` maps the values of the body to their names in this iteration.
    """

    nodes: list[Draft]
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
    """Clone the body's nodes: `inputs` maps its inputs to outer names, `tag` (`it3`)
    ends the new names. `symbols` are the symbolic dims that mean the same outside."""
    mapping = dict(inputs)
    fresh = author.names.fresh
    nodes = [pattern.copied(mapping, fresh, tag) for pattern in body.patterns]
    outputs = [mapping.get(name, name) for name in scoping.output_names(body.graph)]
    defined = body.defined
    infos = [
        retyped(value, mapping, symbols) for value in body.graph.value_info if value.name in defined
    ]
    annotations = [
        scoping.renamed_annotation(annotation, mapping)
        for annotation in body.graph.quantization_annotation
        if annotation.tensor_name in defined
    ]
    return Iteration(nodes, outputs, infos, annotations, mapping)


def retyped(
    value: ValueInfoProto, own: Mapping[str, str], symbols: frozenset[str]
) -> ValueInfoProto:
    """The type under the new name; a symbol of the body may differ between iterations."""
    copy = named(value, own[value.name])
    for dim in copy.type.tensor_type.shape.dim if copy.type.HasField("tensor_type") else ():
        if dim.HasField("dim_param") and dim.dim_param not in symbols:
            dim.ClearField("dim_param")
    return copy
