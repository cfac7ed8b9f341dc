"""The attributes of the Scan or Loop node that a LoopForm becomes."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import GraphProto, NodeProto, ValueInfoProto, helper

from passes.ir.protos import copied, replace_all
from passes.loops.parts import Collected, Kind, Scanned

AXES_AND_DIRECTIONS = (
    "scan_input_axes",
    "scan_input_directions",
    "scan_output_axes",
    "scan_output_directions",
)
_OURS = {"body", "num_scan_inputs", "directions", *AXES_AND_DIRECTIONS}


def set_attributes(
    node: NodeProto,
    kind: Kind,
    body: GraphProto,
    scanned: Sequence[Scanned],
    collected: Sequence[Collected],
) -> None:
    """Give a node the attributes of a loop, in place; those that no loop knows stay.

    Axes and directions with default values are written only where the node had them.
    """
    had = {attribute.name for attribute in node.attribute}
    kept = [attribute for attribute in node.attribute if attribute.name not in _OURS]
    attributes = [helper.make_attribute("body", body)]
    if kind is not Kind.LOOP:
        attributes.append(helper.make_attribute("num_scan_inputs", len(scanned)))
    for name, values in _lists(kind, scanned, collected).items():
        if values and (any(values) or name in had):
            attributes.append(helper.make_attribute(name, values))
    replace_all(node.attribute, [*attributes, *kept])


def _lists(
    kind: Kind, scanned: Sequence[Scanned], collected: Sequence[Collected]
) -> dict[str, list[int]]:
    backwards = [int(scan.reversed) for scan in scanned]
    if kind is Kind.SCAN_8:
        return {"directions": backwards}
    if kind is Kind.LOOP:
        return {}
    prepends = [int(collect.reversed) for collect in collected]
    axes = [scan.axis for scan in scanned]
    out_axes = [collect.axis for collect in collected]
    values = (axes, backwards, out_axes, prepends)
    return dict(zip(AXES_AND_DIRECTIONS, values, strict=True))


def relisted(body: GraphProto, inputs: Sequence[str], outputs: Sequence[str]) -> GraphProto:
    """A copy of a body that lists these inputs and outputs, with the types that it knows."""
    known_inputs = {value.name: value for value in body.input}
    known = {value.name: value for value in (*body.value_info, *body.output)}
    known = known_inputs | known  # a body may return an input as it is
    graph = copied(body)
    del graph.input[:]
    del graph.output[:]
    graph.input.extend(known_inputs.get(name, ValueInfoProto(name=name)) for name in inputs)
    graph.output.extend(known.get(name, ValueInfoProto(name=name)) for name in outputs)
    return graph
