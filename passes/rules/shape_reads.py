"""Reads of a buffer in a loop that only ask for its shape, which writing to it does not change."""

from __future__ import annotations

from dataclasses import replace

from onnx import GraphProto

from passes.loop_form import Carried, LoopForm
from passes.operators import op_of
from passes.rule import Site
from passes.rules.integers import Integers
from passes.rules.readers import OUTPUT, readers_in

_WRITES = ("ScatterElements", "ScatterND")


def without_shape_reads(site: Site, form: LoopForm) -> LoopForm:
    """The loop, its buffers asked for their shape before anything is written to them.

    torch reads the row that it is about to write, for its shape.
    """
    integers = Integers(site, form.body)
    found: dict[int, str] = {}
    readers = readers_in(form.body)
    makers = {name: node for node in form.body.node for name in node.output}
    for one in form.carried:
        writer = makers.get(one.body_output)
        while writer is not None and op_of(writer) == "Identity":
            writer = makers.get(writer.input[0])
        writes = writer is not None and op_of(writer) in _WRITES
        if writer is None or not writes or writer.input[0] != one.body_input:
            continue
        if integers.is_outer(one.initial):
            found |= dict.fromkeys(_shape_reads(form.body, one, readers), one.initial)
    if not found:
        return form
    body = GraphProto()
    body.CopyFrom(form.body)
    for position, initial in found.items():
        body.node[position].input[0] = initial
    return replace(form, body=body)


def _shape_reads(body: GraphProto, one: Carried, readers: dict[str, list[int]]) -> list[int]:
    """The positions of nodes that read no values of a buffer."""
    found = []
    for position in readers.get(one.body_input, []):
        node = None if position == OUTPUT else body.node[position]
        if node is None or list(node.input).count(one.body_input) != 1:
            continue
        if node.input[0] != one.body_input:
            continue
        asks = readers.get(node.output[0], [])
        only_shape = all(at != OUTPUT and op_of(body.node[at]) == "Shape" for at in asks)
        if op_of(node) == "Shape" or (op_of(node) == "Gather" and only_shape):
            found.append(position)
    return found
