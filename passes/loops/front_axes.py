"""Axes of Scans counted from the front, as they must be before opset 11."""

from __future__ import annotations

from onnx import AttributeProto, ModelProto, TypeProto

from passes.check.control_flow.scan_form import NEGATIVE_AXES
from passes.ir import scope as scoping
from passes.ir.model import Model
from passes.ir.operators import op_of
from passes.ir.scope import Place
from passes.loops.form import LoopForm
from passes.types.inference import ValueTypes
from passes.types.value_types import dims_of

_OLDEST = 9  # Scan-8 has no axes


def with_front_axes(model: Model) -> ModelProto:
    """A copy in which they are, where the rank of a tensor is known; elsewhere they stay."""
    copy = ModelProto()
    copy.CopyFrom(model.proto)
    types = ValueTypes(model.proto)
    for place in scoping.walk_model(copy):
        *_, top = place.scope.chain()
        opset = model.opset(top.owner)
        if op_of(place.node) == "Scan" and _OLDEST <= opset < NEGATIVE_AXES:
            _turn(place, opset, types)
    return copy


def _turn(place: Place, opset: int, types: ValueTypes) -> None:
    if any(attribute.ref_attr_name for attribute in place.node.attribute):
        return  # the caller of the function says what belongs to which axis
    form = LoopForm.from_node(place.node, opset)
    inner = next(one for one in place.scope.inner(place.index) if one.key[-1] == "body")
    names = {
        "scan_input_axes": [one.body_input for one in form.scanned],
        "scan_output_axes": [one.body_output for one in form.collected],
    }
    for attribute in place.node.attribute:
        if attribute.name in names and any(axis < 0 for axis in attribute.ints):
            elements = [types.of(inner, name) for name in names[attribute.name]]
            _turn_all(attribute, elements)


def _turn_all(attribute: AttributeProto, elements: list[TypeProto | None]) -> None:
    for position, known in enumerate(elements):
        dims = dims_of(known)
        if dims is not None:
            attribute.ints[position] %= len(dims) + 1
