"""Finds outputs of bodies that onnxruntime leaves uninitialised, and writes models without them.

A Scan body that returns an input as it is, or a value twice, and a Loop body that collects the
iteration number: what onnxruntime answers there proves nothing. With an Identity of its
own each such output means the same, and onnxruntime answers it.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto

from passes.ir import scope as scoping
from passes.ir.boundary import return_copy
from passes.ir.names import Names
from passes.ir.operators import op_of
from passes.ir.protos import copied

_COLLECTED_BY_A_LOOP = 1  # after the condition and the carried values


#: The note on a pair of models that are repaired.
REPAIRED = (
    "onnxruntime leaves outputs of bodies uninitialised that are inputs, or listed twice, in the "
    "original, too: both sides run with an Identity before each of them"
)


def repaired_pair(before: ModelProto, after: ModelProto) -> tuple[ModelProto, ModelProto] | None:
    """Both models such that onnxruntime answers outputs that it leaves uninitialised in the
    original; None where there are none, or where the rewritten model has more, and is to show
    it."""
    found, more = (sum(len(places) for _, places in _bodies(one)) for one in (before, after))
    return (_repaired(before), _repaired(after)) if found and more <= found else None


def _repaired(model: ModelProto) -> ModelProto:
    """A copy that means the same, and in which onnxruntime answers every output."""
    copy = copied(model)
    names = Names(scoping.all_names([copy.graph, *copy.functions]))
    for body, places in _bodies(copy):
        for place in places:
            value = body.output[place]
            return_copy(body, value, names.fresh(f"{value.name}/answered_{place}"))
    return copy


def _bodies(model: ModelProto) -> Iterator[tuple[GraphProto, list[int]]]:
    """The bodies with such outputs, and the places of those."""
    for place in list(scoping.walk_model(model)):
        node = place.node
        if op_of(node) in ("Scan", "Loop"):
            for name, body in scoping.subgraphs(node):
                if name == "body" and (found := _places(node, body)):
                    yield body, found


def _places(node: NodeProto, body: GraphProto) -> list[int]:
    names = scoping.output_names(body)
    if op_of(node) == "Loop":
        numbers = scoping.input_names(body)[:1]
        first = max(0, len(node.input) - 2) + _COLLECTED_BY_A_LOOP
        return [
            position for position, name in enumerate(names) if position >= first and name in numbers
        ]
    taken = set(scoping.input_names(body))
    return [
        position for position, name in enumerate(names) if name in taken or name in names[:position]
    ]
