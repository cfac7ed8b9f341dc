"""Types inside model-local functions, from what their calls pass."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
    ValueInfoProto,
)

from passes.ir import scope as scoping
from passes.ir.operators import called_key, function_key
from passes.ir.scope import Key, Place
from passes.types.type_tables import Tables, TypeTable, inferred, look_up, tabulate
from passes.types.value_types import dims_of, elem_type_of, tensor_type

_HIDDEN = "not.to.be.inferred"  # a domain without schemas


def infer_functions(model: ModelProto, tables: dict[Key, TypeTable]) -> None:
    """Types inside functions, from what their calls pass, callers before callees."""
    calls = _calls(model)
    callers = {
        position: {place.scope.key[0] for place in places} for position, places in calls.items()
    }
    try:
        order = list(TopologicalSorter(callers).static_order())
    except CycleError:
        return  # functions that call themselves have no types that inference could find
    calling = set().union(*callers.values())
    for position in order[1:]:  # behind the main graph
        assert isinstance(position, int)
        function = model.functions[position - 1]
        body = _function_as_model(model, function, calls[position], tables)
        if position in calling:
            body.functions.extend(model.functions)
        path = scoping.function_label(function)
        tabulate(inferred(body), path, position, tables)


def _calls(model: ModelProto) -> dict[int, list[Place]]:
    """The calls of every function that the main graph reaches, by the function's position."""
    tops = list(scoping.scopes(model))
    positions = {
        function_key(function): position
        for position, function in enumerate(model.functions, start=1)
    }
    found: dict[int, list[Place]] = {}
    pending = tops[:1] if positions else []
    while pending:
        for place in scoping.walk(pending.pop()):
            node = place.node
            position = positions.get(called_key(node))
            if position is not None:
                if position not in found:
                    pending.append(tops[position])
                found.setdefault(position, []).append(place)
    return found


def _function_as_model(
    model: ModelProto, function: FunctionProto, calls: list[Place], tables: Tables
) -> ModelProto:
    """A function alone. It captures nothing, unlike a graph that `passes.ir.boundary` closes: its
    inputs have the types on which the calls agree."""
    body = ModelProto(ir_version=model.ir_version, opset_import=function.opset_import)
    body.opset_import.add(domain=_HIDDEN, version=1)
    body.graph.name = function.name
    body.graph.node.extend(function.node)
    _settle_attributes(body.graph, function, [place.node for place in calls])
    body.graph.value_info.extend(function.value_info)
    for position, name in enumerate(function.input):
        agreed = _agreed([_argument(place, position, tables) for place in calls])
        body.graph.input.add(name=name, type=agreed)
    body.graph.output.extend(ValueInfoProto(name=name) for name in function.output)
    return body


def _argument(place: Place, position: int, tables: Tables) -> TypeProto | None:
    arguments = place.node.input
    return look_up(tables, place.scope, arguments[position]) if position < len(arguments) else None


def _settle_attributes(graph: GraphProto, function: FunctionProto, calls: list[NodeProto]) -> None:
    """Replace references to attributes by the values on which the calls agree.

    Inference reads a reference as 0: where the calls differ, the node is hidden from it.
    """
    for owner in scoping.graphs_below(graph):
        for node in owner.node:
            for attribute in [reference for reference in node.attribute if reference.ref_attr_name]:
                values = [_in_call(call, function, attribute.ref_attr_name) for call in calls]
                if values[0] is None or any(value != values[0] for value in values):
                    node.domain = _HIDDEN
                else:
                    name = attribute.name
                    attribute.CopyFrom(values[0])
                    attribute.name = name


def _in_call(call: NodeProto, function: FunctionProto, name: str) -> AttributeProto | None:
    """The value of an attribute in a call; None if its own caller chooses it, or it has none."""
    declared = {
        attribute.name: attribute for attribute in (*function.attribute_proto, *call.attribute)
    }
    found = declared.get(name)
    return None if found is None or found.ref_attr_name else found


def _agreed(types: list[TypeProto | None]) -> TypeProto | None:
    """Return the type on which all calls agree, without the dims that differ."""
    first, *rest = types
    if first is None or any(other is None for other in rest):
        return None
    if all(other == first for other in rest):
        return first
    elem_types = {elem_type_of(type_) for type_ in types}
    if len(elem_types) != 1 or 0 in elem_types:
        return None
    shapes = [dims_of(type_) for type_ in types]
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes) or len({len(shape) for shape in known}) != 1:
        return tensor_type(elem_types.pop(), None)
    dims = tuple(
        column[0] if len(set(column)) == 1 else None for column in zip(*known, strict=True)
    )
    return tensor_type(elem_types.pop(), dims)
