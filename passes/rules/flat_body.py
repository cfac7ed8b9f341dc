"""The body of a Scan in a Scan's body, made ready to stand in that one's place."""

from __future__ import annotations

from onnx import GraphProto, NodeProto, TensorProto

from passes import scope as scoping
from passes.repeated import replace_all
from passes.rules.lifting import constants_of
from passes.rules.nest import Nest
from passes.value_types import dims_of


def flat_body(nest: Nest) -> GraphProto:
    """The inner body, which needs nothing of the outer one any more.

    Constants of the outer body that it reads come along, with what is said of how they are
    quantized; of Identities there it reads the origin. Elements that it does not declare have the
    type that the rows tell.
    """
    body = GraphProto()
    body.CopyFrom(nest.inner.body)
    scoping.rename_captures(body, nest.origins)
    _take_constants(body, nest.outer.body)
    elements = {one.body_input: grid for one, grid in nest.scanned}
    for value in body.input:
        if value.name in elements and dims_of(value.type) is None:
            value.type.CopyFrom(elements[value.name].type_of())
    return body


def _take_constants(body: GraphProto, outer: GraphProto) -> None:
    """Give a body the constants of the one around it that it reads."""
    read = set(scoping.captures(body))
    said = [one for one in outer.quantization_annotation if one.tensor_name in read]
    read.update(entry.value for one in said for entry in one.quant_parameter_tensor_names)
    found = {name: one for name, one in constants_of(outer).items() if name in read}
    nodes = [one for one in found.values() if isinstance(one, NodeProto)]
    replace_all(body.node, [*nodes, *body.node])
    body.initializer.extend(one for one in found.values() if isinstance(one, TensorProto))
    body.quantization_annotation.extend(one for one in said if one.tensor_name in found)
