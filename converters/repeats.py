"""Nodes that differ only in their names: one is converted, the others are written after it."""

from __future__ import annotations

from onnx import NodeProto

from converters.made import Made
from passes.engine.template import Template, Value
from passes.ir.operators import op_of


def template_of(
    node: NodeProto, nodes: list[NodeProto], made: Made, note: str, exact: bool
) -> Template | None:
    """The template of a conversion into `nodes`, where it rests on nothing but the node itself."""
    names = [name for name in (*node.input, *node.output) if name]
    if made.asked or made.leading or len(nodes) != 1 or len(set(names)) != len(names):
        return None
    (new,) = nodes
    outputs = len(new.output)
    if list(new.output) != list(node.output[:outputs]):
        return None
    places = {name: position for position, name in enumerate(node.input) if name}
    known: dict[str, int | str | Value] = {"": "", **made.fixed, **places}
    if not known.keys() >= set(new.input):
        return None
    inputs = tuple(known[name] for name in new.input)
    attributes = tuple(new.attribute)
    return Template(op_of(new), attributes, len(node.input), inputs, outputs, note, exact)
